/** What `inspect` shows beside the tensors: what they share, and what else a file holds. */
import type { CheckpointSummary } from '../../checkpoint/summary.js';
import type { ContentEntry, Plain } from '../../checkpoint/summary-content.js';
import type { Sharing } from '../../checkpoint/summary-sharing.js';
import { bytesCell, heading, integerCell, left, note, right } from '../kit/cells.js';
import type { Block, Cell } from '../kit/report.js';
import { formatBytes, formatInteger } from '../kit/units.js';
import { namesText, nameText, plainText } from './inspect-text.js';

/** Most rows of what is beside the point; JSON has all. */
const MAX_BESIDE = 100;

const KINDS = {
  same: 'one tensor',
  overlapping: 'overlapping',
} as const satisfies Record<Sharing['kind'], string>;

/** Names that share bytes, and names that only the metadata know. */
export function sharingBlocks({ shared, aliases }: CheckpointSummary): Block[] {
  const renamed = Object.entries(aliases);
  const rows: Cell[][] = [
    ...shared
      .slice(0, MAX_BESIDE)
      .map(({ kind, names, bytes }) => [
        { text: KINDS[kind] },
        integerCell(names.length),
        bytesCell({ value: bytes }),
        { text: namesText(names) },
      ]),
    ...renamed
      .slice(0, MAX_BESIDE)
      .map(([name, meant]) => [
        { text: 'in metadata' },
        { text: '' },
        { text: '' },
        { text: `${nameText(name)} is ${nameText(meant)}` },
      ]),
  ];
  if (rows.length === 0) return [];
  return [
    heading('Shared'),
    {
      kind: 'table',
      columns: [
        left('what', 'what'),
        right('names', 'names'),
        right('bytes', 'bytes'),
        left('which', 'which', true),
      ],
      rows,
    },
    ...moreNote(shared.length + renamed.length - rows.length),
  ];
}

export function contentBlocks({ content }: CheckpointSummary): Block[] {
  const entries = Object.entries(content);
  if (entries.length === 0) return [];
  return [
    heading('Also in the file'),
    {
      kind: 'table',
      columns: [left('key', 'key', true), left('type', 'type'), left('value', 'value', true)],
      rows: entries
        .slice(0, MAX_BESIDE)
        .map(([key, entry]) => [
          { text: nameText(key) },
          { text: entry.type },
          { text: contentText(entry) },
        ]),
    },
    ...moreNote(entries.length - MAX_BESIDE),
  ];
}

function contentText({ type, value, tensors, tensorBytes = 0 }: ContentEntry): string {
  if (tensors !== undefined && type !== 'torch.Tensor') {
    const count = tensors === 1 ? 'one tensor' : `${formatInteger(tensors)} tensors`;
    return `${count}, ${formatBytes(tensorBytes)}`;
  }
  const text = plainText(contentOf(value, FORMS.has(type)));
  return type === 'bytes' ? `${text} bytes` : text;
}

/** Types whose plain data is an object of one key, which says no more than the type. */
const FORMS: ReadonlySet<string> = new Set(['bytes', 'torch.Tensor', 'torch.storage', 'type']);

/** What is worth telling of plain data whose type is told anyway. */
function contentOf(value: Plain, isForm: boolean): Plain {
  if (typeof value !== 'object' || value === null) return value;
  if (isForm) return Object.values(value)[0] ?? null;
  if (!('object' in value)) return value;
  const { state, args = [] } = value;
  return state ?? (Array.isArray(args) && args.length === 1 ? (args[0] ?? null) : args);
}

/** How many rows are left out, if any. */
export function moreNote(more: number): Block[] {
  return more > 0 ? [note(`${formatInteger(more)} more are not shown; --json has them.`)] : [];
}
