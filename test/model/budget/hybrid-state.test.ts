import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { documentOfData } from '../../../src/config/document.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import { stateOf } from '../../../src/model/budget/state.js';
import { readJson } from '../../fixtures.js';
import { runHere } from '../../run-here.js';

interface Case {
  readonly model: string;
  readonly layers: number;
  readonly config: Readonly<Record<string, unknown>>;
  /** Bytes of the cache of transformers for one sequence, in bfloat16. */
  readonly cache: {
    readonly keys_values: number;
    readonly convolutions: number;
    readonly states: number;
  };
}

const { tokens, cases } = readJson<{ tokens: number; cases: readonly Case[] }>(
  'fixtures/hybrid-state.json',
);

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-hybrid-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

interface Value {
  readonly value: number;
}

describe('the state of a hybrid after a long prompt', () => {
  it.each(cases)(
    'has the bytes of the cache of transformers: $model',
    async ({ config, layers, cache }) => {
      const { model } = await modelOf(documentOfData(config, 'config.json'));
      expect(model.blocks).toHaveLength(layers);
      const state = stateOf(model, { batch: 1, context: tokens, dtype: 'bf16' });
      expect({
        keys_values: state.keyValueCache.value,
        convolutions: state.convolutionState.value,
        states: state.mambaState.value,
      }).toEqual(cache);
    },
  );
});

describe('profile and fit', () => {
  it.each(cases)(
    'show the bytes of the cache of transformers: $model',
    async ({ model, config, cache }) => {
      const file = path.join(folder, `${model}.json`);
      fs.writeFileSync(file, JSON.stringify(config));
      const run = async (...args: string[]) => JSON.parse((await runHere(args)).stdout);
      const context = ['--context', String(tokens), '--json'];
      const { inference } = (await run('profile', file, '--dtype', 'bf16', ...context)) as {
        inference: { state: Record<'keyValueCache' | 'total', Value> };
      };
      expect(inference.state.keyValueCache.value).toBe(cache.keys_values);
      expect(inference.state.total.value).toBe(
        cache.keys_values + cache.convolutions + cache.states,
      );
      const fit = await run('fit', file, '--for', 'serving', '--gpu', 'b200', ...context);
      const { fit: served } = fit.serving as {
        fit: Record<'cachePerSequence' | 'state', Value>;
      };
      expect(served.cachePerSequence.value).toBe(cache.keys_values);
      expect(served.state.value).toBe(cache.states + cache.convolutions);
    },
  );
});
