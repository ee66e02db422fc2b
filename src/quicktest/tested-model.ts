/** The model of a test, and its scaled-down proxy for models too large for the machine. */
import type { Family, ProxyBounds, ProxySetting } from '../architecture/family.js';
import type { LanguageModel } from '../architecture/layer.js';
import { decoderProxy } from '../architecture/transformer/scaled-down-proxy.js';
import type { TokenIds } from '../runtime/engine.js';
import type { WeightSource } from '../runtime/weights.js';

/** A model with its weights and its input. */
export interface TestedModel {
  readonly family: Pick<Family, 'build' | 'scaledDownProxy'>;
  /** Document parsed by the family's schema. */
  readonly document: unknown;
  readonly model: LanguageModel;
  /** Weights of a checkpoint; undefined for random weights. */
  readonly weights: WeightSource | undefined;
  /** Undefined for random ids: `batch` sequences of `context` tokens. */
  readonly ids: TokenIds | undefined;
  readonly batch?: number | undefined;
  readonly context?: number | undefined;
  readonly seed: number;
}

/** A value of the configuration, before and after. */
export interface ProxyChange {
  readonly path: string;
  readonly from: number;
  readonly to: number;
}

export interface ScaledDownProxy {
  readonly model: LanguageModel;
  /** Changed values, without the per-layer lists, which are cut with the layers. */
  readonly changes: readonly ProxyChange[];
}

/**
 * Scaled-down proxy of a model.
 * @param document Document parsed by the family's schema.
 * @param tokens Tokens that it must support.
 * @param bounds Upper bounds of its sizes, where the structure allows them.
 */
export function scaledDownProxy(
  family: Pick<Family, 'build' | 'scaledDownProxy'>,
  document: unknown,
  tokens: number,
  bounds?: ProxyBounds,
): ScaledDownProxy {
  const settings = (family.scaledDownProxy ?? decoderProxy)(document, tokens, bounds);
  const changes = settings.flatMap(({ path, value }): ProxyChange[] => {
    const from = valueAt(document, path.split('.'));
    return typeof from === 'number' && typeof value === 'number' && from !== value
      ? [{ path, from, to: value }]
      : [];
  });
  return { model: family.build(settings.reduce(applied, document)), changes };
}

const valueAt = (value: unknown, [key, ...rest]: readonly string[]): unknown =>
  key === undefined ? value : valueAt((value as Record<string, unknown>)[key], rest);

/** A document with one value changed. */
function applied(document: unknown, { path, value }: ProxySetting): unknown {
  const change = (inner: unknown, [key, ...rest]: readonly string[]): unknown =>
    key === undefined
      ? value
      : {
          ...(inner as Record<string, unknown>),
          [key]: change((inner as Record<string, unknown>)[key], rest),
        };
  return change(document, path.split('.'));
}
