import { describe, expect, it } from 'vitest';
import { gpuNamed } from '../../src/estimate/hardware/gpus.js';
import { decodingTarget } from '../../src/estimate/plan/decode.js';
import { type Plan, planModels } from '../../src/estimate/plan/plan-models.js';
import { type FamilyName, loadFamily } from '../../src/model/architecture/families.js';
import { textWidth } from '../../src/report/kit/layout.js';
import { planReport } from '../../src/report/plan-report.js';
import { renderCsv } from '../../src/report/render/csv.js';
import { renderTable } from '../../src/report/render/table.js';

const INFERENCE = { batch: 1, context: 2048, dtype: 'bf16' } as const;

const kept = new Map<string, Promise<Plan>>();

/** Planned once for all tests. */
function planned(name: FamilyName, maxParameters: number): Promise<Plan> {
  const key = `${name} ${maxParameters}`;
  const plan = kept.get(key) ?? planOf(name, maxParameters);
  kept.set(key, plan);
  return plan;
}

const planOf = async (name: FamilyName, maxParameters: number) =>
  planModels(await loadFamily(name), {
    vocabulary: 6400,
    inference: INFERENCE,
    gpu: 'h100-80gb',
    decode: decodingTarget({ gpu: gpuNamed('h100-80gb'), gpus: 1, network: null }, INFERENCE),
    maxParameters,
    align: 64,
    set: [],
    sort: 'balance',
    top: 3,
  });

describe('the report of a plan', () => {
  it.each([
    ['minimind', 26e6],
    ['hybrid', 26e6],
    ['gpt2', 124e6],
    ['llama', 7e9],
  ] as const)('for %s fits 80 columns as tables', async (name, maxParameters) => {
    const plan = await planned(name, maxParameters);
    const text = renderTable(planReport(plan), { width: 80, colourLevel: 0, details: true });
    for (const line of text.split('\n')) expect(textWidth(line)).toBeLessThanOrEqual(80);
    expect(text.match(/^ *# +(layers|shape) /gm)).toHaveLength(plan.spectrum.length > 1 ? 2 : 1);
  });

  it('shows in bars that state grows with depth, and speed with width', async () => {
    const plan = await planned('minimind', 26e6);
    const text = renderTable(planReport(plan), { width: 80, colourLevel: 0, details: true });
    const [, spectrum = ''] = text.split('From deep and thin to shallow and wide');
    const rows = spectrum.split('\n').filter((line) => /^ *\d+ +\d+ × /.test(line));
    const bars = rows.map((line) => line.match(/[█▉▊▋▌▍▎▏]+/g)?.map((each) => each.length));
    expect(bars[0]?.[0]).toBe(10);
    expect(bars.at(-1)?.[1]).toBe(10);
    expect(bars[0]?.[1]).toBeLessThan(3);
  });

  it('reports models that do not fit in the memory of the GPU', async () => {
    const plan = await planned('llama', 405e9);
    const text = renderTable(planReport(plan), { width: 80, colourLevel: 0, details: true });
    const joined = text.replace(/\s+/g, ' ');
    expect(joined).toMatch(/(\d+) of \1 models shown do not fit into the 84\.9 GB of h100-80gb/);
    expect(joined).toContain('tokens/s');
    expect(text).toMatch(/ GB +– /);
  });

  it('has one table with exact numbers in CSV', async () => {
    const plan = await planned('minimind', 26e6);
    const lines = (await renderCsv(planReport(plan))).trim().split('\n');
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(
      /^place,layers,width,heads,kv_heads,head_dim,feed_forward,rank,parameters,/,
    );
    expect(lines[1]?.split(',')[8]).toBe(String(plan.rows[0]?.parameters.value));
  });
});
