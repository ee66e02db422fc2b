/** Explains a published size in memory by the figures of a model, and by the errors that such numbers have. */

import type { Dtype } from '../../../base/tensor/dtype.js';
import { cacheBlockBytes, DTYPES } from '../../../base/tensor/dtype.js';
import { formatBytes, formatInteger } from '../../../base/text/units.js';
import type { PublishedBytes } from '../../../config/parse-published.js';
import type { LanguageModel } from '../../architecture/layer.js';
import { valueWidth, walk } from '../../architecture/walk.js';
import type { Exact } from '../figure.js';
import type { ModelProfile, ResolvedSetting } from '../profile-model.js';
import { stateOf } from '../state.js';
import type { CountingError, Explanation, PublishedReport } from './explanations.js';
import { judged } from './explanations.js';

interface Size {
  readonly reason: CountingError;
  readonly bytes: bigint;
  /** Values that the bytes hold; absent where they have several types. */
  readonly values?: bigint;
  /** Set for the cache of all sequences of the profile's setting. */
  readonly isWholeBatch?: boolean;
}

/** Longest context that a published cache is tried for. */
const MOST_TOKENS = 2 ** 21;

/** Types without a named type, most usual first. */
const USUAL: readonly { readonly bits: number; readonly text: string; readonly weight: number }[] =
  [
    { bits: 16, text: '16 bits', weight: 0 },
    { bits: 32, text: '32 bits', weight: 0.1 },
    { bits: 8, text: '8 bits', weight: 0.2 },
    { bits: 4, text: '4 bits', weight: 0.3 },
  ];

/**
 * Tries the sizes of a profile and caches of other contexts, each also as GiB called GB (or the reverse) and as values
 * called bytes.
 * @param dtype Element type that the publication names.
 */
export function explainBytes(
  model: LanguageModel,
  published: PublishedBytes,
  profile: ModelProfile,
  setting: ResolvedSetting,
  dtype?: Dtype,
): PublishedReport<bigint> {
  const types = dtype ? [{ bits: DTYPES[dtype].bits, text: dtype, weight: 0 }] : USUAL;
  const sizes = [
    ...weightSizes(profile, types),
    ...profileSizes(profile, dtype !== undefined),
    ...cacheSizes(model, profile, setting, types),
  ];
  const all = sizes.flatMap((size) => [
    ...withPrefix(size.bytes, [size.reason], published),
    ...asValues(size, published),
  ]);
  const roundedFirst = () => sizes.flatMap((each) => roundedTimesBatch(each, published, setting));
  return { unit: 'bytes', difference: null, ...judged(distinct(all), published, roundedFirst) };
}

/** Decimals that a size is rounded to before it is multiplied. */
const DECIMALS = [0, 1, 2] as const;

/** A batch times the printed size of one sequence, whose rounding the product multiplies. */
function roundedTimesBatch(
  { reason, bytes, values, isWholeBatch = false }: Size,
  published: PublishedBytes,
  { inference: { batch } }: ResolvedSetting,
): Explanation<bigint>[] {
  const { power, isBinary, value, tolerance } = published;
  if (batch === 1 || power === 0 || !isWholeBatch) return [];
  const bases = isBinary ? [1024] : [1000, 1024];
  const scale = Number((isBinary ? 1024n : 1000n) ** BigInt(power));
  return [bytes, ...(values === undefined ? [] : [values])]
    .flatMap((whole, index) =>
      bases.flatMap((base) =>
        DECIMALS.map((decimals) => {
          const one = Number(whole) / batch;
          const printed = (one / base ** power).toFixed(decimals);
          const product = BigInt(Math.round(batch * Number(printed) * scale));
          const unit = `${'kMGT'[power - 1]}${base === 1024 ? 'iB' : 'B'}`;
          const what = index === 1 ? 'values, called bytes, ' : '';
          const text =
            `rounded before it was multiplied: ${batch} × ${printed} ${unit}, where one sequence has ${what}${formatBytes(Math.round(one))}; ` +
            `all of them are ${formatBytes(whole)}`;
          const weight = 0.5 + 0.1 * decimals + (index === 1 ? 0.5 : 0);
          return { value: product, reasons: [reason, { id: 'rounded', text, weight }] };
        }),
      ),
    )
    .filter((each) => each.value >= value - tolerance && each.value <= value + tolerance);
}

/** The first of several explanations with the same words. */
const distinct = (found: readonly Explanation<bigint>[]) => [
  ...new Map(
    found.toReversed().map((each) => [each.reasons.map(({ text }) => text).join('; '), each]),
  ).values(),
];

/** A size as it is, and printed with the other kind of prefix. */
function withPrefix(
  bytes: bigint,
  reasons: readonly CountingError[],
  { power, isBinary }: PublishedBytes,
): Explanation<bigint>[] {
  if (power === 0) return [{ value: bytes, reasons }];
  const [decimal, binary] = [1000n ** BigInt(power), 1024n ** BigInt(power)];
  const names = [`${' KMGT'[power]}iB`, `${' kMGT'[power]}B`];
  const [meant, written] = isBinary ? names.toReversed() : names;
  const other = isBinary ? (bytes * binary) / decimal : (bytes * decimal) / binary;
  const text = `a number of ${meant}, called ${written}: it is ${formatBytes(bytes)}`;
  return [
    { value: bytes, reasons },
    { value: other, reasons: [...reasons, { id: 'prefix', text, weight: 0.4 }] },
  ];
}

function asValues({ reason, bytes, values }: Size, published: PublishedBytes) {
  if (values === undefined || values === bytes) return [];
  const text = `the number of values, called bytes: it is ${formatBytes(bytes)}`;
  return withPrefix(values, [reason, { id: 'elements', text, weight: 0.5 }], published);
}

const size = (id: string, text: string, weight: number, bytes: Exact, values?: Exact): Size => ({
  reason: { id, text, weight },
  bytes: BigInt(bytes),
  ...(values !== undefined && { values: BigInt(values) }),
});

const packed = (values: Exact, bits: number): bigint => (BigInt(values) * BigInt(bits) + 7n) / 8n;

/** Weights and their components in each type. */
function weightSizes({ parameters }: ModelProfile, types: typeof USUAL): Size[] {
  const parts = [
    { id: 'weights', what: 'the weights', values: parameters.total.value, weight: 1 },
    {
      id: 'body',
      what: 'the weights without embeddings and head',
      values: parameters.body.value,
      weight: 1.3,
    },
    ...parameters.components.map(({ component, parameters: { label, value } }) => ({
      id: `component-${component}`,
      what: `the weights of ${label}`,
      values: value,
      weight: 1.3,
    })),
  ];
  return parts.flatMap(({ id, what, values, weight }) =>
    types.map((type) =>
      size(
        `${id}-${type.bits}`,
        `${what} in ${type.text}`,
        weight + type.weight,
        packed(values, type.bits),
        values,
      ),
    ),
  );
}

/** Memory figures of inference and training with the profile's setting. */
function profileSizes({ inference, training }: ModelProfile, hasType: boolean): Size[] {
  // A number with a type is rarely one of several types.
  const parts = hasType ? 2.2 : 1.4;
  const { weights, gradients, optimizer, activations, total } = training;
  const static_ = [weights, gradients, optimizer].reduce(
    (sum, { value }) => sum + BigInt(value),
    0n,
  );
  return [
    size('inference', 'the memory of inference', 1.1, inference.total.value),
    size('state', 'the total state of decoding', 1.2, inference.state.total.value),
    size('training', 'the memory of training', 1.1, total.value),
    size('training-static', 'weights, gradients and optimizer of training', 1.2, static_),
    size('gradients', 'the gradients of training', 1.3, gradients.value),
    size('optimizer', 'the optimizer of training', 1.3, optimizer.value),
    ...activations.parts.map(({ part, bytes }) =>
      size(`activations-${part}`, `training: ${bytes.label}`, parts, bytes.value),
    ),
  ];
}

/** Keys and values of a token, by a way of counting. */
interface TokenValues {
  readonly id: string;
  readonly text: string;
  readonly weight: number;
  readonly values: bigint;
}

/** The cache of the profile, and those of other contexts and ways of counting. */
function cacheSizes(
  model: LanguageModel,
  { inference: { state } }: ModelProfile,
  { inference, origins }: ResolvedSetting,
  types: typeof USUAL,
): Size[] {
  const ownBytes = cacheBlockBytes(inference.cacheDtype ?? inference.dtype);
  const own = (BigInt(state.keyValuePerToken.value) * 32n) / BigInt(ownBytes);
  if (own === 0n) return [];
  const tokens = inference.batch * inference.context;
  const powers = Array.from({ length: Math.log2(MOST_TOKENS) + 1 }, (_, power) => 2 ** power);
  const counts = [...new Set([tokens, inference.context, model.positions, ...powers])];
  // A context that was named with the number is the context of its cache.
  const other = origins.context === 'flag' ? 1.5 : 0.3;
  const unusual = (count: number) => {
    if (count === tokens) return 0;
    if (count === inference.context) return 0.05;
    return count === 1 ? 0.1 : other;
  };
  const whole = tokenValues(model, own).flatMap((kind) =>
    counts.flatMap((count) =>
      types.map((type) => {
        const values = kind.values * BigInt(count);
        return {
          ...size(
            `cache-${kind.id}-${count}-${type.bits}`,
            `${kind.text} of ${tokensText(count, inference)} in ${type.text}`,
            kind.weight + unusual(count) + 2 * type.weight,
            packed(values, type.bits),
            values,
          ),
          isWholeBatch: count === tokens,
        };
      }),
    ),
  );
  return [...whole, ...windowedSizes(model, inference, counts)];
}

const tokensText = (count: number, { batch, context }: ResolvedSetting['inference']): string => {
  if (batch > 1 && count === batch * context) return `${batch} × ${formatInteger(context)} tokens`;
  return count === 1 ? '1 token' : `${formatInteger(count)} tokens`;
};

/** Caches whose windows drop keys, for one sequence. */
function windowedSizes(
  model: LanguageModel,
  inference: ResolvedSetting['inference'],
  counts: readonly number[],
): Size[] {
  const { windows } = stateOf(model, inference);
  if (windows.length === 0) return [];
  return counts.map((context) => {
    const { keyValueCache } = stateOf(model, { ...inference, batch: 1, context });
    const type = inference.cacheDtype ?? inference.dtype;
    const text = `the KV cache of ${formatInteger(context)} tokens in ${type}, windows applied`;
    const bytes = keyValueCache.value;
    const values = (BigInt(bytes) * 32n) / BigInt(cacheBlockBytes(type));
    return size(`cache-windowed-${context}`, text, 1.2, bytes, values);
  });
}

function tokenValues(model: LanguageModel, own: bigint): TokenValues[] {
  const attentions = walk(model).flatMap(({ layer }) =>
    layer.kind === 'attention' && typeof layer.sharing !== 'object' ? [layer] : [],
  );
  const sum = (of: (layer: (typeof attentions)[number]) => number) =>
    attentions.reduce((total, layer) => total + BigInt(of(layer)), 0n);
  const perHead = sum((layer) => layer.heads * (layer.headDim + valueWidth(layer)));
  const wide = sum(({ heads }) => 2 * heads * model.hidden);
  const layers = BigInt(attentions.length || model.blocks.length);
  const kinds: TokenValues[] = [
    { id: 'own', text: 'the KV cache', weight: 1, values: own },
    { id: 'half', text: 'the keys alone', weight: 1.7, values: own / 2n },
    { id: 'layer', text: 'the KV cache of one layer', weight: 1.5, values: own / layers },
    {
      id: 'all-heads',
      text: 'a KV cache with keys and values for each query head',
      weight: 1.4,
      values: perHead,
    },
    {
      id: 'one-head',
      text: 'a KV cache with one key and value head for all query heads',
      weight: 1.6,
      values: sum((layer) => layer.headDim + valueWidth(layer)),
    },
    {
      id: 'hidden-heads',
      text: 'a KV cache counted as hidden size × heads',
      weight: 1.7,
      values: wide,
    },
  ];
  return kinds.filter(({ id, values }) => values > 0n && (id === 'own' || values !== own));
}
