/** The teacher of an ablation: a width by name or config, or keys from a file. */
import { quoted } from '../checkpoint/checkpoint-rules.js';
import { openCheckpoint } from '../checkpoint/open.js';
import { readInChunks } from '../checkpoint/view.js';
import type { Problem } from '../errors.js';
import { UserError } from '../errors.js';
import type { Values } from '../runtime/engine.js';
import { decodeValues, numbersIn } from '../tensor/decode-values.js';
import { STORED_DTYPES } from '../tensor/dtype.js';
import { formatInteger } from '../text/units.js';
import { loadTeachers } from './costs.js';

export interface AblatedTeacher {
  /** Width of a named teacher or a config, or a file with its keys. */
  readonly text: string;
  readonly width: number;
  /** Rows of keys [rows, width]; undefined without a file of keys. */
  readonly keys?: Values;
  /** Tensor with the keys. */
  readonly tensor?: string;
  readonly warnings: readonly Problem[];
}

const KEYS = /^(?!output\.).+\.K$/s;

/**
 * Teacher of `--teacher`: NAME:WIDTH, a config, or a .safetensors or .pt file of keys and values as `project` reads it.
 * @param rows Rows of keys to read.
 * @throws UserError for a file without keys, or with fewer rows.
 */
export async function ablatedTeacher(text: string, rows: number): Promise<AblatedTeacher> {
  if (/\.(?:safetensors|pt)$/i.test(text)) return { ...(await keysIn(text, rows)), warnings: [] };
  const { teachers, warnings } = await loadTeachers([text]);
  const [{ name = text, width = 0 } = {}] = teachers;
  return { text: name, width, warnings };
}

async function keysIn(file: string, rows: number) {
  const checkpoint = openCheckpoint(file);
  try {
    const [name, tensor] = [...checkpoint.tensors].find(([each]) => KEYS.test(each)) ?? [];
    const width = tensor?.shape.at(-1) ?? 0;
    if (name === undefined || tensor === undefined || width === 0) {
      throw new UserError('usage', `--teacher: found no keys in ${file}`, {
        suggestion: 'name the tensor of keys TEACHER.K, with the teacher’s width last',
      });
    }
    if (STORED_DTYPES[tensor.dtype].kind !== 'float') {
      throw new UserError('usage', `--teacher: expected floats in ${quoted(name)}`);
    }
    const found = tensor.elements / width;
    if (found < rows) {
      throw new UserError(
        'usage',
        `--teacher: expected ${formatInteger(rows)} rows of keys, found ${formatInteger(found)} in ${quoted(name)}`,
        { suggestion: `write --batch 1 --context ${found}` },
      );
    }
    const data = new Float32Array(rows * width);
    let at = 0;
    for await (const bytes of readInChunks(tensor)) {
      const numbers = new Float64Array(numbersIn(tensor.dtype, bytes.length));
      decodeValues(tensor.dtype, bytes, numbers);
      data.set(numbers.subarray(0, data.length - at), at);
      at += Math.min(numbers.length, data.length - at);
      if (at === data.length) break;
    }
    if (!data.every(Number.isFinite)) {
      throw new UserError('usage', `--teacher: ${quoted(name)} has values that are not finite`);
    }
    return { text: file, width, keys: { shape: [rows, width], data }, tensor: name };
  } finally {
    checkpoint.close();
  }
}
