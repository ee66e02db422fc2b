/** Cells and blocks that reports are made of. */
import type { Figure } from '../../budget/figure.js';
import type { Block, Cell, Column } from './report.js';
import {
  formatBinaryBytes,
  formatBytes,
  formatFlops,
  formatInteger,
  formatShare,
} from './units.js';

export const heading = (text: string): Block => ({ kind: 'heading', text });
export const note = (text: string): Block => ({ kind: 'note', text, tone: 'dim' });
export const left = (title: string, key: string, wrap = false): Column => ({ title, key, wrap });
export const right = (title: string, key: string): Column => ({ title, key, align: 'right' });

/** Before what a file has as it is. */
export const CURRENT_MARK = '●';

export const strong = (text: string): Cell => ({ text, tone: 'strong' });

/** CSV holds integers beyond 2^53 − 1 as text, every digit. */
const exactValue = (value: number | bigint) => (typeof value === 'bigint' ? String(value) : value);

export const bytesCell = ({ value }: Pick<Figure, 'value'>): Cell => ({
  text: formatBytes(value),
  value: exactValue(value),
});
export const binaryCell = ({ value }: Pick<Figure, 'value'>): Cell => ({
  text: formatBinaryBytes(value),
  value: Number(value) / 2 ** 30,
});
export const integerCell = (value: number | bigint): Cell => ({
  text: formatInteger(value),
  value: exactValue(value),
});
export const flopsCell = (value: number | bigint): Cell => ({
  text: formatFlops(value),
  value: exactValue(value),
});
export const shareCell = (part: number | bigint, whole: number | bigint): Cell => ({
  text: formatShare(part, whole),
  value: Number(part) / Number(whole),
});
