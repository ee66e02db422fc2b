/** Gradients in a checkpoint file. */

import { UserError } from '../../base/errors.js';
import { decodeValues, numbersIn } from '../../base/tensor/decode-values.js';
import { isSameShape, shapeText } from '../../base/tensor/dtype.js';
import { setting } from '../../base/text/setting.js';
import { shortened } from '../../base/text/words.js';
import { type StoredNames, storedNames } from '../../checkpoint/names.js';
import { openCheckpoint } from '../../checkpoint/open.js';
import type { StoredTensor } from '../../checkpoint/stored-tensor.js';
import { readInChunks } from '../../checkpoint/view.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import type { Param } from '../../model/architecture/param.js';
import { tensorsOf } from '../../model/architecture/walk.js';

/**
 * Reads the gradients of a model, in one pass and without holding a tensor in memory.
 * @param file A checkpoint whose tensors are gradients, in any format that minimind reads.
 * @param model The model that is trained; parameters that are frozen have no gradient.
 * @param take Called with values of each tensor; they are overwritten by the next call.
 * @returns Tensors of the model without a gradient.
 * @throws UserError if the file cannot be read, or has gradients of another model.
 */
export async function readGradients(
  file: string,
  model: LanguageModel,
  take: (values: Float64Array) => void,
): Promise<number> {
  const checkpoint = openCheckpoint(file);
  try {
    const { tensors, missing } = gradientsOf(model, storedNames(checkpoint), file);
    let target = new Float64Array(0);
    for (const tensor of tensors) {
      for await (const bytes of readInChunks(tensor)) {
        const numbers = numbersIn(tensor.dtype, bytes.length);
        if (target.length < numbers) target = new Float64Array(numbers);
        take(target.subarray(0, decodeValues(tensor.dtype, bytes, target)));
      }
    }
    return missing;
  } finally {
    checkpoint.close();
  }
}

/**
 * The gradients of a model's parameters, those of a tied one once.
 * @throws UserError for a tensor that is not a parameter of the model, or has another shape.
 */
function gradientsOf(
  model: LanguageModel,
  stored: StoredNames,
  file: string,
): { readonly tensors: readonly StoredTensor[]; readonly missing: number } {
  const parameters = tensorsOf(model).filter(({ role }) => role === 'parameter');
  const byName = new Map(
    parameters.flatMap((each) => [each.name, ...each.aliases].map((name) => [name, each])),
  );
  const found = new Map<Param, StoredTensor>();
  for (const [name, { own, tensor }] of stored) {
    const parameter = byName.get(name);
    const isOfModel = parameter !== undefined && isSameShape(parameter.shape, tensor.shape);
    if (!isOfModel) throw otherModel(file, own, tensor, parameter);
    if (!found.has(parameter)) found.set(parameter, tensor);
  }
  return { tensors: [...found.values()], missing: parameters.length - found.size };
}

function otherModel(
  file: string,
  name: string,
  { shape }: StoredTensor,
  parameter: Param | undefined,
): UserError {
  const expected = parameter
    ? `${shapeText(parameter.shape)}, as the parameter of the model, found ${shapeText(shape)}`
    : 'a parameter of the model, which has none of this name';
  return new UserError(
    'refused-file',
    `${setting('gradients')}: ${file}: tensor ${shortened(name, 80)}: expected ${expected}`,
    {
      suggestion:
        'give the gradients of this model: {name: p.grad for name, p in model.named_parameters() if p.grad is not None}',
    },
  );
}
