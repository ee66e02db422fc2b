/**
 * Quantized weights of an output, in the layout `pack-quantized` of compressed-tensors
 * (docs/decisions/0015-quantized-checkpoints.md). Linear layers are quantized; tensors of other layers stay floats.
 */

import { usageError } from '../../../base/errors.js';
import type { Shape, StoredDtype } from '../../../base/tensor/dtype.js';
import { STORED_DTYPES } from '../../../base/tensor/dtype.js';
import type { ScaleDtype, WeightForm } from '../../../base/tensor/group-quantization.js';
import { setting } from '../../../base/text/setting.js';
import { counted } from '../../../base/text/words.js';
import { isRecord } from '../../../base/values.js';
import { isTrainingFormat } from '../../../checkpoint/formats.js';
import type { PackedPart } from '../../../checkpoint/packed-weights.js';
import { PACKED_SUFFIXES, packedWords } from '../../../checkpoint/packed-weights.js';
import { editedJson } from '../../../config/syntax/json-edits.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import type { JsonObject } from '../../../model/architecture/transformer/config-keys.js';
import { walk } from '../../../model/architecture/walk.js';
import type { WeightMatrix } from '../../../model/architecture/weight-matrices.js';
import { quantizedMatrices } from '../../../model/architecture/weight-matrices.js';
import type {
  ConversionInput,
  ConversionPlan,
  PlannedTensor,
  QuantizationPlan,
} from './conversion-plan.js';
import type { TargetConfig } from './model-configs.js';

/** Name of the settings in a `config.json`. */
const KEY = 'quantization_config';

/** The requested form. @throws UserError when it contradicts another flag. */
function weightForm({ job, place }: ConversionInput): WeightForm | undefined {
  const { quantize: bits, group } = job;
  if (bits === undefined) return undefined;
  const refuse = (message: string, suggestion: string) => usageError(message, suggestion);
  if (isTrainingFormat(place.container)) {
    throw refuse(
      `${setting('quantize')} expected an output in safetensors, found a PyTorch file`,
      'write a folder: a name without an ending',
    );
  }
  if (job.dialect !== undefined) {
    throw refuse(
      `${setting('quantize')} cannot be combined with ${setting('dialect')}`,
      'convert the names first, then quantize the output',
    );
  }
  return { bits, group: group ?? 32 };
}

/**
 * The plan with packed tensors in place of the quantized weights. The weights of a packed input become floats, and its
 * config loses the quantization.
 * @throws UserError when nothing can be quantized, or a packed input would silently become floats.
 */
export function withQuantization(plan: ConversionPlan, input: ConversionInput): ConversionPlan {
  const form = weightForm(input);
  const { packed, path } = input.job.checkpoint;
  if (packed && form === undefined && !input.job.dequantize && input.job.dtype === undefined) {
    throw usageError(
      `${path} has ${counted(packed.weights.length, 'quantized weight')}`,
      `add ${setting('dequantize')} to write them as floats, or ${setting('quantize', 'int8')} to quantize again`,
    );
  }
  if (!packed && input.job.dequantize) {
    throw usageError(
      `${setting('dequantize')} expected packed weights in ${path}, found none`,
      `remove ${setting('dequantize')}`,
    );
  }
  const config = packed ? withoutQuantization(plan.config) : plan.config;
  if (form === undefined) return { ...plan, config };
  if (config === undefined) {
    throw usageError(
      `${setting('quantize')} requires a config that describes the layers`,
      `name one with ${setting('config', 'FILE')}${input.job.noConfig ? `, and remove ${setting('noConfig')}` : ''}`,
    );
  }
  const matrices = packable(config.model, plan.tensors, form);
  const quantization: QuantizationPlan = {
    form,
    weights: [...matrices.keys()].map(({ name }) => name),
    ignored: ignoredModules(config.model, matrices),
  };
  if (matrices.size === 0) throw nothingToQuantize(path, form);
  const byName = new Map([...matrices].map(([{ name }, matrix]) => [name, matrix]));
  const partsOf = (tensor: PlannedTensor) => {
    const matrix = byName.get(tensor.name);
    return matrix ? packedTensors(tensor, matrix, form) : [tensor];
  };
  const named = new Map(plan.tensors.map((tensor) => [tensor.name, partsOf(tensor)]));
  return {
    ...plan,
    tensors: [...named.values()].flat(),
    names: plan.names.flatMap((name) =>
      byName.has(name) ? (named.get(name) ?? []).map((part) => part.name) : [name],
    ),
    config: withSettings(config, quantization),
    quantization,
    notes: [...plan.notes, ...notesOn(config, quantization)],
  };
}

const nothingToQuantize = (path: string, { group }: WeightForm) =>
  usageError(
    `${setting('quantize')} expected linear layers with a multiple of ${group} inputs in ${path}, found none`,
    `choose a smaller ${setting('group')}; quick-test ${setting('weights')} quantizes all layouts at load`,
  );

/**
 * Matrices of linear layers that can be packed. The layout does not support transposed weights, several experts in one
 * tensor, embeddings that are also read as rows, and rows that are not whole groups.
 */
function packable(
  model: LanguageModel,
  tensors: readonly PlannedTensor[],
  { group }: WeightForm,
): Map<Param, WeightMatrix> {
  const copied = new Set(
    tensors.flatMap(({ name, action, aliases, dtype }) =>
      action.do === 'copy' && aliases.length === 0 && dtype in SCALE_ROUNDING ? [name] : [],
    ),
  );
  const linear = new Set(
    walk(model).flatMap(({ layer }) => (layer.kind === 'linear' ? [layer.weight] : [])),
  );
  return new Map(
    [...quantizedMatrices(model)].filter(
      ([tensor, { columns }]) =>
        linear.has(tensor) &&
        tensor !== model.embedding.weight &&
        copied.has(tensor.name) &&
        columns % group === 0,
    ),
  );
}

/** Types of weights that can be quantized, with the relative rounding of their values. */
export const SCALE_ROUNDING = {
  F32: 2 ** -24,
  F16: 2 ** -11,
  BF16: 2 ** -8,
} as const satisfies Record<ScaleDtype, number>;

const isScaleDtype = (dtype: StoredDtype): dtype is ScaleDtype => dtype in SCALE_ROUNDING;

/** Modules of products that stay floats, by the name of the module that has the weight. */
function ignoredModules(model: LanguageModel, packed: ReadonlyMap<Param, unknown>): string[] {
  const modules = walk(model).flatMap(({ layer }) => {
    const isProduct = layer.kind === 'linear' || layer.kind === 'router';
    return isProduct && !packed.has(layer.weight) ? [layer.name] : [];
  });
  return [...new Set(modules)];
}

/** The four tensors of a packed weight. */
function packedTensors(
  weight: PlannedTensor,
  { rows, columns }: WeightMatrix,
  form: WeightForm,
): PlannedTensor[] {
  const module = weight.name.slice(0, weight.name.lastIndexOf('.'));
  const groups = columns / form.group;
  const shapes: Readonly<Record<PackedPart, readonly [StoredDtype, Shape]>> = {
    packed: ['I32', [rows, packedWords(columns, form.bits)]],
    scale: [weight.dtype, [rows, groups]],
    zeroPoint: ['I32', [packedWords(rows, form.bits), groups]],
    shape: ['I64', [2]],
  };
  if (!isScaleDtype(weight.dtype)) throw new Error(`${weight.dtype} has no scales`);
  return (Object.keys(PACKED_SUFFIXES) as PackedPart[]).map((part): PlannedTensor => {
    const [dtype, shape] = shapes[part];
    const elements = shape.reduce((product, size) => product * size, 1);
    return {
      name: `${module}.${PACKED_SUFFIXES[part]}`,
      aliases: [],
      role: weight.role,
      dtype,
      shape,
      bytes: (elements * STORED_DTYPES[dtype].bits) / 8,
      action: { do: 'quantize', weight, part, form },
    };
  });
}

// The config of a packed output.

/** Settings that compressed-tensors and transformers read. */
const quantizationSettings = ({ form, ignored }: QuantizationPlan) => ({
  quant_method: 'compressed-tensors',
  format: 'pack-quantized',
  quantization_status: 'compressed',
  config_groups: {
    group_0: {
      targets: ['Linear'],
      weights: {
        num_bits: form.bits,
        type: 'int',
        symmetric: false,
        strategy: 'group',
        group_size: form.group,
        dynamic: false,
      },
      input_activations: null,
      output_activations: null,
    },
  },
  ignore: ignored,
});

function withSettings(config: TargetConfig, quantization: QuantizationPlan): TargetConfig {
  const { written } = config;
  if (written.format !== 'json') return config;
  const settings = quantizationSettings(quantization);
  return {
    ...config,
    written: {
      ...written,
      value: { ...written.value, [KEY]: settings },
      text: editedJson(written.text, [{ path: [KEY], value: settings }], 'last'),
    },
  };
}

/** Leaves out the quantization, which wrappers may say in their text part. */
function withoutQuantization(config: TargetConfig | undefined): TargetConfig | undefined {
  const { written } = config ?? {};
  if (config === undefined || written === undefined) return config;
  const sections = Object.entries(written.value).filter(
    ([, section]) => isRecord(section) && Object.hasOwn(section, KEY),
  );
  if (sections.length === 0 && !Object.hasOwn(written.value, KEY)) return config;
  const { [KEY]: own, ...rest } = written.value;
  const bare = sections.map(([name, section]) => {
    const { [KEY]: _, ...kept } = section as JsonObject;
    return [name, kept];
  });
  const edits = [
    ...(own === undefined ? [] : [{ path: [KEY], value: undefined }]),
    ...sections.map(([name]) => ({ path: [name, KEY], value: undefined })),
  ];
  const text = written.format === 'json' ? editedJson(written.text, edits) : written.text;
  const value = { ...rest, ...Object.fromEntries(bare) };
  return { ...config, written: { ...written, value, text } };
}

const notesOn = ({ written }: TargetConfig, { ignored }: QuantizationPlan): string[] => [
  ...(ignored.length === 0
    ? []
    : [`Linear layers that stay floats: ${ignored.length}, the list "ignore" in the config`]),
  'Embedding, norms and biases stay floats',
  ...(written.format === 'json' && isRecord(written.value)
    ? []
    : ['The config has no quantization_config: other programs cannot read the packed weights']),
];
