/**
 * Everything that a checkpoint must keep to, by name. A refusal names its rule; each rule is checked in
 * exactly one place, and has a test that breaks nothing else.
 */
import { FILE_RULES } from './file-rules.js';
import { NAME_RULES } from './name-rules.js';
import { SAFETENSORS_RULES } from './safetensors/rules.js';
import { SHARD_RULES } from './shards/rules.js';
import { TORCH_RULES } from './torch/rules.js';

export const RULES = {
  ...FILE_RULES,
  ...NAME_RULES,
  ...SAFETENSORS_RULES,
  ...SHARD_RULES,
  ...TORCH_RULES,
} as const;

export type Rule = keyof typeof RULES;
