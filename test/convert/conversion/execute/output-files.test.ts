import { describe, expect, it } from 'vitest';
import { UserError } from '../../../../src/base/errors.js';
import {
  type AccompanyingData,
  TENSOR_FILES,
} from '../../../../src/convert/conversion/execute/output-files.js';
import type { ConversionPlan } from '../../../../src/convert/conversion/plan/conversion-plan.js';

const NOTHING: AccompanyingData = {
  step: null,
  config: null,
  configName: 'config.yaml',
  metadata: new Map(),
};

const files = (alias: string, accompanying: AccompanyingData) => {
  const tensor = { name: 'w', aliases: [alias], dtype: 'F32', shape: [1], bytes: 4 };
  const plan = { tensors: [tensor] } as unknown as ConversionPlan;
  const shard = { file: 'model.safetensors', bytes: 4, tensors: ['w'] };
  const output = { name: 'out', plan, shards: [shard], accompanying };
  return TENSOR_FILES.safetensors(output);
};

describe('a tied tensor in safetensors', () => {
  it.each<[string, AccompanyingData]>([
    ['format', NOTHING],
    ['step', { ...NOTHING, step: 7 }],
  ])('is refused with a name reserved in the metadata: %s', (name, accompanying) => {
    const attempt = () => files(name, accompanying);
    expect(attempt).toThrow(UserError);
    expect(attempt).toThrow(`cannot hold a tied tensor named ${name}`);
  });

  it('may be called step if there is no training step', () => {
    expect(files('step', NOTHING)).toHaveLength(1);
  });
});
