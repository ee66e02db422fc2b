import { expect, it } from 'vitest';
import { parallelismOf } from '../../../src/estimate/fit/parallelism/parallelism.js';
import { loraMemoryOn } from '../../../src/estimate/fit/training/lora.js';
import { stepTimeOf } from '../../../src/estimate/fit/training/step-time.js';
import { fitTrainingMemory } from '../../../src/estimate/fit/training/training-memory.js';
import {
  SHARDINGS,
  type TrainingFitSetting,
} from '../../../src/estimate/fit/training/training-setting.js';
import { clusterNamed } from '../../../src/estimate/hardware/cluster-named.js';
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import { countParameters } from '../../../src/model/budget/parameters.js';
import { inPackage } from '../../fixtures.js';

const LLAMA = inPackage('fixtures/hf-configs/llama-3.1-8b/config.json');
const { model } = await loadModelFile(LLAMA, { set: [] });

function settingOn(gpus: number, sharding: keyof typeof SHARDINGS): TrainingFitSetting {
  return {
    cluster: clusterNamed('dgx-h100', gpus, { gpus: [], machines: [] }),
    ...{ microBatch: 1, context: 2048, precision: 'mixed', optimizer: 'adamw', recompute: 'none' },
    ...{ attention: 'fused', loss: 'full', convention: 'zero', sequenceParallel: false },
    ...{ tensorParallel: 1, pipelineParallel: 1 },
    ...SHARDINGS[sharding],
  };
}

const memoryOf = (gpus: number, sharding: keyof typeof SHARDINGS) =>
  fitTrainingMemory(model, settingOn(gpus, sharding)).total;

/** Seconds of communication at the peaks, with a slow network. */
function communicationOf(gpus: number, sharding: keyof typeof SHARDINGS): number {
  const { cluster, ...others } = settingOn(gpus, sharding);
  const network = cluster.network && { ...cluster.network, bandwidth: SLOW };
  const setting = { ...others, cluster: { ...cluster, network } };
  const { limits } = stepTimeOf(model, setting, fitTrainingMemory(model, setting).stages);
  return limits.find(({ limit }) => limit === 'communication')?.seconds.lower.value ?? 0;
}

/** Bytes per second of a network that takes longer than the links of a machine. */
const SLOW = 1e9;

it.each(['fsdp', 'fsdp2'] as const)('%s divides what ZeRO-3 divides', (name) => {
  expect(memoryOf(32, name)).toEqual(memoryOf(32, 3));
});

it('is full sharding within a machine', () => {
  expect(memoryOf(8, 'hsdp')).toEqual(memoryOf(8, 3));
  expect(communicationOf(8, 'hsdp')).toBe(communicationOf(8, 3));
});

/** Bytes of the channels of a communicator of 4 or 8 GPUs: 392 MiB (aiconfigurator, nccl_mem of TensorRT-LLM, 2026). */
const COMMUNICATOR = 392 * 2 ** 20;

it('has the memory of one machine on several, and a communicator between them', () => {
  const [one, four] = [memoryOf(8, 3), memoryOf(32, 'hsdp')];
  expect(four.lower.value).toBe(one.lower.value);
  expect(four.expected.value - one.expected.value).toBe(COMMUNICATOR);
  expect(four.expected.value).toBeGreaterThan(memoryOf(32, 3).expected.value);
});

it('has the adapters of one machine on several', () => {
  const total = (gpus: number, sharding: 3 | 'hsdp') =>
    loraMemoryOn(model, settingOn(gpus, sharding)).total.expected.value;
  expect(total(32, 'hsdp') - total(8, 3)).toBe(COMMUNICATOR);
  expect(total(32, 'hsdp')).toBeGreaterThan(total(32, 3));
});

it('reduces an eighth of the gradients between four machines', () => {
  const elements = countParameters(model).parameters;
  // Two bytes of each gradient, there and back, of three of four copies, by each GPU of a machine its eighth.
  const between = (2 * 2 * elements * 3) / 4 / 8 / SLOW;
  expect(communicationOf(32, 'hsdp')).toBeCloseTo(between, 6);
  expect(between).toBeGreaterThan(communicationOf(8, 'hsdp'));
});

it('divides by the GPUs of a machine that tensor parallelism leaves', () => {
  const setting = { ...settingOn(32, 'hsdp'), tensorParallel: 2 };
  expect(parallelismOf(model, setting)).toMatchObject({ replicas: 16, shards: 4 });
  const odd = { ...settingOn(24, 'hsdp'), tensorParallel: 2, pipelineParallel: 2 };
  expect(parallelismOf(model, odd)).toMatchObject({ replicas: 6, shards: 3 });
});
