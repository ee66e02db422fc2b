/** Searches the weights of a checkpoint for values that are not finite, in the order of the model. */

import type { ProgressDisplay } from '../../base/progress-display.js';
import type { Shape, StoredDtype } from '../../base/tensor/dtype.js';
import { sumOf } from '../../base/values.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { storedNames } from '../../checkpoint/names.js';
import { canHoldNonFinite, indexAt, nonFiniteIn } from '../../checkpoint/non-finite.js';
import { parameterNames } from '../../checkpoint/reconcile/faults.js';
import type { StoredTensor } from '../../checkpoint/stored-tensor.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { tensorsOf } from '../../model/architecture/walk.js';

/** Bytes of weights that are searched unasked: about a second. */
const SCANNED_BYTES = 2 ** 30;

/** A tensor with values that are not finite. */
export interface BadTensor {
  /** Name in the checkpoint. */
  readonly tensor: string;
  /** Element type, as safetensors names it. */
  readonly dtype: StoredDtype;
  /** Sizes of the dimensions. @count */
  readonly shape: Shape;
  /** Number of NaN values. @count */
  readonly nan: number;
  /** Number of infinities. @count */
  readonly infinite: number;
  /** Index of the first one in each axis. @count */
  readonly first: readonly number[];
}

export interface ValueScan {
  /** Why values were not searched; null if they were. */
  readonly skipped: 'size' | 'remote' | null;
  /** Tensors whose values can be searched. @count */
  readonly tensors: number;
  /** Bytes of the searched values. @count */
  readonly bytes: number;
  /** Tensors of other types, such as quantized ones, which are not searched. @count */
  readonly unread: number;
  /** Tensors with NaN or infinities, in the order of the model. */
  readonly bad: readonly BadTensor[];
  /** Tensors with finite values beyond 65,504. */
  readonly beyondFloat16: readonly {
    /** Name of the tensor. */
    readonly tensor: string;
    /** Number of values. @integer @minimum 1 */
    readonly values: number;
  }[];
}

/**
 * Searches the parameters that the model describes and the checkpoint stores. Buffers can hold infinities, as masks do.
 * @param all Whether to search any number of bytes, also those of the hub.
 * @throws UserError if reading fails.
 */
export async function scanValues(
  model: LanguageModel,
  checkpoint: Checkpoint,
  { all, display }: { readonly all: boolean; readonly display: ProgressDisplay },
): Promise<ValueScan> {
  const stored = storedNames(checkpoint);
  const seen = new Set<StoredTensor>();
  const found: { readonly name: string; readonly tensor: StoredTensor }[] = [];
  for (const param of tensorsOf(model)) {
    if (param.role !== 'parameter') continue;
    for (const name of parameterNames(param)) {
      const known = stored.get(name);
      if (known === undefined || seen.has(known.tensor)) continue;
      seen.add(known.tensor);
      found.push({ name: known.own, tensor: known.tensor });
    }
  }
  const readable = found.filter(({ tensor }) => canHoldNonFinite(tensor.dtype));
  const bytes = sumOf(readable, ({ tensor }) => tensor.bytes);
  const isRemote = checkpoint.files.some((file) => file.isRemote);
  const skipped = all ? null : isRemote ? 'remote' : bytes > SCANNED_BYTES ? 'size' : null;
  const counts = { tensors: readable.length, bytes, unread: found.length - readable.length };
  if (skipped !== null) return { skipped, ...counts, bad: [], beyondFloat16: [] };
  const bad: BadTensor[] = [];
  const beyondFloat16: { tensor: string; values: number }[] = [];
  const progress = display.bytes('searching NaN', bytes);
  try {
    for (const { name, tensor } of readable) {
      const {
        nan,
        infinite,
        first,
        beyondFloat16: values,
      } = await nonFiniteIn(tensor, progress.add);
      const { dtype, shape } = tensor;
      if (first !== null) {
        bad.push({ tensor: name, dtype, shape, nan, infinite, first: indexAt(first, shape) });
      }
      if (values > 0) beyondFloat16.push({ tensor: name, values });
    }
  } finally {
    progress.end();
  }
  return { skipped, ...counts, bad, beyondFloat16 };
}
