/** Reads the input of a conversion, and plans its output. */

import { isDeepStrictEqual } from 'node:util';
import { UserError, usageError } from '../../../base/errors.js';
import { commandText, setting } from '../../../base/text/setting.js';
import { formatInteger } from '../../../base/text/units.js';
import { counted } from '../../../base/text/words.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import {
  type Container,
  containerOfFormat,
  isTrainingFormat,
} from '../../../checkpoint/formats.js';
import type { StoredNames } from '../../../checkpoint/names.js';
import { storedNames } from '../../../checkpoint/names.js';
import type { SrteLayout } from '../../../model/architecture/srte-layout.js';
import { srteLayoutOf } from '../../../model/architecture/srte-layout.js';
import { LAYOUT_NAMES, LAYOUTS } from '../conversion-choices.js';
import type { CheckpointTarget, ConversionJob } from '../job.js';
import { isUnspecific } from '../job.js';
import { fromOldMiniMind } from '../legacy/old-minimind-names.js';
import type { SrteSource } from '../srte/srte-plan.js';
import { requestedLayout, srteSourceOf } from '../srte/srte-plan.js';
import type { ConversionInput, ConversionPlan, Omission } from './conversion-plan.js';
import type { SourceConfig, TargetConfig } from './model-configs.js';
import { changedConfig, sourceConfigOf, targetConfig } from './model-configs.js';
import { withQuantization } from './plan-quantization.js';
import { planTensors } from './plan-tensors.js';

/** @throws UserError when the checkpoint, its config or the request are wrong or inconsistent. */
export async function readInput(
  request: ConversionJob,
  place: CheckpointTarget,
): Promise<ConversionInput> {
  const { checkpoint, set = [] } = request;
  const stored = storedNames(checkpoint);
  const { source, warnings } = await sourceConfigOf(request);
  if (set.length > 0 && source === undefined && request.target === undefined) {
    throw usageError(
      `${setting('set')} requires a config, found none`,
      `name the config of the input with ${setting('config')}, or leave ${setting('set')} out`,
    );
  }
  const target = request.target
    ? await targetConfig(request.target, source, checkpoint, set)
    : undefined;
  const srte = await srteOf(request, { stored, place, source, target });
  const job = isUnspecific(request) ? meantChange(request, srte, place) : request;
  const layout = srte && layoutFor(srte, job, target);
  const names = outputNames(job, stored);
  if (srte && layout) refuseUnchanged(job, srte.layout, layout);
  return { job, place, source, target, srte, layout, ...names, warnings };
}

/** Whether the rank of the output depends on an error and is still unknown. */
export const isRankOpen = ({ layout }: ConversionInput): boolean =>
  layout?.form === 'low-rank' && layout.rank === null;

/**
 * @param foundRank The computed rank of a pair. Without it, the shapes are those of rank 1.
 * @throws UserError when the tensors of the input and of the output do not match.
 */
export async function planConversion(
  input: ConversionInput,
  foundRank?: number,
): Promise<ConversionPlan> {
  const { job, source, srte } = input;
  const { checkpoint, set = [] } = job;
  const isOpen = isRankOpen(input);
  const layout = input.layout && isOpen ? { ...input.layout, rank: foundRank ?? 1 } : input.layout;
  const change = { srte: layout, dtype: job.dtype, ...(job.tie !== undefined && { tied: true }) };
  const config = input.target ?? (source && (await changedConfig(source, checkpoint, change, set)));
  if (config && layout && set.length > 0) refuseContradiction(config, layout);
  const planned = planTensors(input, config, layout);
  const isOther = !isDeepStrictEqual(layout, srte?.layout) || job.tie !== undefined;
  const keepsConfig = config === undefined && !isOther && job.dialect === undefined;
  const hasConfig =
    config !== undefined || (keepsConfig && isTrainingFormat(input.place.container));
  const leftOut = [...planned.leftOut, ...input.dropped, ...contentLeftOut(checkpoint, hasConfig)];
  const target = isOpen && foundRank === undefined ? input.layout : layout;
  const srtePlan = planned.srte && target ? { ...planned.srte, target } : null;
  return withQuantization({ ...planned, srte: srtePlan, leftOut, config, keepsConfig }, input);
}

/** @throws UserError when the user's own settings describe another SRTE than the requested one. */
function refuseContradiction({ model }: TargetConfig, layout: SrteLayout): void {
  const described = srteLayoutOf(model);
  const keys = ['sharing', 'form', 'rank', 'positions', 'hidden', 'layers'] as const;
  const wrong = keys.find((key) => described?.[key] !== layout[key]);
  if (wrong === undefined) return;
  throw usageError(
    `${setting('set')} contradicts the requested SRTE: its ${wrong} would be ${described?.[wrong]}, not ${layout[wrong]}`,
    `set it with ${setting('layout')}, ${setting('rank')} and ${setting('maxPositions')}, or with ${setting('target')}`,
  );
}

/**
 * The default change when no flag names one. If each layer of a PyTorch or safetensors checkpoint has a table, this is
 * a shared table; else it is the container of the output. An exported ONNX graph only changes its file format: its
 * layout was chosen at the export, and a mean of its tables computes another function.
 * @throws UserError when the output would have the container of the input.
 */
function meantChange(
  job: ConversionJob,
  srte: SrteSource | undefined,
  place: CheckpointTarget,
): ConversionJob {
  const { set = [] } = job;
  const isExport = job.checkpoint.format === 'onnx';
  if (
    srte?.layout.sharing === 'per-layer' &&
    srte.layout.form !== 'sincos' &&
    set.length === 0 &&
    !isExport
  ) {
    const shown = job.display.steps();
    shown.say(`each layer has a table: converting to ${setting('layout', 'shared')}`);
    shown.end();
    return { ...job, layout: 'shared' };
  }
  if (changesFiles(job.checkpoint, place)) return { ...job, container: place.container };
  const has = srte ? 'one SRTE for all layers' : 'no SRTE';
  throw usageError(
    `expected a change, found none${set.length > 0 ? `: ${setting('set')} alone changes no tensor` : ''}; the input has ${has}`,
    srte
      ? `write ${setting('layout', 'per-layer')}, ${setting('rank', '128')}, ${setting('dtype', 'bf16')}, ${setting('tie', 'embed')} or ${setting('container', 'safetensors')}`
      : `write ${setting('dtype', 'bf16')}, ${setting('tie', 'embed')} or ${setting('container', 'safetensors')}`,
  );
}

/** Undefined without an SRTE or a request for one. */
async function srteOf(
  job: ConversionJob,
  {
    stored,
    place,
    source,
    target,
  }: Pick<ConversionInput, 'place' | 'source' | 'target'> & { readonly stored: StoredNames },
): Promise<SrteSource | undefined> {
  try {
    return await srteSourceOf(job.checkpoint, stored, source?.model, job.maxPositions);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const asked = SRTE_SETTINGS.find((name) => job[name] !== undefined);
    const isTarget = target !== undefined && srteLayoutOf(target.model) !== undefined;
    if (asked === undefined && !isTarget) return undefined;
    throw source && srteLayoutOf(source.model) === undefined
      ? withoutSrte(job, { place, source, asked: asked ?? 'target' })
      : error;
  }
}

/** Settings of the SRTE of the output. */
const SRTE_SETTINGS = ['layout', 'rank', 'maxError', 'maxPositions'] as const;

/** Smaller types of weights that the files of a container can have. */
const SMALLER = {
  safetensors: { quantize: 'int8' },
  pt: { dtype: 'f16' },
  gguf: { dtype: 'q8_0' },
} as const satisfies Record<Container, object>;

/** The error of a setting of the SRTE for a model that has none by its config, with what makes its weights smaller. */
function withoutSrte(
  { checkpoint, out, ...job }: ConversionJob,
  {
    place,
    source,
    asked,
  }: {
    readonly place: CheckpointTarget;
    readonly source: SourceConfig;
    readonly asked: (typeof SRTE_SETTINGS)[number] | 'target';
  },
): UserError {
  const value = asked === 'target' ? job.target : job[asked];
  const smaller = commandText(
    'convertCheckpoint',
    [checkpoint.path, out],
    SMALLER[place.container],
  );
  return usageError(
    `${setting(asked, value)} changes an SRTE, and ${checkpoint.path} holds a ${source.family.name} model, which has none`,
    `only hybrid models have one; to make the weights smaller, write ${smaller}`,
  );
}

function layoutFor(
  srte: SrteSource,
  job: ConversionJob,
  target: TargetConfig | undefined,
): SrteLayout {
  if (target === undefined) return requestedLayout(srte.layout, job);
  const described = srteLayoutOf(target.model);
  if (described === undefined) {
    throw usageError(
      `${job.target} describes a model without an SRTE`,
      'name the config of a hybrid model',
    );
  }
  refuseOtherSizes(srte.layout, described, job);
  const { sharing, form, rank, positions } = described;
  // Called only for its checks of the input's rows and of the rank.
  requestedLayout(srte.layout, {
    ...job,
    maxPositions: positions,
    ...(rank !== null && { layout: sharing === 'shared' ? 'low-rank' : 'per-layer', rank }),
  });
  return { ...srte.layout, sharing, form, rank, positions };
}

/**
 * Refuses a target of another width or depth: the conversion changes neither.
 * @throws UserError with the sizes of both, and with the flags for the layout of the target.
 */
function refuseOtherSizes(source: SrteLayout, described: SrteLayout, { target }: ConversionJob) {
  const { hidden, layers } = described;
  if (hidden === source.hidden && layers === source.layers) return;
  const sizes = (of: SrteLayout) =>
    `width ${formatInteger(of.hidden)} and ${counted(of.layers, 'layer')}`;
  const name = layoutNamed(described);
  const half = Math.floor(Math.min(source.positions, source.hidden - 1) / 2);
  const rank = Math.max(1, Math.min(described.rank ?? 1, half));
  const layout =
    name &&
    [setting('layout', name), ...(name === 'low-rank' ? [setting('rank', rank)] : [])].join(' ');
  throw usageError(
    `${target} describes a model of ${sizes(described)}, and the checkpoint has ${sizes(source)}`,
    `choose a target of the same sizes${layout ? `; ${layout} in its place makes such a layout here` : ''}`,
  );
}

/** The value of `--to` for the layout of a target. */
const layoutNamed = ({ sharing, form }: SrteLayout): string | undefined =>
  LAYOUT_NAMES.find((name) => LAYOUTS[name].sharing === sharing && LAYOUTS[name].form === form);

/** The tensors of the input under the output's names. */
function outputNames(
  { checkpoint, dialect: namingScheme, heads }: ConversionJob,
  stored: StoredNames,
): Pick<ConversionInput, 'tensors' | 'dropped'> {
  if (namingScheme === undefined || heads === undefined) return { tensors: stored, dropped: [] };
  const { sources, dropped } = fromOldMiniMind(checkpoint.path, stored, heads);
  const why = 'recomputed from the config, not stored in current files';
  return { tensors: sources, dropped: dropped.map((name) => ({ name, why })) };
}

/** Whether the output has another container than the input, or joins its several files into one. */
const changesFiles = ({ format, files }: Checkpoint, { container, kind }: CheckpointTarget) =>
  containerOfFormat(format) !== container || (kind === 'file' && files.length > 1);

/** @throws UserError when the request keeps the SRTE and changes nothing else. */
function refuseUnchanged(job: ConversionJob, source: SrteLayout, layout: SrteLayout): void {
  const {
    layout: asked,
    tie,
    dtype,
    container,
    set = [],
    shardSize: shard,
    quantize,
    dequantize,
  } = job;
  const keys = ['sharing', 'form', 'rank', 'positions'] as const;
  const isSame = keys.every((key) => layout[key] === source[key]);
  const others = [tie, dtype, container, shard, quantize, dequantize || undefined];
  const hasMore = others.some((each) => each !== undefined) || set.length > 0;
  if (asked === undefined || !isSame || hasMore) return;
  const file = job.checkpoint.path;
  throw new UserError('refused-file', `${file} has that layout already`, {
    problems: [
      {
        severity: 'error',
        file,
        message: `its SRTE is ${asked} already`,
        suggestion: 'leave it as it is, or ask for another layout',
        rule: 'conversion-changes',
      },
    ],
  });
}

/** Entries of a training checkpoint that the output keeps: see `torchFile`. */
const STEP = 'step';
const CONFIG = 'config';

const OPTIMIZER = /optim/i;

/**
 * Entries of a training checkpoint that are not part of the model.
 * @param hasConfig Whether the output has the config, or a replacement.
 */
const contentLeftOut = ({ content }: Checkpoint, hasConfig: boolean): Omission[] =>
  [...content.keys()]
    .filter((key) => key !== STEP && !(key === CONFIG && hasConfig))
    .map((name) => ({ name, why: reasonOf(name) }));

function reasonOf(name: string): string {
  if (name === CONFIG) return 'does not describe the output and cannot be converted';
  return OPTIMIZER.test(name)
    ? 'optimizer state applies only to the original tensors'
    : 'it is not part of the model';
}
