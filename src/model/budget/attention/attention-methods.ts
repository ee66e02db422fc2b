/**
 * Methods of attention on one model: what each computes, stores, moves and keeps. The heads, widths and layers are
 * those of the model; only the mask, the key heads and the kernel change.
 */

import { usageError } from '../../../base/errors.js';
import { setting } from '../../../base/text/setting.js';
import type { HeadSpan, Layer } from '../../architecture/layer.js';
import { describedLayer } from '../../architecture/walk.js';
import { primitivesOf } from '../../operations/lower.js';
import type { Scores } from '../../operations/primitive.js';
import type {
  AttentionLayer,
  AttentionMethods,
  AttentionRow,
  AttentionSetting,
  ComparedFigure,
  Variant,
} from './attention-result.js';
import { methodFigures } from './method-figures.js';

/** Window of the hybrid family's defaults, for models without one. */
const USUAL_WINDOW = 1024;
const USUAL_GLOBAL_HEADS = 2;
/** Llama 3 has 8 key heads for 32. */
const USUAL_GROUP = 4;

/**
 * Figures of each method for each context.
 * @throws UserError for a model without softmax attention, and for heads that do not fit it.
 */
export function attentionMethodsOf(model: Layer, options: AttentionSetting): AttentionMethods {
  const scores = scoresIn(model);
  const attentions = attentionsOf(model);
  const [first] = attentions;
  if (first === undefined) {
    throw usageError(
      'expected attention layers, found no softmax attention',
      'profile shows the state of other layers',
    );
  }
  refuseGlobalHeads(options.globalHeads, Math.max(...scores.map(({ heads }) => heads)));
  const window = options.window ?? largestWindow(scores) ?? USUAL_WINDOW;
  const variants = variantsOf(scores, attentions, window, options);
  const { dtype, onChip, block, globalHeads } = options;
  return {
    setting: { dtype, onChip, block, window, ...(globalHeads !== undefined && { globalHeads }) },
    layers: attentions.length,
    heads: first.heads,
    keyHeads: first.keyValueHeads,
    headDim: first.headDim,
    contexts: [...new Set(options.contexts)]
      .sort((a, b) => a - b)
      .map((context) => ({ context, rows: methodRows(model, variants, context, options) })),
  };
}

const scoresIn = (model: Layer): Scores[] =>
  primitivesOf(model).filter((each): each is Scores => each.kind === 'scores');

/**
 * Attention layers, each once. A described one has scores for each kind of its keys, as over a window and over compressed
 * entries: another method would have one kind.
 */
function attentionsOf(model: Layer): Scores[] {
  if (model.kind !== 'languageModel' || describedLayer(model) === undefined) return scoresIn(model);
  return model.blocks.flatMap((block) => [
    ...new Map(
      scoresIn(block)
        .reverse()
        .map((each) => [each.layer, each]),
    ).values(),
  ]);
}

/** @throws UserError for more heads than the model has. */
function refuseGlobalHeads(wanted: number | undefined, heads: number): void {
  if (wanted === undefined || wanted <= heads) return;
  throw usageError(
    `${setting('globalHeads')}: expected at most ${heads}, the heads of the model, found ${wanted}`,
    `write ${setting('globalHeads', heads)}, or less`,
  );
}

const largestWindow = (layers: readonly Scores[]): number | undefined => {
  const windows = layers.flatMap(({ spans }) => spans.flatMap((span) => span.window ?? []));
  return windows.length === 0 ? undefined : Math.max(...windows.map(({ tokens }) => tokens));
};

// Methods

function variantsOf(
  scores: readonly Scores[],
  attentions: readonly Scores[],
  tokens: number,
  { window, block, globalHeads, keyHeads }: AttentionSetting,
): Variant[] {
  const whole = scores.map(layerOf);
  const own = attentions.map(layerOf);
  const plain = own.map((layer) => ({
    ...layer,
    keyHeads: layer.heads,
    spans: [{ heads: layer.heads, window: undefined }],
  }));
  const isLocal = own.some(({ spans }) => spans.some((span) => span.window?.rule === 'local'));
  const asGiven = isLocal && globalHeads === undefined && window === undefined;
  const masked = (spansOf: (heads: number) => readonly HeadSpan[]) =>
    plain.map((layer) => ({ ...layer, spans: spansOf(layer.heads) }));
  const variants: Omit<Variant, 'isModel'>[] = [
    { method: 'plain', name: 'plain', layers: plain },
    { method: 'flash', name: 'flash', layers: plain, inTiles: true },
    ...(keyHeads ?? [undefined]).map((count) => groupedVariant(plain, own, count)),
    {
      method: 'window',
      name: `window ${tokens}`,
      layers: masked((heads) => [{ heads, window: { rule: 'sliding', tokens } }]),
    },
    {
      method: 'hierarchical',
      name: 'hierarchical',
      layers: asGiven ? own : masked((heads) => localSpans(heads, tokens, globalHeads)),
    },
    { method: 'block-sparse', name: `block-sparse ${block}`, layers: plain, inTiles: true, block },
  ];
  const asText = (layers: readonly AttentionLayer[]) => JSON.stringify(layers);
  const isPlainCache = scores.every(
    ({ latent, keeps }) => latent === undefined && keeps === undefined,
  );
  // The first row that is like the model; the kernel is not part of it.
  const like = isPlainCache
    ? variants.findIndex((each) => !each.inTiles && asText(each.layers) === asText(whole))
    : -1;
  return [
    ...variants.map((each, at) => ({ ...each, isModel: at === like })),
    ...(like < 0
      ? [{ method: 'own', name: 'this model', layers: whole, isModel: true } as const]
      : []),
  ];
}

const layerOf = ({ heads, keyValueHeads, headDim, valueDim, spans }: Scores): AttentionLayer => ({
  heads,
  keyHeads: keyValueHeads,
  headDim,
  valueDim,
  spans: spans.map((span) => ({ heads: span.heads, window: span.window })),
});

function groupedVariant(
  plain: readonly AttentionLayer[],
  own: readonly AttentionLayer[],
  count: number | undefined,
): Omit<Variant, 'isModel'> {
  const layers = plain.map((layer, at) => {
    const ownHeads = own[at]?.keyHeads ?? layer.heads;
    const wanted = count ?? (ownHeads < layer.heads ? ownHeads : quarterOf(layer.heads));
    if (layer.heads % wanted !== 0) {
      throw usageError(
        `${setting('keyHeads')}: expected a divisor of ${layer.heads} heads, found ${wanted}`,
        `write ${setting('keyHeads', quarterOf(layer.heads))}`,
      );
    }
    return { ...layer, keyHeads: wanted };
  });
  const [shown = 1] = layers.map(({ keyHeads }) => keyHeads);
  return {
    method: 'grouped',
    name: `grouped (${shown} key ${shown === 1 ? 'head' : 'heads'})`,
    layers,
  };
}

/** Largest divisor of the heads that is at most a quarter of them. */
function quarterOf(heads: number): number {
  let wanted = Math.max(1, Math.floor(heads / USUAL_GROUP));
  while (heads % wanted !== 0) wanted--;
  return wanted;
}

/** Heads of the hybrid family: the last ones see everything, the others half a window back. */
function localSpans(heads: number, tokens: number, wanted = USUAL_GLOBAL_HEADS): HeadSpan[] {
  const globals = Math.min(wanted, heads);
  return [
    { heads: heads - globals, window: { rule: 'local', tokens } as const },
    { heads: globals, window: undefined },
  ].filter((span) => span.heads > 0);
}

function methodRows(
  model: Layer,
  variants: readonly Variant[],
  context: number,
  options: AttentionSetting,
): AttentionRow[] {
  const all = variants.map((variant) => methodFigures(model, variant, context, options));
  const [plain] = all;
  if (plain === undefined) return [];
  return all.map((row) => {
    const ratio = (name: ComparedFigure) => Number(plain[name].value) / Number(row[name].value);
    const [scores, traffic] = [ratio('scores'), ratio('traffic')];
    return { ...row, ratios: { scores, traffic, flops: ratio('flops'), cache: ratio('cache') } };
  });
}
