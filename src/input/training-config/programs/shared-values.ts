/** Values that several programs share: names of optimizers, products with adapters, FSDP and files of DeepSpeed. */
import { asText, isRecord } from '../../../base/values.js';
import type { Optimizer } from '../../../model/budget/optimizers.js';
import { type KeyRow, meaning, numberOf, switchOf } from '../program.js';
import type { StateDivision, TrainingRun } from '../training-run.js';

/**
 * Optimizers by the names of transformers (training_args.py: OptimizerNames), PyTorch, DeepSpeed and torchtitan. A name
 * with other digits is another optimizer.
 */
const OPTIMIZERS: Readonly<Record<string, Optimizer>> = {
  adam: 'adamw',
  adamw: 'adamw',
  adamw_torch: 'adamw',
  adamw_hf: 'adamw',
  adamw_torch_xla: 'adamw',
  'torch.optim.adamw': 'adamw',
  'torch.optim.adam': 'adamw',
  fusedadam: 'adamw-fused',
  adamw_torch_fused: 'adamw-fused',
  adamw_apex_fused: 'adamw-fused',
  adamw_torch_npu_fused: 'adamw-fused',
  adamw_8bit: 'adamw-8bit',
  adamw_bnb_8bit: 'adamw-8bit',
  adamw_torch_8bit: 'adamw-8bit',
  'bitsandbytes.optim.adamw8bit': 'adamw-8bit',
  'bitsandbytes.optim.pagedadamw': 'paged-adamw',
  paged_adamw: 'paged-adamw',
  paged_adamw_32bit: 'paged-adamw',
  paged_adamw_8bit: 'paged-adamw-8bit',
  lion: 'lion',
  lion_32bit: 'lion',
  lion_pytorch: 'lion',
  lion_8bit: 'lion-8bit',
  paged_lion_8bit: 'lion-8bit',
  muon: 'muon',
  adafactor: 'adafactor',
  galore_adamw: 'galore',
  galore_adamw_8bit: 'galore-8bit',
  sgd: 'sgd',
};

/** An optimizer by its name in another program. */
export function optimizerMeaning(value: unknown): Partial<TrainingRun> | undefined {
  if (typeof value !== 'string') return undefined;
  const name = value.toLowerCase();
  return Object.hasOwn(OPTIMIZERS, name) ? { optimizer: OPTIMIZERS[name] as Optimizer } : undefined;
}

/** Names of our optimizers in transformers. */
const TRAINER_NAMES: Partial<Record<Optimizer, string>> = {
  adamw: 'adamw_torch',
  'adamw-fused': 'adamw_torch_fused',
  'adamw-8bit': 'adamw_bnb_8bit',
  'paged-adamw': 'paged_adamw_32bit',
  'paged-adamw-8bit': 'paged_adamw_8bit',
  lion: 'lion_32bit',
  'lion-8bit': 'lion_8bit',
  adafactor: 'adafactor',
  galore: 'galore_adamw',
  'galore-8bit': 'galore_adamw_8bit',
  sgd: 'sgd',
};

/** A key with an optimizer of transformers. */
export const optimizerRow = (key: string): KeyRow =>
  meaning(key, optimizerMeaning, ({ optimizer }) => optimizer && TRAINER_NAMES[optimizer]);

/** Names of products in a list, or in one text with commas. */
export function targetsOf(value: unknown): Partial<TrainingRun> | undefined {
  const names = Array.isArray(value)
    ? value.map(asText)
    : typeof value === 'string'
      ? value.split(',').map((each) => each.trim())
      : undefined;
  if (names === undefined || names.length === 0) return undefined;
  const isAll = names.some((name) => name === 'all' || name === 'all-linear');
  return { targets: isAll ? ['all'] : [...new Set(names)].filter((name) => name !== '') };
}

/** Keys of FSDP, bare in its version 2 and with a prefix in 1. */
function fsdpValue(section: unknown, key: string): unknown {
  if (!isRecord(section)) return undefined;
  return section[key] ?? section[`fsdp_${key}`];
}

/**
 * The division that `fsdp` and `fsdp_config` ask for (transformers, trainer_utils.py: FSDPOption; accelerate,
 * utils/dataclasses.py: FullyShardedDataParallelPlugin).
 */
export function fsdpOf(options: unknown, section: unknown, version: unknown): Partial<TrainingRun> {
  const names = Array.isArray(options)
    ? options.map(asText)
    : typeof options === 'string'
      ? options.split(/[\s,]+/)
      : [];
  const isOn = names.some((name) => name !== '') || options === true || isRecord(section);
  if (!isOn || options === false) return {};
  const strategy = asText(fsdpValue(section, 'sharding_strategy') ?? '').toUpperCase();
  const isResharded = fsdpValue(section, 'reshard_after_forward');
  const reshard = typeof isResharded === 'string' ? isResharded.toUpperCase() : isResharded;
  const stated = strategy || (typeof reshard === 'string' ? reshard : '');
  const isSecond = numberOf(version ?? fsdpValue(section, 'version')) === 2;
  const division: StateDivision =
    names.includes('hybrid_shard') || stated.startsWith('HYBRID') || stated === '4'
      ? 'hsdp'
      : names.includes('shard_grad_op') ||
          stated === 'SHARD_GRAD_OP' ||
          stated === '2' ||
          reshard === false
        ? '2'
        : names.includes('no_shard') || stated === 'NO_SHARD' || stated === '3'
          ? '0'
          : isSecond
            ? 'fsdp2'
            : 'fsdp';
  const offloads = switchOf(fsdpValue(section, 'offload_params')) ?? names.includes('offload');
  const recomputes = switchOf(fsdpValue(section, 'activation_checkpointing'));
  return {
    division,
    ...(offloads && { offloadParameters: true, offloadOptimizer: true }),
    ...(recomputes && { recompute: 'full' }),
  };
}

/** Stage in the name of a file of DeepSpeed: `zero3_bf16.json`, `ds_z3_config.json`, `zero_stage1_config.json`. */
function stageInName(file: string): StateDivision | undefined {
  const [name = ''] = file.split(/[\\/]/).slice(-1);
  const stage = /(?:zero|z)_?(?:stage)?_?-?([0-3])(?!\d)/i.exec(name)?.[1];
  return stage as StateDivision | undefined;
}

/** Settings in the name of a file of DeepSpeed, which the file itself replaces. */
export function deepspeedFileMeaning(file: string): Partial<TrainingRun> {
  const division = stageInName(file);
  const offloads = /offload/i.test(file);
  return {
    deepspeedFile: file,
    ...(division && { division }),
    ...(offloads && { offloadOptimizer: true }),
    ...(/offload_all/i.test(file) && { offloadParameters: true }),
  };
}

/** `warmup_steps`, which is a share of the steps below 1 (transformers 5). */
export const warmupRow = (key: string): KeyRow =>
  meaning(
    key,
    (value) => {
      const number = numberOf(value);
      if (number === undefined || number < 0) return undefined;
      return number > 0 && number < 1 ? { warmupRatio: number } : { warmupSteps: number };
    },
    ({ warmupSteps }) => warmupSteps,
  );
