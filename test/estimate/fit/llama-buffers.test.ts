import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { CardFit } from '../../../src/estimate/fit/places/places.js';
import type { WeightDtype } from '../../../src/estimate/fit/serving/weight-types.js';
import { fit as answer } from '../../../src/library/fit.js';
import { describeModel } from '../../../src/library/models/describe-model.js';
import { inPackage } from '../../fixtures.js';

interface Buffer {
  readonly place: string;
  readonly model: number;
  readonly context: number;
  readonly compute: number;
}

interface Row {
  readonly model: string;
  readonly placement: string;
  readonly context: number;
  readonly gpuLayers: number;
  readonly cpuExperts: number;
  readonly cache: 'f16' | 'q8_0';
  readonly gpus: number;
  readonly buffers: readonly Buffer[];
}

interface Fixture {
  readonly models: Readonly<
    Record<string, { readonly dtype: WeightDtype; readonly config: Record<string, unknown> }>
  >;
  readonly rows: readonly Row[];
}

const { models, rows }: Fixture = JSON.parse(
  fs.readFileSync(inPackage('fixtures/fit/llama-buffers.json'), 'utf8'),
);

const placed = new Map<Row, Promise<Awaited<ReturnType<typeof newPlaces>>>>();

function placesOf(row: Row) {
  const known = placed.get(row) ?? newPlaces(row);
  placed.set(row, known);
  return known;
}

/** The placement of a row on a card with room for all, as the command line asks for it. */
async function newPlaces({ model, context, gpuLayers, cpuExperts, cache, gpus }: Row) {
  const { dtype, config } = models[model] as Fixture['models'][string];
  const { serving } = answer(await describeModel(config), {
    ...{ gpu: 'mi355x', gpus, for: 'serving', dtype, context, cacheDtype: cache, gpuLayers },
    ...{ ramBytes: 1e12, ramSpeed: 'ddr5-5600' },
    ...(cpuExperts > 0 && { cpuExperts }),
    ...(gpus > 1 && { tensorSplit: [1, 1] }),
  });
  if (serving?.places === undefined) throw new Error('no placement');
  return serving.places;
}

const near = (share: number, of: number) => [of * (1 - share), of * (1 + share)] as const;

const isNear = (value: number, of: number, share: number): boolean => {
  const [from, to] = near(share, of);
  return value >= from && value <= to;
};

describe('buffers of llama.cpp, for 12 models in 4 placements', () => {
  it.each(rows.map((row) => [`${row.model}, ${row.placement}`, row] as const))(
    '%s: weights and caches by place within 1%, compute buffers within 10%',
    async (_, row) => {
      const { cards, onGpus, gpu, inSystem } = await placesOf(row);
      const all: readonly Pick<CardFit, 'holds' | 'memory'>[] =
        cards.length > 0 ? cards : [{ holds: onGpus, memory: gpu }];
      const workspaces = all.map(({ holds, memory }) => {
        const { weights, experts, cache, embedding } = holds;
        return memory.expected.value - weights - experts - cache - embedding;
      });
      for (const { place, model, context, compute } of row.buffers) {
        const at = place === 'system' ? undefined : Number(place.slice(3));
        const { weights, experts, embedding, cache } =
          at === undefined ? inSystem : (all[at] as CardFit).holds;
        expect(isNear(weights + experts + embedding, model, 0.01), `${place}: weights`).toBe(true);
        expect(isNear(cache, context, 0.01), `${place}: cache`).toBe(true);
        if (at === undefined) continue;
        expect(isNear(workspaces[at] ?? 0, compute, 0.1), `${place}: ${compute}`).toBe(true);
      }
    },
  );

  it('are 48, and most compute buffers are within 5%', async () => {
    expect(rows).toHaveLength(48);
    let [close, count] = [0, 0];
    for (const row of rows) {
      const { cards, onGpus, gpu } = await placesOf(row);
      const all = cards.length > 0 ? cards : [{ holds: onGpus, memory: gpu }];
      for (const [at, { holds, memory }] of all.entries()) {
        const { weights, experts, cache, embedding } = holds;
        const workspace = memory.expected.value - weights - experts - cache - embedding;
        const buffer = row.buffers.find(({ place }) => place === `gpu${at}`);
        count++;
        if (isNear(workspace, buffer?.compute ?? 0, 0.05)) close++;
      }
    }
    expect(count).toBe(60);
    expect(close).toBe(54);
  });
});
