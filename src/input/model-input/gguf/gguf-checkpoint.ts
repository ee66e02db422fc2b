/** Opens checkpoints of models: GGUF and ONNX files under the names of PyTorch, any other as it is. */

import { UserError } from '../../../base/errors.js';
import type { Checkpoint, CheckpointOptions } from '../../../checkpoint/checkpoint.js';
import { typesByBytes } from '../../../checkpoint/gguf/describe-gguf.js';
import { openCheckpoint } from '../../../checkpoint/open.js';
import { tensorsOfOnnx } from '../onnx/onnx-tensors.js';
import { configOfGguf, GgufMetadata, headCountsOf } from './gguf-config.js';
import { isGgufArchitecture } from './gguf-names.js';
import { tensorsOfGguf } from './gguf-weights.js';

/** Configs of GGUF checkpoints, made from their metadata. */
const configs = new WeakMap<ReadonlyMap<string, unknown>, Record<string, unknown>>();

/** The config of a checkpoint that `openModelCheckpoint` opened from a GGUF file. */
export const ggufConfigIn = ({ tensors }: Checkpoint): Record<string, unknown> | undefined =>
  configs.get(tensors);

/**
 * Opens a checkpoint of a model, as `openCheckpoint`. The tensors of a GGUF file have the names and values of
 * transformers.
 * @throws UserError as `openCheckpoint`.
 */
export function openModelCheckpoint(path: string, options: CheckpointOptions = {}): Checkpoint {
  const checkpoint = openCheckpoint(path, options);
  try {
    return asModel(checkpoint);
  } catch (error) {
    checkpoint.close();
    throw error;
  }
}

/** A GGUF file of a known architecture under the names of transformers, an ONNX file under those of its model. */
function asModel(checkpoint: Checkpoint): Checkpoint {
  const { path, keyValues, onnx } = checkpoint;
  if (onnx) {
    return { ...checkpoint, tensors: tensorsOfOnnx(checkpoint.tensors, onnx, checkpoint.metadata) };
  }
  if (keyValues === undefined) return checkpoint;
  if (!isGgufArchitecture(keyValues.get('general.architecture')?.value)) return checkpoint;
  const metadata = new GgufMetadata(path, keyValues);
  const tensors = tensorsOfGguf(metadata.architecture, checkpoint.tensors, headCountsOf(metadata));
  configs.set(tensors, configOfGguf(checkpoint));
  return { ...checkpoint, tensors, own: checkpoint.tensors };
}

/** `asModel`, or the checkpoint itself where its metadata describe no model. */
export function modelViewOf(checkpoint: Checkpoint): Checkpoint {
  try {
    return asModel(checkpoint);
  } catch (error) {
    if (error instanceof UserError) return checkpoint;
    throw error;
  }
}

/** Types of files by their number in `general.file_type`: `llama_ftype` of llama.h. */
const FILE_TYPES: Readonly<Record<number, string>> = {
  0: 'f32',
  1: 'f16',
  2: 'q4_0',
  3: 'q4_1',
  7: 'q8_0',
  8: 'q5_0',
  9: 'q5_1',
  10: 'q2_k',
  11: 'q3_k_s',
  12: 'q3_k_m',
  13: 'q3_k_l',
  14: 'q4_k_s',
  15: 'q4_k_m',
  16: 'q5_k_s',
  17: 'q5_k_m',
  18: 'q6_k',
  19: 'iq2_xxs',
  20: 'iq2_xs',
  21: 'q2_k_s',
  22: 'iq3_xs',
  23: 'iq3_xxs',
  24: 'iq1_s',
  25: 'iq4_nl',
  26: 'iq3_s',
  27: 'iq3_m',
  28: 'iq2_s',
  29: 'iq2_m',
  30: 'iq4_xs',
  31: 'iq1_m',
  32: 'bf16',
  36: 'tq1_0',
  37: 'tq2_0',
  38: 'mxfp4',
};

/** Numbers of types that a file has throughout: llama.cpp has none of their own. */
const PURE: Readonly<Record<string, string>> = { q3_k: 'q3_k_s', q4_k: 'q4_k_s', q5_k: 'q5_k_s' };

/** Number of a type of files. */
export const fileTypeNumber = (name: string): number | undefined => {
  const found = Object.entries(FILE_TYPES).find(([, each]) => each === (PURE[name] ?? name));
  return found && Number(found[0]);
};

/** Type of a GGUF file: the one that it states, or the one with the most bytes. Undefined for other files. */
export function ggufTypeOf({ keyValues, tensors }: Checkpoint): string | undefined {
  if (keyValues === undefined) return undefined;
  const stated = FILE_TYPES[Number(keyValues.get('general.file_type')?.value)];
  if (stated !== undefined) return stated;
  return typesByBytes(tensors.values())[0]?.toLowerCase();
}
