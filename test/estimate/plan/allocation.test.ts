import { describe, expect, it } from 'vitest';
import type { PlanRequest } from '../../../src/estimate/plan/plan-models.js';
import { planModels } from '../../../src/estimate/plan/plan-models.js';
import type { FamilyName } from '../../../src/model/architecture/families.js';
import { loadFamily } from '../../../src/model/architecture/families.js';
import { countParameters } from '../../../src/model/budget/parameters.js';
import { planReport } from '../../../src/report/plan-report.js';
import { render } from '../../../src/report/render/render.js';

const planned = async (name: FamilyName, changes: Partial<PlanRequest> = {}) =>
  planModels(await loadFamily(name), {
    inference: { batch: 1, context: 2048, dtype: 'bf16' },
    maxParameters: 26e6,
    vocabulary: 6400,
    align: 64,
    set: [],
    sort: 'balance',
    top: 3,
    ...changes,
  });

describe('the rule of 15 / 25 / 60', () => {
  it('gives a model near it, with the shares of its description', async () => {
    const { allocation, rows } = await planned('minimind');
    if (!allocation) throw new Error('no model');
    const { row, shares, best, rule } = allocation;
    expect(rule).toEqual({ embedding: 0.15, attention: 0.25, feedForward: 0.6 });
    for (const part of ['embedding', 'attention', 'feedForward'] as const) {
      expect(Math.abs(shares[part] - rule[part])).toBeLessThan(0.01);
    }
    expect(row.parameters.value).toBeLessThanOrEqual(26e6);
    const { build, schema } = await loadFamily('minimind');
    const { parameters, byComponent } = countParameters(build(schema.parse(row.document)));
    expect(row.parameters.value).toBe(parameters);
    expect(shares.embedding).toBe(byComponent.embedding / parameters);
    expect(shares.attention).toBe(byComponent.attention / parameters);
    // The best is nearer to the balanced depth than the rule is.
    expect(rows[0]?.offBalance.value).toBeLessThan(row.offBalance.value);
    expect(best.embedding).toBeLessThan(shares.embedding);
  });

  it('gives the last row of the table, with a note', async () => {
    const text = await render(planReport(await planned('minimind')), 'table', {
      width: 80,
      colourLevel: 0,
    });
    expect(text).toMatch(/^\* +7 +576 +9\/3 +1216 +24\.597M/m);
    expect(text).toContain(
      '* 15/25/60% embeddings/attention/FFN: 15.0/25.2/59.8%. Row 1: 9.9/23.7/66.4%.',
    );
  });

  it.each<[FamilyName, Partial<PlanRequest>]>([
    ['hybrid', { maxParameters: 500e6 }],
    ['minimind', { set: ['model.use_moe=true'], maxParameters: 100e6 }],
  ])('gives no model for %s with %o', async (name, changes) => {
    expect((await planned(name, changes)).allocation).toBeNull();
  });

  it('respects fixed sizes', async () => {
    const { allocation } = await planned('minimind', {
      set: ['model.num_hidden_layers=12'],
      depth: { least: 4, most: 20 },
    });
    expect(allocation?.row.sizes.depth).toBe(12);
    const few = await planned('minimind', { depth: { least: 9, most: 20 } });
    expect(few.allocation?.row.sizes.depth ?? 9).toBeGreaterThanOrEqual(9);
  });
});
