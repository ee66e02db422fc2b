/** From a checkpoint and what is asked for to the plan of a conversion. */

import { isDeepStrictEqual } from 'node:util';
import type { SrteLayout } from '../../architecture/srte-layout.js';
import { srteLayoutOf } from '../../architecture/srte-layout.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import type { StoredNames } from '../../checkpoint/stored-names.js';
import { storedNames } from '../../checkpoint/stored-names.js';
import type { Problem } from '../../errors.js';
import { UserError } from '../../errors.js';
import { leftOutOf } from '../execute/accompanying-files.js';
import type { ConversionRequest } from '../job.js';
import { fromOldMiniMind } from '../legacy/old-minimind-names.js';
import type { SrteSource } from '../srte/srte-plan.js';
import { requestedLayout, srteSourceOf } from '../srte/srte-plan.js';
import type { SourceConfig, TargetConfig } from './model-configs.js';
import { changedConfig, sourceConfigOf, targetConfig } from './model-configs.js';
import type { LeftOut } from './plan.js';
import type { Planned, SourceTensors } from './plan-tensors.js';
import { planConversion } from './plan-tensors.js';

/** What a user asks for beside the conversion of the SRTE and the types. */
export interface PlanFlags extends ConversionRequest {
  readonly config: string | undefined;
  readonly lookForConfig: boolean;
  /** A config to arrive at. */
  readonly target: string | undefined;
  /** Overrides of the config of the output. */
  readonly set: readonly string[];
  /** Attention heads of a file in MiniMind's old dialect; undefined for today's names. */
  readonly oldHeads: number | undefined;
  /** Whether every buffer has to be there, for a strict loader. */
  readonly completesBuffers: boolean;
  /** Whether the file is written anew for another reason: its container, its shards. */
  readonly isMoved: boolean;
}

/** A conversion whose rank, where one is to be found, is still open. */
export interface Subject {
  readonly source: SourceConfig | undefined;
  readonly srte: SrteSource | undefined;
  readonly warnings: readonly Problem[];
  /** Null when the rank of the output is yet to be found. */
  readonly rank: number | null;
  /** @param rank When it has been found. */
  plan(rank: number | null): Promise<Planning>;
}

export interface Planning extends Planned {
  readonly config: TargetConfig | undefined;
  /** Whether a config that nothing here can read still says what is true. */
  readonly keepsConfig: boolean;
}

/**
 * @throws UserError when the checkpoint, its config or the request are wrong, or do not fit each other.
 */
export async function conversionOf(
  checkpoint: Checkpoint,
  flags: PlanFlags,
  watch: (bytes: number) => (bytes: number) => void,
): Promise<Subject> {
  const stored = storedNames(checkpoint);
  const lookFor = {
    config: flags.config,
    lookFor: flags.lookForConfig && flags.oldHeads === undefined,
  };
  const { source, warnings } = await sourceConfigOf(checkpoint, lookFor, watch);
  if (flags.set.length > 0 && source === undefined && flags.target === undefined) {
    throw new UserError('usage', '--set has no config to change', {
      suggestion: 'name the config of the input with --config, or leave --set out',
    });
  }
  const srte = await srteOf(checkpoint, stored, source, flags);
  const arrival = flags.target
    ? await targetConfig(flags.target, source, checkpoint, flags.set)
    : undefined;
  const wanted = srte && wantedLayout(srte, flags, arrival);
  const { sources, dropped } = sourcesOf(checkpoint, stored, flags);
  if (srte && wanted) refuseUnchanged(checkpoint.path, srte.layout, wanted, flags);
  return {
    source,
    srte,
    warnings,
    rank: wanted?.form === 'low-rank' ? wanted.rank : 0,
    plan: async (rank) => {
      const layout = wanted && (wanted.form === 'low-rank' ? { ...wanted, rank } : wanted);
      const change = {
        srte: layout,
        dtype: flags.dtype,
        ...(flags.tie !== undefined && { tied: true }),
      };
      const config =
        arrival ?? (source && (await changedConfig(source, checkpoint, change, flags.set)));
      if (config && layout && flags.set.length > 0) refuseContradiction(config, layout);
      const planned = planConversion({
        file: checkpoint.path,
        sources,
        models: config && { source: source?.model, target: config.model },
        srte: srte && layout && { ...srte, source: srte.layout, target: layout },
        request: flags,
        ...(config && { ignored: config.ignored }),
        completesBuffers: flags.completesBuffers,
      });
      const isOther = !isDeepStrictEqual(layout, srte?.layout) || flags.tie !== undefined;
      const keepsConfig = config === undefined && !isOther && flags.oldHeads === undefined;
      const leftOut = [
        ...planned.plan.leftOut,
        ...dropped,
        ...leftOutOf(checkpoint, config !== undefined || (keepsConfig && flags.completesBuffers)),
      ];
      return { ...planned, plan: { ...planned.plan, leftOut }, config, keepsConfig };
    },
  };
}

/** @throws UserError when the user's own settings describe another SRTE than is asked for. */
function refuseContradiction({ model }: TargetConfig, wanted: SrteLayout): void {
  const described = srteLayoutOf(model);
  const keys = ['sharing', 'form', 'rank', 'positions', 'hidden', 'layers'] as const;
  const wrong = keys.find((key) => described?.[key] !== wanted[key]);
  if (wrong === undefined) return;
  throw new UserError(
    'usage',
    `--set describes another SRTE than is asked for: its ${wrong} would be ${described?.[wrong]}, not ${wanted[wrong]}`,
    { suggestion: 'say how it is to be with --to, --rank and --max-positions, or with --target' },
  );
}

/** Undefined when there is none, and none is asked for. */
async function srteOf(
  checkpoint: Checkpoint,
  stored: StoredNames,
  source: SourceConfig | undefined,
  flags: PlanFlags,
): Promise<SrteSource | undefined> {
  try {
    return await srteSourceOf(checkpoint, stored, source?.model, flags.positions);
  } catch (error) {
    const isWanted = [flags.to, flags.positions, flags.truncation, flags.target].some(
      (each) => each !== undefined,
    );
    if (isWanted || !(error instanceof UserError)) throw error;
    return undefined;
  }
}

function wantedLayout(
  srte: SrteSource,
  flags: PlanFlags,
  arrival: TargetConfig | undefined,
): SrteLayout {
  if (arrival === undefined) return requestedLayout(srte.layout, flags);
  const described = srteLayoutOf(arrival.model);
  if (described === undefined) {
    throw new UserError('usage', `${flags.target} describes a model without an SRTE`, {
      suggestion: 'name the config of a hybrid model',
    });
  }
  const { sharing, form, rank, positions } = described;
  const target = { ...srte.layout, sharing, form, rank, positions };
  // For its checks: of the rows there are, and of the rank.
  requestedLayout(srte.layout, {
    ...flags,
    positions,
    ...(rank !== null && {
      to: sharing === 'shared' ? 'low-rank' : 'per-layer',
      truncation: { rank },
    }),
  });
  return target;
}

function sourcesOf(
  { path }: Checkpoint,
  stored: StoredNames,
  { oldHeads }: PlanFlags,
): { readonly sources: SourceTensors; readonly dropped: readonly LeftOut[] } {
  if (oldHeads === undefined) return { sources: stored, dropped: [] };
  const { sources, dropped } = fromOldMiniMind(path, stored, oldHeads);
  const why = 'it follows from the config, and files of today do not hold it';
  return { sources, dropped: dropped.map((name) => ({ name, why })) };
}

/** @throws UserError when the SRTE is to become what it is, and nothing else is asked for. */
function refuseUnchanged(
  file: string,
  source: SrteLayout,
  wanted: SrteLayout,
  { to, tie, dtype, isMoved, set }: PlanFlags,
): void {
  const isSame =
    wanted.sharing === source.sharing &&
    wanted.form === source.form &&
    wanted.rank === source.rank &&
    wanted.positions === source.positions;
  const hasMore = tie !== undefined || dtype !== undefined || isMoved || set.length > 0;
  if (to === undefined || !isSame || hasMore) return;
  throw new UserError('refused-file', `${file} has that layout already`, {
    problems: [
      {
        severity: 'error',
        file,
        message: `its SRTE is ${to} already`,
        suggestion: 'leave it as it is, or ask for another layout',
        rule: 'conversion-changes',
      },
    ],
  });
}
