/** Models of a sweep: their expected costs, and the number that stay in memory. */
import { describe, expect, it } from 'vitest';
import { candidateCosts, openCandidates } from '../../../src/input/model-input/model-candidates.js';
import { inPackage } from '../../fixtures.js';

const TINY = inPackage('configs/hybrid/tiny.yaml');
const MIXTURE = inPackage('configs/minimind/minimind2-moe.yaml');
const EXPERTS = inPackage('configs/qwen3_next/qwen3-next-80b-a3b.yaml');

describe('candidateCosts', () => {
  it('are proportional to the tensors of models of different families', async () => {
    const models = await openCandidates([TINY, EXPERTS], {});
    const [tiny = 0, experts = 0] = await candidateCosts(models);
    // 79 and 74,391 tensors; measured: 2.3 and 281 ms.
    expect(experts / tiny).toBeGreaterThan(61);
    expect(experts / tiny).toBeLessThan(244);
  });

  it('multiply the values of several keys', async () => {
    const set = [
      'model.num_hidden_layers=1,2,x,16',
      'model.n_routed_experts=4,8,64',
      'model.dropout=0,0.1',
    ];
    const models = await openCandidates([MIXTURE], { set });
    const costs = await candidateCosts(models);
    expect(costs).toHaveLength(24);
    const largest = 3 * 6 + 2 * 2;
    const alone = await openCandidates([MIXTURE], {
      set: ['model.num_hidden_layers=16', 'model.n_routed_experts=64'],
    });
    const [cost = 0] = await candidateCosts(alone);
    // The other tensors of a block are counted too often.
    expect((costs[largest] ?? 0) / cost).toBeGreaterThan(0.5);
    expect((costs[largest] ?? 0) / cost).toBeLessThan(2);
    expect(costs[largest + 1]).toBe(costs[largest]);
  });

  it('are equal when no model is valid', async () => {
    const models = await openCandidates([TINY], { set: ['model.num_layers=x,y,z'] });
    const costs = await candidateCosts(models);
    expect(new Set(costs).size).toBe(1);
    expect(costs[0]).toBeGreaterThan(0);
  });
});

describe('openCandidates', () => {
  it('keeps small models of the sample, but not large ones', async () => {
    const set = ['model.vocab_size=640,1280,1920'];
    const [small, large] = [
      await openCandidates([TINY], { set }),
      await openCandidates([EXPERTS], { set: ['model.vocab_size=64000,128000'] }),
    ];
    expect(small.sample).toEqual([0, 1, 2]);
    expect(await small.candidate(1)).toBe(await small.candidate(1));
    expect(await large.candidate(1)).not.toBe(await large.candidate(1));
  });
});
