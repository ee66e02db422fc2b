import { describe, expect, it } from 'vitest';
import { comparisonOf, type ModelCandidate } from '../../src/estimate/comparison/compare-models.js';
import { hybrid } from '../../src/model/architecture/models/hybrid.js';
import { presetsOf } from '../../src/model/architecture/presets.js';
import { settingFacts } from '../../src/model/architecture/training-hints.js';
import { compareReport } from '../../src/report/compare/compare-report.js';
import { textWidth } from '../../src/report/kit/layout.js';
import { render } from '../../src/report/render/render.js';

const SETTINGS = { dtype: 'bf16', causal: false, optimizer: 'adamw' } as const;

function candidate(file: string, model: object, chosen: readonly string[] = []): ModelCandidate {
  const document = hybrid.schema.parse({ model });
  return {
    file,
    chosen,
    problems: [],
    loaded: { family: hybrid, document, model: hybrid.build(document) },
  };
}

const presets = presetsOf('hybrid').map(({ name, document }) =>
  candidate(`configs/${name}.yaml`, document.model),
);

async function compared(candidates: readonly ModelCandidate[], swept: readonly string[] = []) {
  const { length: count } = candidates;
  const candidate = async (index: number) => candidates[index] as ModelCandidate;
  const brief = async (index: number) => {
    const { loaded } = await candidate(index);
    return { facts: loaded && settingFacts(loaded) };
  };
  const models = { count, swept, sample: [...candidates.keys()], candidate, brief };
  const { measure, table } = await comparisonOf(models, SETTINGS);
  return table(measure);
}

const rendered = async (
  candidates: readonly ModelCandidate[],
  width: number,
  swept: readonly string[] = [],
) =>
  render(compareReport(await compared(candidates, swept)), 'table', {
    width,
    colourLevel: 0,
  });

describe('the table of a comparison', () => {
  it.each([40, 80, 120, 200])('is no wider than %d columns', async (width) => {
    for (const count of [1, 2, 3, 4, presets.length]) {
      const text = await rendered(presets.slice(0, count), width);
      for (const line of text.split('\n')) expect(textWidth(line)).toBeLessThanOrEqual(width);
    }
  });

  it('is a table at 80 columns, without the changes', async () => {
    expect(await rendered(presets, 80)).toMatch(
      /^model +parameters +weights +KV per token +forward pass +training memory$/m,
    );
    expect(await rendered(presets, 80)).toMatch(/^ *original +22\.144B +44\.3 GB/m);
    expect(await rendered(presets, 200)).toMatch(/^original +22\.144B +/m);
    expect(await rendered(presets, 200)).toMatch(/^recommended .* −39\.7% /m);
  });

  it('lists the differences as text where columns do not fit', async () => {
    const report = compareReport(await compared(presets));
    const text = await render(report, 'table', { width: 80, colourLevel: 0, details: true });
    expect(text.replace(/\s+/g, ' ')).toContain('srte_factorized_rank=64');
  });

  it('escapes names of files', async () => {
    const text = await rendered(
      [candidate('\u001b[31m\u202ea', { num_layers: 1 }), candidate('b', { num_layers: 2 })],
      80,
    );
    expect(text).toContain('\\x1b[31m');
    expect(text).not.toContain('\u001b');
    expect(text).not.toContain('\u202e');
  });

  it('marks the least in green where there are colours', async () => {
    const comparison = await compared(presets.slice(0, 2));
    const text = await render(compareReport(comparison), 'table', {
      width: 80,
      colourLevel: 1,
    });
    expect(text).toContain('\u001b[32m*13.822B');
  });
});

describe('a comparison of many models', () => {
  /** Reads of figures while the whole report of a sweep is made and rendered. */
  const readsFor = async (count: number): Promise<number> => {
    const models = Array.from({ length: count }, (_, at) =>
      candidate('a', { num_layers: 1, vocab_size: 100 + (at % 3) }, [String(at)]),
    );
    const comparison = await compared(models, ['training.warmup_steps']);
    let reads = 0;
    const counted = <Part extends object>(part: Part): Part =>
      new Proxy(part, {
        get(target, key) {
          reads++;
          return Reflect.get(target, key);
        },
      });
    const rows = comparison.rows.map((row) => ({
      ...row,
      figures: row.figures && counted(row.figures),
      values: row.values && counted(row.values),
    }));
    const report = compareReport({ ...comparison, rows });
    await render(report, 'table', { width: 200, colourLevel: 0, details: true });
    return reads;
  };

  it('reads each figure a bounded number of times', async () => {
    expect((await readsFor(400)) / (await readsFor(100))).toBeLessThan(4.5);
  });

  it('counts models that differ in other settings once', async () => {
    const { rows } = await compared(
      [1, 2, 3].map((at) => candidate(`${at}`, { num_layers: at < 3 ? 1 : 2 })),
      ['model.num_layers', 'training.warmup_steps'],
    );
    const [first, second, third] = rows.map(({ figures }) => figures);
    expect(second).toBe(first);
    expect(third?.parameters).not.toBe(first?.parameters);
  });
});
