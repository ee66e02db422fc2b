/** The difference of two configs or two checkpoints: keys, layers, tensors, and on request values. */
import { isDeepStrictEqual } from 'node:util';
import type { Problem, PropertyPath } from '../../base/errors.js';
import { usageError } from '../../base/errors.js';
import type { ProgressDisplay } from '../../base/progress-display.js';
import { commandText, setting } from '../../base/text/setting.js';
import { isRecord } from '../../base/values.js';
import { NoStateDicts } from '../../checkpoint/open.js';
import type { ConfigDocument } from '../../config/document.js';
import { formatPath, splitDotted, valueAt } from '../../config/quote.js';
import { TextSource } from '../../config/source.js';
import {
  asOurDocument,
  isHuggingFace,
} from '../../input/model-input/hugging-face/hugging-face-document.js';
import { withErrorOf } from '../../input/model-input/model-source.js';
import type { Side, SideOptions, SideSummary } from './sides.js';
import { openSide, summaryOf } from './sides.js';
import type { LayerDifference, NamePrefix, TensorDifference } from './structure-differences.js';
import { layerDifferences, tensorDifferences, underCommonNames } from './structure-differences.js';
import type { ValueDifferences } from './value-differences.js';
import { valueDifferences } from './value-differences.js';

export interface Difference {
  /** Whether nothing differs: no key that matters, no layer, no tensor, no value, and none was skipped. */
  readonly equal: boolean;
  readonly a: SideSummary;
  readonly b: SideSummary;
  /** Null where one of two checkpoints has no config. */
  readonly config: ConfigKeyDifferences | null;
  /** Whether both describe the same settings and layers; null where one has no valid config. */
  readonly sameModel: boolean | null;
  /** Left out of the names of one side. */
  readonly prefix: NamePrefix | null;
  /** Layers that differ. */
  readonly layers: readonly LayerDifference[];
  /** Tensors that differ. */
  readonly tensors: readonly TensorDifference[];
  /** Null without --values. */
  readonly values: ValueDifferences | null;
}

/**
 * Differences of two configs, or of two checkpoints.
 * @answer minimind diff --json
 */
export interface DifferenceResult extends Difference {
  readonly schema: 'minimind/diff@1';
}

export interface DifferenceRequest {
  readonly family?: string | undefined;
  /** State dict of the first, and of the second if it is another. */
  readonly stateDicts: readonly string[];
  /** Setting that asks to compare the values; undefined where they are not read. */
  readonly comparedBy: 'values' | 'maxError' | undefined;
}

interface DifferenceSurroundings {
  readonly display: ProgressDisplay;
  readonly warn: (warnings: readonly Problem[]) => Promise<void>;
}

/**
 * Compares two configs, or two checkpoints.
 * @throws UserError when one is a config and the other a checkpoint, one cannot be read, or values of configs are asked for.
 */
export async function differenceOf(
  [first, second]: readonly [string, string],
  { family, stateDicts, comparedBy }: DifferenceRequest,
  { display, warn }: DifferenceSurroundings,
): Promise<Difference> {
  if (first === '-' && second === '-') {
    throw usageError('standard input can be read only once', 'write - once');
  }
  if (stateDicts.length > 2) {
    throw usageError(
      `${setting('stateDict')}: expected one or two, found ${stateDicts.length}`,
      'write it once for both sides, or once for each',
    );
  }
  const [stateDict, otherDict = stateDict] = stateDicts;
  const isShared = stateDicts.length === 1;
  const options = { family, stateDict: otherDict };
  const openSecond = (canLack: boolean) => openWithDict(second, options, canLack);
  const { side: a, hasDicts } = await openWithDict(first, { family, stateDict }, isShared).catch(
    async (error) => {
      throw await withErrorOf(error, first, second, async () =>
        (await openSecond(isShared)).side.close(),
      );
    },
  );
  try {
    const { side: b } = await openSecond(isShared && hasDicts);
    try {
      refuseMixed(a, b, comparedBy);
      await warn([...a.warnings, ...b.warnings]);
      return await compared(a, b, { family, isOfValues: comparedBy !== undefined, display });
    } finally {
      b.close();
    }
  } finally {
    a.close();
  }
}

/** Opens a side. If `canLack`, it may lack the state dicts that its options choose from. */
async function openWithDict(path: string, options: SideOptions, canLack: boolean) {
  try {
    return { side: await openSide(path, options), hasDicts: true };
  } catch (error) {
    if (!(canLack && error instanceof NoStateDicts)) throw error;
    return { side: await openSide(path, { ...options, stateDict: undefined }), hasDicts: false };
  }
}

async function compared(
  a: Side,
  b: Side,
  {
    family,
    isOfValues,
    display,
  }: { family: string | undefined; isOfValues: boolean; display: ProgressDisplay },
): Promise<Difference> {
  const common = underCommonNames(a.tensors, b.tensors);
  const config = (await configKeyDifferences(a, b, family)) ?? null;
  const layers = layerDifferences(a, b, common);
  const tensors = tensorDifferences(common.a, common.b);
  const values = isOfValues ? await valueDifferences(common.a, common.b, display) : null;
  const isEqual =
    (config?.keys ?? []).every(({ isSameValue }) => isSameValue) &&
    layers.length + tensors.length === 0 &&
    (values === null ||
      (values.total.equalTensors === values.total.tensors && values.skipped.length === 0));
  return {
    equal: isEqual,
    a: summaryOf(a),
    b: summaryOf(b),
    config,
    sameModel: sameModel(a, b, layers),
    prefix: common.prefix,
    layers,
    tensors,
    values,
  };
}

function sameModel(a: Side, b: Side, layers: readonly LayerDifference[]): boolean | null {
  if (!a.described || !b.described) return null;
  return (
    layers.length === 0 &&
    a.described.family === b.described.family &&
    isDeepStrictEqual(a.described.document.model, b.described.document.model)
  );
}

/** @throws UserError for a config and a checkpoint, or for values of configs. */
function refuseMixed(a: Side, b: Side, comparedBy: DifferenceRequest['comparedBy']): void {
  if (a.kind !== b.kind) {
    const [config, checkpoint] = a.kind === 'config' ? [a, b] : [b, a];
    throw usageError(
      `expected two configs or two checkpoints, found the config ${config.path} and the checkpoint ${checkpoint.path}`,
      `to check the checkpoint against the config, write ${commandText('verify', [config.path, checkpoint.path])}`,
    );
  }
  if (comparedBy !== undefined && a.kind === 'config') {
    throw usageError(
      `${setting(comparedBy)}: expected two checkpoints, found two configs`,
      `leave ${setting(comparedBy)} out, or name the checkpoints`,
    );
  }
}

/** Value of a key in one config, and its line. */
export interface KeyPlace {
  /** Undefined where the key is absent and has no default. */
  readonly value?: unknown;
  /** Whether the key is absent, and `value` is its default. */
  readonly isDefault?: true;
  /** Line in the file; absent for a value without one. @integer @minimum 1 */
  readonly line?: number;
}

export interface KeyDifference {
  /** Kind of the change. */
  readonly change: 'added' | 'removed' | 'changed';
  /** Dotted path: `model.num_layers`. */
  readonly path: string;
  /** Value in the first config; null where it lacks the key. */
  readonly before: KeyPlace;
  /** Value in the second config; null where it lacks the key. */
  readonly after: KeyPlace;
  /** Whether the model is the same all the same: the written value is the default of the other side. */
  readonly isSameValue: boolean;
}

export interface ConfigKeyDifferences {
  /** `written`: keys as in the files. `read`: settings after both were read, with defaults, as the files have other forms. */
  readonly compared: 'written' | 'read';
  /** Keys that differ. */
  readonly keys: readonly KeyDifference[];
}

/** Differing keys in the order of the files; undefined where one of the two has no config. */
async function configKeyDifferences(
  a: Side,
  b: Side,
  family: string | undefined,
): Promise<ConfigKeyDifferences | undefined> {
  if (!a.document || !b.document) return undefined;
  const isWritten =
    isHuggingFace(a.document) === isHuggingFace(b.document) &&
    [a.document, b.document].every(({ root }) => root.place.source instanceof TextSource);
  if (!isWritten && a.described && b.described) {
    const [first, second] = [await readOf(a, family), await readOf(b, family)];
    return { compared: 'read', keys: differencesOf(first, second) };
  }
  return { compared: 'written', keys: differencesOf(writtenOf(a), writtenOf(b)) };
}

/** One side: its values by path, the places of keys, and defaults of absent ones. */
interface Keys {
  readonly values: ReadonlyMap<string, { readonly path: PropertyPath; readonly value: unknown }>;
  readonly document: ConfigDocument | undefined;
  readonly defaults: unknown;
}

const writtenOf = ({ document, described }: Side): Keys => ({
  values: valuesByPath(document?.value),
  document,
  // The keys of a config.json differ from those of the document with defaults.
  defaults: document && !isHuggingFace(document) ? described?.document : undefined,
});

async function readOf({ document, described }: Side, family: string | undefined): Promise<Keys> {
  const own = document && (await asOurDocument(document, family));
  return { values: valuesByPath(described?.document), document: own, defaults: undefined };
}

/** Values other than mappings, by path. */
function valuesByPath(value: unknown, path: PropertyPath = []): Keys['values'] {
  const found = new Map<string, { path: PropertyPath; value: unknown }>();
  const visit = (at: unknown, here: PropertyPath) => {
    if (isRecord(at) && Object.keys(at).length > 0) {
      for (const [key, inner] of Object.entries(at)) visit(inner, [...here, key]);
    } else if (at !== undefined) found.set(formatPath(here), { path: here, value: at });
  };
  visit(value, path);
  return found;
}

function differencesOf(a: Keys, b: Keys): KeyDifference[] {
  const paths = [...new Set([...a.values.keys(), ...b.values.keys()])];
  return paths.flatMap((path): KeyDifference[] => {
    const [before, after] = [keyPlace(a, path), keyPlace(b, path)];
    const [isThere, isHere] = [a.values.has(path), b.values.has(path)];
    const isSameValue = isDeepStrictEqual(before.value, after.value);
    if (isThere && isHere && isSameValue) return [];
    const change = isThere ? (isHere ? 'changed' : 'removed') : 'added';
    return [{ change, path, before, after, isSameValue }];
  });
}

function keyPlace({ values, document, defaults }: Keys, path: string): KeyPlace {
  const found = values.get(path);
  if (found === undefined) {
    const value = valueAt(defaults, splitDotted(path));
    return value === undefined ? {} : { value, isDefault: true };
  }
  const line = document?.has(found.path) ? document.locate(found.path, 'key').line : undefined;
  return { value: found.value, ...(line !== undefined && { line }) };
}
