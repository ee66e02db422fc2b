/** A checkpoint with a LoRA adapter merged into its weights, computed where they are read. */
import { decodeValues } from '../../base/tensor/decode-values.js';
import type { Shape } from '../../base/tensor/dtype.js';
import { isSameShape, STORED_DTYPES, shapeText } from '../../base/tensor/dtype.js';
import { encode, isEncodable } from '../../base/tensor/encode.js';
import { setting } from '../../base/text/setting.js';
import type { Checkpoint } from '../checkpoint.js';
import { quotedNames, refusal, tensorPlace } from '../checkpoint-rules.js';
import { computedTensor, reshaped } from '../computed-file.js';
import type { StoredTensor } from '../stored-tensor.js';
import { readTensor } from '../view.js';
import type { LoraAdapter, LoraModule } from './adapter.js';
import { replacedTest } from './adapter-config.js';

/** All names of a parameter, its own included. */
export type NamesOf = (name: string) => readonly string[];

/** A product of two factors that is added to the weight of a module. */
interface Addition {
  readonly module: LoraModule;
  /** Whether the stored weight is [inputs, outputs], as in an embedding. */
  readonly isTransposed: boolean;
}

/** Changes of a tensor. */
interface Change {
  /** Values instead of the model's own. */
  replacement?: StoredTensor;
  readonly additions: Addition[];
  /** Biases that are added, each times its scale. */
  readonly biases: { readonly bias: StoredTensor; readonly scale: number }[];
}

/** Changes of an adapter to a model. */
export interface AdapterChanges {
  readonly changes: ReadonlyMap<string, Change>;
  readonly faults: readonly AdapterFault[];
}

/** Type and shape of a tensor that an adapter must fit. */
export type TensorType = Pick<StoredTensor, 'dtype' | 'shape'>;

/** A tensor that the model does not have, or has in another shape or type than the adapter needs. */
export interface AdapterFault {
  readonly name: string;
  /** Needs of the adapter. */
  readonly shape: Shape;
  /** The tensor of the model; undefined if there is none. */
  readonly found: TensorType | undefined;
}

const faultText = ({ name, shape, found }: AdapterFault): string =>
  found
    ? `${name} is ${found.dtype} ${shapeText(found.shape)}, expected floats ${shapeText(shape)}`
    : `no tensor ${name}`;

/**
 * The checkpoint with the adapter merged, as PEFT's merge_and_unload does: in float32, then rounded to the type of the
 * weight.
 * @throws UserError when the adapter does not fit the model, or has settings that are not read.
 */
export function mergedCheckpoint(
  base: Checkpoint,
  adapter: LoraAdapter,
  namesOf: NamesOf,
): Checkpoint {
  const { config, checkpoint } = adapter;
  if (config.unread.length > 0) {
    throw refusal(config.file, {
      rule: 'adapter-setting',
      message: `has settings that change the weights and are not read: ${config.unread.join(', ')}`,
      suggestion: 'merge it with PEFT: model.merge_and_unload()',
    });
  }
  refuseUntying(adapter, namesOf);
  const { changes, faults } = adapterChanges(base.tensors, adapter, namesOf);
  if (faults.length > 0) {
    throw refusal(checkpoint.path, {
      rule: 'adapter-fits',
      message: `does not fit ${base.path}: ${faults.slice(0, MOST_FAULTS).map(faultText).join('; ')}${faults.length > MOST_FAULTS ? `; and ${faults.length - MOST_FAULTS} more` : ''}`,
      suggestion: config.base
        ? `name the model that it was trained on: ${config.base}`
        : 'name the model that it was trained on',
    });
  }
  const packed = new Set(base.packed?.weights);
  const made = new Map<Change, StoredTensor>();
  const tensors = new Map(
    [...base.tensors].map(([name, tensor]) => {
      const change = changes.get(name);
      if (change === undefined) return [name, tensor] as const;
      if (packed.has(name) || tensor.encoding) {
        throw refusal(base.path, {
          rule: 'adapter-floats',
          place: tensorPlace(name),
          message: `is stored as ${tensor.encoding?.type ?? 'packed integers'}; expected floats, to which an adapter can be added`,
          suggestion: `name the model in floats, or write it with ${setting('dequantize')} first`,
        });
      }
      const merged = made.get(change) ?? mergedTensor(base.path, name, tensor, change);
      made.set(change, merged);
      return [name, merged] as const;
    }),
  );
  return {
    ...base,
    tensors,
    warnings: [...base.warnings, ...checkpoint.warnings],
    files: [...base.files, ...checkpoint.files],
    close() {
      base.close();
      checkpoint.close();
    },
  };
}

const MOST_FAULTS = 3;

/**
 * PEFT copies each module of `modules_to_save`, so that a weight that was shared with another module has values of its own
 * afterwards. The config of the model would still share it.
 */
function refuseUntying({ config, replaced }: LoraAdapter, namesOf: NamesOf): void {
  const isReplaced = replacedTest(config);
  for (const name of replaced.keys()) {
    if (!isReplaced(name)) continue;
    const shared = NAMES.map((rename) => namesOf(rename(name))).find(({ length }) => length > 1);
    if (shared === undefined) continue;
    throw refusal(config.file, {
      rule: 'adapter-tied',
      place: 'modules_to_save',
      message: `replaces one of ${quotedNames(shared)}, which are one tensor in the model; PEFT unties them`,
      suggestion: 'merge it with PEFT, and save the model untied: model.merge_and_unload()',
    });
  }
}

/** Matches the tensors of an adapter with those of a model, by names and shapes. */
export function adapterChanges(
  tensors: ReadonlyMap<string, TensorType>,
  { config, modules, replaced }: Pick<LoraAdapter, 'config' | 'modules' | 'replaced'>,
  namesOf: NamesOf,
): AdapterChanges {
  const faults: AdapterFault[] = [];
  const changes = new Map<string, Change>();
  const changeOf = (name: string): readonly [Change, TensorType] | undefined => {
    const stored = NAMES.map((rename) => rename(name))
      .flatMap((each) => namesOf(each))
      .filter((each) => tensors.has(each));
    const tensor = tensors.get(stored[0] ?? '');
    if (tensor === undefined) return undefined;
    const known = stored.map((each) => changes.get(each)).find((each) => each !== undefined);
    const change = known ?? { additions: [], biases: [] };
    for (const each of stored) changes.set(each, change);
    return [change, tensor];
  };
  for (const [name, tensor] of replaced) {
    const found = changeOf(name);
    const isRight =
      found &&
      isSameShape(found[1].shape, tensor.shape) &&
      isEncodable(tensor.dtype) &&
      isEncodable(found[1].dtype);
    if (isRight) found[0].replacement ??= tensor;
    else faults.push({ name, shape: tensor.shape, found: found?.[1] });
  }
  const isStoredTransposed = hasTransposed(modules, (name) => changeOf(name)?.[1]);
  for (const module of modules) {
    const found = changeOf(`${module.path}.weight`);
    const shape = [module.b.shape[0] ?? 0, module.a.shape[1] ?? 0];
    const tensor = found?.[1];
    const isPlain = tensor && isSameShape(tensor.shape, shape) && !module.isEmbedding;
    const isTurned = tensor && isSameShape(tensor.shape, shape.toReversed());
    if (!found || !tensor || !(isPlain || isTurned) || !isEncodable(tensor.dtype)) {
      const expected = module.isEmbedding ? shape.toReversed() : shape;
      faults.push({ name: `${module.path}.weight`, shape: expected, found: tensor });
      continue;
    }
    const isSquare = shape[0] === shape[1];
    const isTransposed =
      module.isEmbedding ||
      (isSquare
        ? isTransposedName(module.path) && (isStoredTransposed || config.isFanInFanOut)
        : !isPlain);
    found[0].additions.push({ module, isTransposed });
    if (module.bias === undefined) continue;
    const bias = changeOf(`${module.path}.bias`);
    if (bias && isSameShape(bias[1].shape, module.bias.shape)) {
      bias[0].biases.push({ bias: module.bias, scale: module.scale });
    } else {
      faults.push({ name: `${module.path}.bias`, shape: module.bias.shape, found: bias?.[1] });
    }
  }
  // A name that was only looked up changes nothing.
  for (const [name, { replacement, additions, biases }] of changes) {
    if (!replacement && additions.length + biases.length === 0) changes.delete(name);
  }
  return { changes, faults };
}

/** Forms of a name: as it is, without the outer model, or with a model around it. */
const NAMES: readonly ((name: string) => string)[] = [
  (name) => name,
  (name) => name.slice(name.indexOf('.') + 1),
  (name) => `model.${name}`,
  (name) => `transformer.${name}`,
];

/** Modules of the class Conv1D of transformers, which stores [inputs, outputs]: GPT-2 and models after it. */
const isTransposedName = (module: string): boolean =>
  /\.(?:c_attn|c_proj|c_fc|q_attn)$/.test(module);

/** Whether a weight that is not square shows that the model stores some as [inputs, outputs]. */
const hasTransposed = (
  modules: readonly LoraModule[],
  weightOf: (name: string) => TensorType | undefined,
): boolean =>
  modules.some(({ path, a, b, isEmbedding }) => {
    const weight = isEmbedding || !isTransposedName(path) ? undefined : weightOf(`${path}.weight`);
    const [outputs, inputs] = [b.shape[0], a.shape[1]];
    return outputs !== inputs && weight?.shape[0] === inputs && weight?.shape[1] === outputs;
  });

function mergedTensor(file: string, name: string, own: StoredTensor, change: Change): StoredTensor {
  const { dtype, shape, elements, bytes } = own;
  if (!isEncodable(dtype)) throw new Error(`${name} is of type ${dtype}`);
  const width = STORED_DTYPES[dtype].bits / 8;
  const source = change.replacement ?? own;
  const values = reshaped(source, [elements]).storage.file;
  const sourceWidth = STORED_DTYPES[source.dtype].bits / 8;
  const factors = change.additions.map((addition) => factorsOf(addition));
  const biases = change.biases.map(({ bias, scale }) => ({ scale, values: floatsOf(bias) }));
  return computedTensor(own.storage.file, {
    ...{ dtype, shape, elements, bytes },
    fill(target, position) {
      const count = target.length / width;
      const first = position / width;
      const stored = new Uint8Array(count * sourceWidth);
      values.readInto(stored, first * sourceWidth);
      const numbers = new Float64Array(count);
      decodeValues(source.dtype, stored, numbers);
      if (change.replacement) roundTo(dtype, numbers);
      for (const factor of factors) {
        addProduct(factor(), shape[1] ?? 1, first, numbers);
        roundTo(dtype, numbers);
      }
      for (const { scale, values: added } of biases) {
        const from = added();
        for (let i = 0; i < count; i++) {
          numbers[i] = (numbers[i] ?? 0) + Math.fround((from[first + i] ?? 0) * Math.fround(scale));
        }
      }
      const overflow = encode(dtype, numbers, target);
      if (overflow < 0) return;
      throw refusal(file, {
        rule: 'adapter-range',
        place: tensorPlace(name),
        message: `becomes ${numbers[overflow]} in value ${first + overflow}, which ${dtype} cannot hold`,
        suggestion: `write the model in a wider ${setting('dtype')} first`,
      });
    },
  });
}

/** Rounds numbers to a type, as each step of a merge stores them. */
function roundTo(dtype: StoredTensor['dtype'], numbers: Float64Array): void {
  if (!isEncodable(dtype) || dtype === 'F64') return;
  const stored = new Uint8Array((numbers.length * STORED_DTYPES[dtype].bits) / 8);
  // An overflow is reported when the last step is stored.
  if (encode(dtype, numbers, stored) < 0) decodeValues(dtype, stored, numbers);
}

/** Factors in the order of the stored rows: rows [rows, rank] times columns [rank, columns]. */
interface Factors {
  readonly rows: Float32Array;
  readonly columns: Float32Array;
  readonly rank: number;
  readonly scale: number;
}

/** Cache of the factors that were read last, because a tensor is read in pieces. */
let recent: { readonly addition: Addition; readonly factors: Factors } | undefined;

const factorsOf = (addition: Addition) => (): Factors => {
  if (recent?.addition === addition) return recent.factors;
  const { module, isTransposed } = addition;
  const { rank, scale } = module;
  const [a, b] = [floatsOf(module.a)(), floatsOf(module.b)()];
  const factors = isTransposed
    ? { rows: transposed(a, rank), columns: transposed(b, b.length / rank), rank, scale }
    : { rows: b, columns: a, rank, scale };
  recent = { addition, factors };
  return factors;
};

const floatsOf = (tensor: StoredTensor) => (): Float32Array => {
  const numbers = new Float64Array(tensor.elements);
  decodeValues(tensor.dtype, readTensor(tensor), numbers);
  return Float32Array.from(numbers);
};

/** [rows, columns] → [columns, rows]. */
function transposed(values: Float32Array, rows: number): Float32Array {
  const columns = values.length / rows;
  const turned = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      turned[column * rows + row] = values[row * columns + column] ?? 0;
    }
  }
  return turned;
}

/** Adds scale · rows · columns to the values of a range of the product, in row-major order. */
function addProduct(
  { rows, columns, rank, scale }: Factors,
  width: number,
  first: number,
  numbers: Float64Array,
): void {
  const factor = Math.fround(scale);
  // Each sum is rounded to float32 like that of PyTorch, which multiplies and adds in one step.
  const sums = new Float32Array(Math.min(width, numbers.length));
  for (let done = 0; done < numbers.length; ) {
    const row = Math.floor((first + done) / width);
    const from = (first + done) % width;
    const count = Math.min(width - from, numbers.length - done);
    sums.fill(0, 0, count);
    for (let k = 0; k < rank; k++) {
      const weight = rows[row * rank + k] ?? 0;
      const start = k * width + from;
      for (let i = 0; i < count; i++) sums[i] = (sums[i] ?? 0) + weight * (columns[start + i] ?? 0);
    }
    for (let i = 0; i < count; i++) {
      const added = Math.fround((sums[i] ?? 0) * factor);
      numbers[done + i] = (numbers[done + i] ?? 0) + added;
    }
    done += count;
  }
}
