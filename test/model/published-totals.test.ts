/** The table of published totals in docs/models.md: each count is that of the description, and agrees with its source. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { documentOfData } from '../../src/config/document.js';
import { modelOf } from '../../src/input/model-input/model-file.js';
import { countParameters } from '../../src/model/budget/parameters.js';
import { inPackage, readJson } from '../fixtures.js';

interface Total {
  readonly model: string;
  readonly published: string;
  readonly source: string;
  readonly difference?: string;
  readonly config: Readonly<Record<string, unknown>>;
}

const { models } = readJson<{ models: readonly Total[] }>('fixtures/published-totals.json');

/** Rows of the table, by their first cell. */
const rows = new Map(
  fs
    .readFileSync(inPackage('docs/models.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map((cells) => [cells[1] ?? '', cells.slice(2, -1)] as const),
);

const UNITS = { M: 1e6, B: 1e9, T: 1e12 } as const;

/** A published number as the range that it stands for: half of its last digit to either side. */
function rangeOf(text: string): readonly [least: number, most: number] {
  const [, digits = '', unit] = /^([\d.,]+)([MBT])?$/.exec(text) ?? expect.unreachable();
  if (unit === undefined)
    return [Number(digits.replaceAll(',', '')), Number(digits.replaceAll(',', ''))];
  const factor = UNITS[unit as keyof typeof UNITS];
  const half = 0.5 * 10 ** -(digits.split('.')[1]?.length ?? 0);
  return [(Number(digits) - half) * factor, (Number(digits) + half) * factor];
}

describe('a published total', () => {
  it('is there for more than 30 models of types that are new', () => {
    expect(new Set(models.map(({ config }) => config.model_type)).size).toBeGreaterThan(30);
  });

  it.each(models)('of $model is that of the table and of the description', async (each) => {
    const { model } = await modelOf(documentOfData(each.config, 'config.json'));
    const { parameters } = countParameters(model);
    const { published, source, difference = '' } = each;
    expect(rows.get(each.model)).toEqual([
      parameters.toLocaleString('en-US'),
      published,
      source,
      difference,
    ]);
    const [least, most] = rangeOf(published);
    expect(parameters >= least && parameters <= most).toBe(difference === '');
  });
});
