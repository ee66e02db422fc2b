/** The difference of two configs or two checkpoints: keys, layers, tensors, and on request values. */
import { isDeepStrictEqual } from 'node:util';
import { NoStateDicts } from '../checkpoint/open.js';
import type { Problem } from '../errors.js';
import { UserError } from '../errors.js';
import { withErrorOf } from '../model-input/model-source.js';
import type { ProgressDisplay } from '../progress-display.js';
import { shellWord } from '../text/words.js';
import { type ConfigKeyDifferences, configKeyDifferences } from './config-key-differences.js';
import { type LayerDifference, layerDifferences } from './layer-differences.js';
import { openSide, type Side, type SideOptions, type SideSummary, summaryOf } from './sides.js';
import {
  type NamePrefix,
  type TensorDifference,
  tensorDifferences,
  underCommonNames,
} from './tensor-differences.js';
import { type ValueDifferences, valueDifferences } from './value-differences.js';

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
  readonly layers: readonly LayerDifference[];
  readonly tensors: readonly TensorDifference[];
  /** Null without --values. */
  readonly values: ValueDifferences | null;
}

export interface DifferenceRequest {
  readonly family?: string | undefined;
  /** State dict of the first, and of the second if it is another. */
  readonly stateDicts: readonly string[];
  /** Flag that asks to compare the values; undefined where they are not read. */
  readonly valuesFlag: '--values' | '--max-error' | undefined;
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
  { family, stateDicts, valuesFlag }: DifferenceRequest,
  { display, warn }: DifferenceSurroundings,
): Promise<Difference> {
  if (first === '-' && second === '-') {
    throw new UserError('usage', 'standard input can be read only once', {
      suggestion: 'write - once',
    });
  }
  if (stateDicts.length > 2) {
    throw new UserError('usage', `--state-dict: expected one or two, found ${stateDicts.length}`, {
      suggestion: 'write it once for both sides, or once for each',
    });
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
      refuseMixed(a, b, valuesFlag);
      await warn([...a.warnings, ...b.warnings]);
      return await compared(a, b, { family, isOfValues: valuesFlag !== undefined, display });
    } finally {
      b.close();
    }
  } finally {
    a.close();
  }
}

/** Opens a side, if `canLack` also one without the state dicts that its options choose from. */
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
    isDeepStrictEqual(modelOf(a.described.document), modelOf(b.described.document))
  );
}

const modelOf = (document: unknown): unknown => (document as { readonly model?: unknown }).model;

/** @throws UserError for a config and a checkpoint, or for values of configs. */
function refuseMixed(a: Side, b: Side, valuesFlag: DifferenceRequest['valuesFlag']): void {
  if (a.kind !== b.kind) {
    const [config, checkpoint] = a.kind === 'config' ? [a, b] : [b, a];
    throw new UserError(
      'usage',
      `expected two configs or two checkpoints, found the config ${config.path} and the checkpoint ${checkpoint.path}`,
      {
        suggestion: `to check the checkpoint against the config, write minimind verify ${shellWord(config.path)} ${shellWord(checkpoint.path)}`,
      },
    );
  }
  if (valuesFlag !== undefined && a.kind === 'config') {
    throw new UserError('usage', `${valuesFlag}: expected two checkpoints, found two configs`, {
      suggestion: `leave ${valuesFlag} out, or name the checkpoints`,
    });
  }
}
