/** Reads an output again, and compares it with what it should be. */
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { isSameView } from '../checkpoint/stored-tensor.js';
import { chunksOf } from '../checkpoint/view.js';
import { UserError } from '../errors.js';
import { isSameShape } from '../tensor/dtype.js';
import { storedUnder } from './output-values.js';
import type { ConversionPlan, PlannedTensor } from './plan.js';

/**
 * @param valuesOf The bytes that a tensor should have.
 * @throws UserError when a name is missing, or a tensor has other values.
 */
export async function checkOutput(
  { tensors }: ConversionPlan,
  output: Checkpoint,
  valuesOf: (tensor: PlannedTensor) => AsyncIterable<Uint8Array>,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const names = new Set([...output.tensors.keys(), ...output.aliases.keys()]);
  const wanted = tensors.flatMap(({ name, aliases }) => [name, ...aliases]);
  const missing = wanted.find((name) => !names.has(name));
  if (missing !== undefined) throw differs(output.path, missing, 'is missing');
  if (names.size !== wanted.length) {
    throw differs(output.path, '', `has ${names.size} names instead of ${wanted.length}`);
  }
  for (const tensor of tensors) {
    const stored = storedUnder(tensor.name, output);
    if (!isSameShape(stored.shape, tensor.shape) || stored.dtype !== tensor.dtype) {
      throw differs(output.path, tensor.name, 'has another shape or type');
    }
    const loose = tensor.aliases.find((name) => !isSameView(storedUnder(name, output), stored));
    if (loose !== undefined) throw differs(output.path, loose, `is not ${tensor.name}`);
    await compare(chunksOf(stored), valuesOf(tensor), onBytes, () =>
      differs(output.path, tensor.name, 'has other values'),
    );
  }
}

/** What was written is not what stands there. */
export class WrongOutput extends UserError {}

function differs(file: string, name: string, message: string): UserError {
  return new WrongOutput('system', `${file} is not what was written: ${name} ${message}`, {
    suggestion: 'check the disk: what was read back differs from what should stand there',
  });
}

/** Compares bytes that come in pieces of different sizes. */
async function compare(
  found: AsyncIterable<Uint8Array>,
  wanted: AsyncIterable<Uint8Array>,
  onBytes: (bytes: number) => void,
  refuse: () => UserError,
): Promise<void> {
  const pieces = found[Symbol.asyncIterator]();
  let rest: Uint8Array = new Uint8Array();
  for await (const chunk of wanted) {
    for (let at = 0; at < chunk.length; ) {
      if (rest.length === 0) {
        const next = await pieces.next();
        if (next.done) throw refuse();
        rest = next.value;
      }
      const length = Math.min(rest.length, chunk.length - at);
      if (Buffer.compare(rest.subarray(0, length), chunk.subarray(at, at + length)) !== 0) {
        throw refuse();
      }
      rest = rest.subarray(length);
      at += length;
    }
    onBytes(chunk.length);
  }
  if (rest.length > 0 || !(await pieces.next()).done) throw refuse();
}
