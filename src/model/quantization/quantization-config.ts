/** Parses the `quantization_config` of a `config.json`: the method, and the weights it applies to. */

import { asNumber, asText, isRecord, ownValue } from '../../base/values.js';
import { quote } from '../../config/quote.js';
import type { JsonObject } from '../architecture/transformer/config-keys.js';
import {
  awq,
  fourBitsOfBitsandbytes,
  type Granularity,
  gptq,
  groupsAlongRow,
  int8OfBitsandbytes,
  type Layout,
  mlxLayout,
  packQuantized,
  type StoredPart,
  scaledLayout,
} from './layouts.js';
import { isOfMlx, type MlxSettings, mlxSettings } from './mlx-settings.js';
import { modulePatterns } from './module-pattern.js';

/** A module that a quantization method may replace. */
export interface Module {
  readonly name: string;
  readonly rows: number;
  readonly length: number;
  readonly isHead: boolean;
  readonly isExpert: boolean;
  readonly isTransposed: boolean;
  /** Whether it is a table of embeddings, which few methods quantize. */
  readonly isEmbedding?: true;
}

/** Dtype of the served weights, in the names of `fit --dtype`. */
export interface ServedType {
  readonly dtype: 'f8' | 'int8' | 'int4' | 'mxfp4' | 'nvfp4';
  /** Values of a row per scale, if the config gives it. */
  readonly group?: number;
}

/** Storage format of a model's weights. */
export interface Quantization {
  /** Name of the method in the config. */
  readonly method: string;
  /** `fp8, blocks of 128×128` */
  readonly label: string;
  /** Bits and dtype of values that are not quantized. */
  readonly otherBits: number;
  readonly otherType: string;
  readonly layout: (module: Module) => readonly StoredPart[];
  isQuantized(module: Module): boolean;
  readonly served?: ServedType;
  /** Whether it quantizes embeddings too. */
  readonly takesEmbedding?: true;
}

/** Result of parsing: a quantization, or the reason why it is not supported. */
export interface QuantizationReading {
  readonly quantization?: Quantization;
  readonly doubts: readonly string[];
}

/** Part of a quantization that the method determines. */
interface Scheme {
  readonly label: string;
  readonly layout: (module: Module) => readonly StoredPart[];
  readonly isQuantized: (module: Module) => boolean;
  readonly served?: ServedType;
  readonly takesEmbedding?: true;
  readonly doubts?: readonly string[];
}

type Method = (config: JsonObject, otherBits: number) => Scheme | UnreadConfig;

const texts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];

const positiveInteger = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && asNumber(value) > 0 ? asNumber(value) : undefined;

// ── Which modules ────────────────────────────────────────────────────────────────────────────────

interface Selection {
  readonly isLeftOut: (name: string) => boolean;
  readonly doubts: readonly string[];
}

/** Modules whose names match a pattern at the start, or end with its text if `isEnding`. */
function leftOut(patterns: readonly string[], { isEnding }: { isEnding: boolean }): Selection {
  const { matches, notUnderstood } = modulePatterns(patterns);
  const endings = new Set(isEnding ? patterns : []);
  return {
    isLeftOut: (name) => matches(name) || (endings.size > 0 && endsWithOne(name, endings)),
    doubts: notUnderstood.map((text) => `the pattern ${quote(text)} is not understood`),
  };
}

function endsWithOne(name: string, endings: ReadonlySet<string>): boolean {
  for (let from = 0; from < name.length; from++) if (endings.has(name.slice(from))) return true;
  return false;
}

/** Linear layers selected by `should_convert_module` of transformers 5.18: without a list, all but the head. */
function linears(list: unknown, { isHeadKept = false, takesConv1d = false } = {}) {
  const { isLeftOut, doubts } = leftOut(texts(list), { isEnding: true });
  const isQuantized = ({ name, isHead, isTransposed }: Module) =>
    !(isHead && (isHeadKept || list == null)) && (takesConv1d || !isTransposed) && !isLeftOut(name);
  return { isQuantized, doubts };
}

// ── Methods ──────────────────────────────────────────────────────────────────────────────────────

/** Block size of MX formats (OCP Microscaling Formats 1.0): values along a row that share a one-byte scale. */
const MX_BLOCK = 32;

/**
 * Layouts of experts in a model whose other matrices are in FP8, by the value of `expert_dtype`. DeepSeek-V4 stores two
 * FP4 values in a byte, and a scale of one byte for 32 values (inference/model.py of its repository, `Linear`).
 */
const EXPERT_LAYOUTS: Readonly<Record<string, Layout>> = {
  fp4: scaledLayout({ bits: 4, scaleBits: 8, granularity: groupsAlongRow(MX_BLOCK) }),
};

const fp8: Method = ({ quant_method: method, ...config }) => {
  const { weight_block_size: size = method === 'mxfp8' ? [1, MX_BLOCK] : [128, 128] } = config;
  const { expert_dtype: ofExperts = 'fp8' } = config;
  const experts = ownValue(EXPERT_LAYOUTS, asText(ofExperts));
  if (experts === undefined && ofExperts !== 'fp8')
    return { doubt: `expert_dtype ${quote(asText(ofExperts))} is not fp8 or fp4` };
  const [rows, length] = (Array.isArray(size) ? size : []).map(positiveInteger);
  if (size !== null && (!rows || !length))
    return { doubt: 'weight_block_size is not [rows, columns]' };
  const granularity: Granularity =
    rows && length ? { per: 'block', rows, length } : { per: 'tensor' };
  const isByte = method === 'mxfp8' || config.scale_fmt === 'ue8m0';
  const layout = scaledLayout({
    bits: 8,
    scaleBits: isByte ? 8 : 32,
    granularity,
    singles: config.activation_scheme === 'static' ? 1 : 0,
  });
  const label = rows
    ? `${asText(method)}, blocks of ${rows}×${length}`
    : `${asText(method)}, a scale for each tensor`;
  return {
    label: experts ? `${label}, experts in ${asText(ofExperts)}` : label,
    layout: (module) => (module.isExpert && experts ? experts : layout)(module),
    ...linears(config.modules_to_not_convert ?? config.ignored_layers),
    served: { dtype: experts ? 'mxfp4' : 'f8' },
  };
};

const fbgemm: Method = ({ modules_to_not_convert: list }) => ({
  label: 'fbgemm_fp8, a scale for each row',
  layout: scaledLayout({ bits: 8, scaleBits: 32, granularity: { per: 'row' } }),
  ...linears(list),
  served: { dtype: 'f8' },
});

const mxfp4: Method = ({ modules_to_not_convert: list }) => {
  const { isLeftOut, doubts } = leftOut(texts(list), { isEnding: true });
  return {
    label: `mxfp4, blocks of ${MX_BLOCK}, experts only`,
    layout: scaledLayout({ bits: 4, scaleBits: 8, granularity: groupsAlongRow(MX_BLOCK) }),
    isQuantized: ({ name, isExpert }) => isExpert && !isLeftOut(name),
    doubts,
    served: { dtype: 'mxfp4' },
  };
};

const bitsandbytes: Method = (config) => {
  const { llm_int8_skip_modules: list } = config;
  const chosen = linears(list, { takesConv1d: true });
  if (config.load_in_4bit ?? config._load_in_4bit) {
    const { bnb_4bit_quant_type: type = 'fp4', bnb_4bit_use_double_quant: isNested } = config;
    if (type !== 'fp4' && type !== 'nf4') return { doubt: 'bnb_4bit_quant_type is not fp4 or nf4' };
    return {
      label: `bitsandbytes ${type}, blocks of 64${isNested ? ', scales quantized' : ''}`,
      layout: fourBitsOfBitsandbytes(isNested === true),
      ...chosen,
      served: { dtype: 'int4', group: 64 },
    };
  }
  if (!(config.load_in_8bit ?? config._load_in_8bit)) {
    return { doubt: 'neither load_in_8bit nor load_in_4bit is true' };
  }
  return {
    label: 'bitsandbytes int8, a scale for each row',
    layout: int8OfBitsandbytes,
    ...chosen,
    served: { dtype: 'int8' },
  };
};

/** Dimensions must be multiples of this for the packed layers of GPTQ and AWQ; other layers stay unquantized. */
const PACKED_MULTIPLE = 32;

const isPackable = ({ rows, length }: Module) =>
  rows % PACKED_MULTIPLE === 0 && length % PACKED_MULTIPLE === 0;

/** Packing parameters of GPTQ and AWQ. */
interface Packing {
  readonly bits: number;
  /** Inputs per scale; undefined for all inputs. */
  readonly group: number | undefined;
  readonly words: string;
  readonly served?: ServedType;
}

interface UnreadConfig {
  readonly doubt: string;
}

const isDoubt = (found: object): found is UnreadConfig => 'doubt' in found;

function packing(config: JsonObject, allowed: readonly number[]): Packing | UnreadConfig {
  const { bits = config.w_bit ?? 4, group_size: size = config.q_group_size ?? 128 } = config;
  const width = positiveInteger(bits);
  const group = size === -1 ? undefined : positiveInteger(size);
  if (width === undefined || !allowed.includes(width)) {
    return { doubt: `bits are not one of ${allowed.join(', ')}` };
  }
  if (size !== -1 && group === undefined) return { doubt: 'group_size is not a number of values' };
  const grouped = group === undefined ? 'a scale for each row' : `groups of ${group}`;
  const dtype = width === 4 ? 'int4' : width === 8 ? 'int8' : undefined;
  return {
    bits: width,
    group,
    words: `${width} bits, ${grouped}`,
    ...(dtype && { served: { dtype, ...(group && { group }) } }),
  };
}

const GPTQ_BITS = [2, 3, 4, 8];

/** Modules left out by per-module settings; other settings are not supported. */
function dynamicOf(dynamic: unknown): Selection {
  const keys = isRecord(dynamic) ? Object.keys(dynamic) : [];
  const negative = keys.filter((key) => key.startsWith('-:'));
  const { isLeftOut, doubts } = leftOut(
    negative.map((key) => key.slice(2)),
    { isEnding: false },
  );
  const isMore = keys.length > negative.length;
  return {
    isLeftOut,
    doubts: [
      ...doubts,
      ...(isMore ? ['the bits of single modules in dynamic are not counted'] : []),
    ],
  };
}

const gptqMethod: Method = (config) => {
  const found = packing(config, GPTQ_BITS);
  if (isDoubt(found)) return found;
  const { isLeftOut, doubts } = dynamicOf(config.dynamic);
  const inner = Array.isArray(config.modules_in_block_to_quantize)
    ? config.modules_in_block_to_quantize.flatMap((each) =>
        Array.isArray(each) ? texts(each) : texts([each]),
      )
    : undefined;
  return {
    label: `gptq, ${found.words}`,
    ...(found.served && { served: found.served }),
    layout: gptq(found),
    isQuantized: (module) =>
      isPackable(module) &&
      (module.isHead
        ? config.lm_head === true
        : (inner?.some((name) => module.name.endsWith(`.${name}`)) ?? true)) &&
      !isLeftOut(module.name),
    doubts,
  };
};

const awqMethod: Method = (config) => {
  const found = packing(config, [4]);
  if (isDoubt(found)) return found;
  const { version = 'gemm' } = config;
  const isGemm = asText(version).toLowerCase() === 'gemm';
  const { isQuantized, doubts } = linears(config.modules_to_not_convert, { isHeadKept: true });
  return {
    label: `awq, ${found.words}`,
    ...(found.served && { served: found.served }),
    layout: awq(found),
    isQuantized: (module) => isPackable(module) && isQuantized(module),
    doubts: [
      ...doubts,
      ...(isGemm ? [] : [`version ${quote(asText(version))} may be packed otherwise than gemm`]),
    ],
  };
};

const autoRound: Method = (config, otherBits) => {
  const { packing_format: format = 'auto_round:gptq' } = config;
  if (/gptq/.test(asText(format))) return gptqMethod(config, otherBits);
  if (/awq/.test(asText(format))) return awqMethod(config, otherBits);
  return { doubt: `packing_format ${quote(asText(format))} is not known` };
};

/** Several groups of modules are supported only if all have the same layout. */
const compressedTensors: Method = (config, otherBits) => {
  const groups = isRecord(config.config_groups) ? Object.values(config.config_groups) : [];
  const [group] = groups;
  const weights = isRecord(group) && isRecord(group.weights) ? group.weights : undefined;
  if (groups.length !== 1 || !isRecord(group))
    return { doubt: 'it does not have one config_group' };
  if (!weights) return { doubt: 'its config_group has no weights' };
  if (!texts(group.targets).includes('Linear')) return { doubt: 'its targets are not all Linear' };
  const bits = positiveInteger(weights.num_bits);
  if (bits === undefined || ![4, 8].includes(bits)) return { doubt: 'num_bits is not 4 or 8' };
  const ignore = texts(config.ignore);
  const exact = new Set(ignore.filter((each) => !each.startsWith('re:')));
  const { isLeftOut, doubts } = leftOut(
    ignore.filter((each) => each.startsWith('re:')).map((each) => each.slice(3)),
    { isEnding: false },
  );
  const isQuantized = ({ name, isTransposed }: Module) =>
    !isTransposed && !exact.has(name) && !isLeftOut(name);
  const layout = compressedLayout({
    ...config,
    inputs: group.input_activations,
    weights,
    bits,
    otherBits,
  });
  if (isDoubt(layout)) return layout;
  const size = positiveInteger(weights.group_size);
  const type = bits === 8 ? (weights.type === 'float' ? 'f8' : 'int8') : 'int4';
  const grouped = weights.strategy === 'group' || weights.strategy === 'tensor_group';
  return {
    label: `compressed-tensors ${asText(config.format)}, ${bits} bits${grouped && size ? `, groups of ${size}` : ''}`,
    ...layout,
    isQuantized,
    doubts,
    served: asText(config.format).startsWith('nvfp4')
      ? { dtype: 'nvfp4' }
      : { dtype: type, ...(grouped && size && { group: size }) },
  };
};

interface CompressedSettings {
  readonly format?: unknown;
  readonly inputs: unknown;
  readonly weights: JsonObject;
  readonly bits: number;
  readonly otherBits: number;
}

function compressedLayout(settings: CompressedSettings): { layout: Layout } | UnreadConfig {
  const { format, inputs, weights, bits, otherBits: scaleBits } = settings;
  const group = positiveInteger(weights.group_size);
  const zeroPoints = weights.symmetric === false;
  if (format === 'pack-quantized') {
    const indices = weights.actorder === 'group';
    const isGrouped = weights.strategy === 'group';
    return {
      layout: packQuantized({
        bits,
        group: isGrouped ? group : undefined,
        scaleBits,
        zeroPoints,
        indices,
      }),
    };
  }
  const isStatic = isRecord(inputs) && inputs.dynamic === false;
  if (format === 'nvfp4-pack-quantized') {
    const singles = 1 + (isRecord(inputs) ? 1 : 0);
    return {
      layout: scaledLayout({
        bits: 4,
        scaleBits: 8,
        granularity: groupsAlongRow(group ?? 16),
        singles,
      }),
    };
  }
  if (!/^(?:float|int|naive)-quantized$/.test(asText(format)) || bits !== 8) {
    return { doubt: `format ${quote(asText(format))} is not known` };
  }
  const granularity = compressedGranularity(weights, group);
  if (granularity === undefined)
    return { doubt: `strategy ${quote(asText(weights.strategy))} is not known` };
  const plain = scaledLayout({ bits, scaleBits, granularity, zeroPoints });
  const inputScale = { part: 'scales', elements: 1, bits: scaleBits } as const;
  return { layout: (matrix) => [...plain(matrix), ...(isStatic ? [inputScale] : [])] };
}

function compressedGranularity(
  { strategy, block_structure: block }: JsonObject,
  group: number | undefined,
): Granularity | undefined {
  if (strategy === 'tensor') return { per: 'tensor' };
  if (strategy === 'channel') return { per: 'row' };
  if (strategy === 'group') return group === undefined ? undefined : groupsAlongRow(group);
  const [rows, length] = (Array.isArray(block) ? block : []).map(positiveInteger);
  return strategy === 'block' && rows && length ? { per: 'block', rows, length } : undefined;
}

/** Type of the served weights of each mode of MLX. */
const MLX_SERVED: Readonly<Record<string, ServedType['dtype']>> = {
  mxfp4: 'mxfp4',
  nvfp4: 'nvfp4',
  mxfp8: 'f8',
};

const MLX_BITS = [2, 3, 4, 5, 6, 8];

/** Experts of one layer are one module of MLX: `mlp.switch_mlp.up_proj`. */
const mlxName = (name: string) => name.replace(/\bexperts\.\d+\./, 'switch_mlp.');

/** MLX quantizes linear layers and embeddings, single ones by settings of their own. */
const mlx: Method = ({ quant_method: _, ...quantization }, otherBits) => {
  const settingsOf = (name: string) => mlxSettings({ quantization }, mlxName(name));
  const { bits, group, mode } = settingsOf('') ?? NO_SETTINGS;
  const isKnown = mode !== undefined && MLX_BITS.includes(bits) && positiveInteger(group);
  if (!isKnown) return { doubt: 'its bits, group_size or mode are not known' };
  const isAffine = mode === 'affine';
  const dtype = isAffine ? { 4: 'int4', 8: 'int8' }[bits] : MLX_SERVED[mode];
  return {
    label: `mlx${isAffine ? '' : ` ${mode}`}, ${bits} bits, groups of ${group}`,
    layout: (module) => {
      const { bits: width = bits, group: size = group } = settingsOf(module.name) ?? {};
      return mlxLayout({ bits: width, group: size, scaleBits: isAffine ? otherBits : 8, isAffine })(
        module,
      );
    },
    isQuantized: ({ name, length }) => {
      const { group: size = 0 } = settingsOf(name) ?? {};
      return quantization[mlxName(name)] !== false && length % size === 0;
    },
    takesEmbedding: true,
    ...(dtype && { served: { dtype: dtype as ServedType['dtype'], ...(isAffine && { group }) } }),
  };
};

const NO_SETTINGS: MlxSettings = { bits: 0, group: 0, mode: undefined };

/** Methods by their names in `utils/quantization_config.py` of transformers 5.18. */
const METHODS: Readonly<Record<string, Method>> = {
  fp8,
  mxfp8: fp8,
  fbgemm_fp8: fbgemm,
  mxfp4,
  bitsandbytes,
  bitsandbytes_4bit: bitsandbytes,
  bitsandbytes_8bit: bitsandbytes,
  gptq: gptqMethod,
  awq: awqMethod,
  'auto-round': autoRound,
  'compressed-tensors': compressedTensors,
  mlx,
};

export const KNOWN_METHODS = Object.keys(METHODS);

// ── The config ───────────────────────────────────────────────────────────────────────────────────

const TYPES: Readonly<Record<string, readonly [type: string, bits: number]>> = {
  float32: ['f32', 32],
  float16: ['f16', 16],
  bfloat16: ['bf16', 16],
};

/** Older bitsandbytes configs do not name their method. */
const methodOf = ({ quant_method: method, load_in_8bit, load_in_4bit }: JsonObject): unknown =>
  method ?? (load_in_8bit || load_in_4bit ? 'bitsandbytes' : undefined);

export function readQuantization(config: JsonObject): QuantizationReading {
  const own = isOfMlx(config) ? config.quantization : config.quantization_config;
  if (own == null) return { doubts: [] };
  if (!isRecord(own)) return { doubts: ['it is not a mapping'] };
  const method = isOfMlx(config) ? 'mlx' : methodOf(own);
  if (typeof method !== 'string') return { doubts: ['it has no quant_method'] };
  const read = Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;
  if (read === undefined) return { doubts: [`quant_method ${quote(method)} is not known here`] };
  const named = asText(config.dtype ?? config.torch_dtype).replace(/^torch\./, '');
  const [otherType, otherBits] = TYPES[named] ?? ['bf16', 16];
  const experts = config.expert_dtype == null ? {} : { expert_dtype: config.expert_dtype };
  const scheme = read({ ...experts, ...own, quant_method: method }, otherBits);
  if (isDoubt(scheme)) return { doubts: [`${method}: ${scheme.doubt}`] };
  const { doubts = [], ...rest } = scheme;
  return {
    quantization: { method, otherBits, otherType, ...rest },
    doubts: doubts.map((doubt) => `${method}: ${doubt}`),
  };
}
