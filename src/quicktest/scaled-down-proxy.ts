/** A small model of the same structure, for when the model itself is too large for the machine. */
import type { Family, ProxySetting } from '../architecture/family.js';
import type { LanguageModel } from '../architecture/layer.js';
import { decoderProxy } from '../architecture/transformer/scaled-down-proxy.js';

/** A value of the configuration, before and after. */
export interface TwinChange {
  readonly path: string;
  readonly from: number;
  readonly to: number;
}

export interface Twin {
  readonly model: LanguageModel;
  /** Lists of what each layer is are cut with the layers, and not told of. */
  readonly changes: readonly TwinChange[];
}

/**
 * The twin of a model.
 * @param document Of the family's schema, parsed.
 * @param tokens That it has to take.
 */
export function twinOf(
  family: Pick<Family, 'build' | 'scaledDownProxy'>,
  document: unknown,
  tokens: number,
): Twin {
  const settings = (family.scaledDownProxy ?? decoderProxy)(document, tokens);
  const changes = settings.flatMap(({ path, value }): TwinChange[] => {
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
