/** The importances of the matrices of a GGUF file, from the file of `--imatrix`. */
import { createHash } from 'node:crypto';
import path from 'node:path';
import { UserError } from '../../../base/errors.js';
import { formatInteger } from '../../../base/text/units.js';
import { quoted, quotedNames } from '../../../checkpoint/checkpoint-rules.js';
import type { GgufValue } from '../../../checkpoint/gguf/gguf-scanner.js';
import { type ImportanceMatrix, readImatrix } from '../../../checkpoint/gguf/imatrix.js';
import type { PlannedTensor } from './conversion-plan.js';

/** Importances for a file, and what to say of them. */
export interface Importance {
  /** By the names of the output. */
  readonly values: ImportanceMatrix;
  readonly sha256: string;
  /** Keys of the metadata, as llama-quantize writes them. */
  readonly keys: ReadonlyMap<string, GgufValue>;
  readonly notes: readonly string[];
}

/** llama-imatrix can state another size for the embedding, which llama-quantize then leaves out. */
const EMBEDDING = 'token_embd.weight';

/**
 * Reads the importances of the matrices that are quantized.
 * @throws UserError for a file that is no importance matrix, or one of another model.
 */
export function importanceFor(file: string, tensors: readonly PlannedTensor[]): Importance {
  const found = readImatrix(file);
  const values = new Map<string, Float32Array>();
  const without: string[] = [];
  const idle: string[] = [];
  for (const { name, shape, blocks } of tensors) {
    // The scale of a block of Q8_0 follows from its largest value alone.
    if (blocks === undefined || blocks === 'Q8_0') continue;
    const own = found.get(name);
    const size = sizeOf(shape);
    const columns = shape.at(-1) ?? 1;
    if (own === undefined || (own.length !== size && name === EMBEDDING)) without.push(name);
    else if (own.length === size) {
      const { weights, unreached } = reached(own, columns);
      values.set(name, weights);
      if (unreached > 0) idle.push(`${quoted(name)} (${unreached} of ${size / columns})`);
    } else throw otherSize(file, name, own.length, size);
  }
  if (values.size === 0) throw otherModel(file, found);
  const names = new Set(tensors.map(({ name }) => name));
  const unread = [...found.keys()].filter((name) => !names.has(name));
  return {
    values,
    sha256: sha256Of(values),
    keys: new Map<string, GgufValue>([
      ['quantize.imatrix.file', { type: 'string', value: path.basename(file) }],
      ['quantize.imatrix.entries_count', { type: 'u32', value: found.size }],
    ]),
    notes: [
      `Importances of ${values.size === 1 ? '1 matrix' : `${formatInteger(values.size)} matrices`} from ${file}`,
      ...(idle.length > 0
        ? [`Experts with importances of zero get equal ones: ${idle.join(', ')}`]
        : []),
      ...(without.length > 0 ? [`No importances for ${quotedNames(without)}`] : []),
      ...(unread.length > 0
        ? [`Importances that no tensor of the output has: ${quotedNames(unread)}`]
        : []),
    ],
  };
}

function sha256Of(values: ImportanceMatrix): string {
  const hash = createHash('sha256');
  for (const [name, { buffer, byteOffset, byteLength }] of values) {
    hash.update(JSON.stringify(name)).update(new Uint8Array(buffer, byteOffset, byteLength));
  }
  return hash.digest('hex');
}

/**
 * Importances with 1 for the experts that have zeros alone, as llama.cpp gives those without tokens: a search weighed with
 * zeros would make their matrices zero.
 */
function reached(values: Float32Array, columns: number) {
  const weights = values.slice();
  let unreached = 0;
  for (let at = 0; at < weights.length; at += columns) {
    const expert = weights.subarray(at, at + columns);
    if (expert.some((value) => value !== 0)) continue;
    expert.fill(1);
    unreached++;
  }
  return { weights, unreached };
}

/** Values of an entry: the columns, those of each expert. */
const sizeOf = (shape: readonly number[]): number =>
  (shape.at(-1) ?? 1) * (shape.length > 2 ? (shape[0] ?? 1) : 1);

const otherSize = (file: string, name: string, found: number, expected: number) =>
  new UserError('refused-file', `${file} is the importance matrix of another model`, {
    problems: [
      {
        severity: 'error',
        file,
        path: `entry ${quoted(name)}`,
        message: `expected ${formatInteger(expected)} values, found ${formatInteger(found)}`,
        suggestion: 'compute it with llama-imatrix from a GGUF file of this model',
      },
    ],
  });

const otherModel = (file: string, found: ImportanceMatrix) =>
  new UserError('refused-file', `${file} is the importance matrix of another model`, {
    problems: [
      {
        severity: 'error',
        file,
        message: `none of its ${found.size} entries is a matrix of the output; found ${quotedNames([...found.keys()])}`,
        suggestion: 'compute it with llama-imatrix from a GGUF file of this model',
      },
    ],
  });
