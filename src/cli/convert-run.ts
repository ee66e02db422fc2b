/** The run of a conversion: its memory, its files, its place. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { openCheckpoint } from '../checkpoint/open.js';
import type { Writable } from '../checkpoint/torch/pickle/write-opcodes.js';
import { escapeText } from '../config/quote.js';
import { WrongOutput } from '../conversion/check-output.js';
import { type Executed, execute, makeTables } from '../conversion/execute.js';
import { stepOf } from '../conversion/left-out.js';
import type { MadeTable, Scratch } from '../conversion/make-tables.js';
import { type MemoryPlan, planMemory } from '../conversion/memory.js';
import type { Multiplier } from '../conversion/multiplier.js';
import {
  type Companions,
  type OutputFile,
  safetensorsFiles,
  torchFile,
  type ValuesOf,
} from '../conversion/outputs.js';
import type { OutputPlace } from '../conversion/places.js';
import type { PlannedShard, SrtePlan } from '../conversion/plan.js';
import { DEFAULT_SHARD_BYTES, shardsOf } from '../conversion/shards.js';
import { copiesOf, refuseLostSidecars, sidecarNotes, sidecarsOf } from '../conversion/sidecars.js';
import { findSrteTables } from '../conversion/srte-tables.js';
import { configWith, writableOf } from '../conversion/torch-config.js';
import { UserError } from '../errors.js';
import { CONFIG_FILES, type ConfigFormat, configIn, ownConfigName } from '../files/config-names.js';
import { refuseFullDisk } from '../files/disk-space.js';
import { isSameFile } from '../files/names.js';
import { checkReplaceable, findOutputPlace } from '../files/output-place.js';
import { explained } from '../files/refusals.js';
import { Staging } from '../files/staging.js';
import { formatBytes } from '../text/units.js';
import type { PlanFlags, Planning, Subject } from './convert-plan.js';
import { scratchAt, temporaryScratch } from './convert-scratch.js';
import { CLEAR_LINE } from './progress.js';

export interface RunFlags extends PlanFlags {
  readonly place: OutputPlace;
  readonly shardBytes: number | undefined;
  readonly maxMemoryBytes: number;
  readonly seed: number;
  readonly force: boolean;
  readonly resume: boolean;
  readonly check: boolean;
}

export type Step = (label: string, bytes: number) => (bytes: number) => void;

/** The output as it would be, or is. */
export interface Converted extends Planning {
  readonly files: readonly {
    readonly name: string;
    readonly bytes: number;
    readonly resumed?: boolean;
  }[];
  readonly memory: MemoryPlan;
  /** Null for a plan. */
  readonly tables: Executed['tables'] | null;
  readonly tie: Executed['tie'] | null;
}

/**
 * Everything that can be said without writing the output. A rank that is given by its error is found, for
 * which the tables are read.
 */
export async function preview(
  checkpoint: Checkpoint,
  subject: Subject,
  flags: RunFlags,
  multiplierFor: (srte: SrtePlan | null) => Promise<Multiplier>,
  step: Step,
): Promise<Converted> {
  const first = await subject.plan(subject.rank ?? 1);
  const srte = withOpenRank(first.plan.srte, subject);
  const multiplier = await multiplierFor(srte);
  const memory = memoryFor(srte, flags, multiplier);
  let planning = first;
  if (subject.rank === null) {
    const scratch = temporaryScratch();
    try {
      const tools = { scratch, multiplier, memory, step };
      const made = await make(checkpoint, subject, first, flags, tools);
      planning = await subject.plan(made[0]?.rank ?? 1);
    } finally {
      scratch.close();
    }
  }
  return {
    ...planning,
    files: await expectedFiles(checkpoint, planning, subject, flags),
    memory,
    tables: null,
    tie: null,
    plan: withNotes(planning, [
      ...sidecarNotes(checkpoint, flags.place.kind),
      ...standsThere(checkpoint, flags),
    ]),
  };
}

/** @throws UserError when their place cannot be written to, or their format cannot hold the tensors. */
const expectedFiles = (
  checkpoint: Checkpoint,
  planning: Planning,
  subject: Subject,
  flags: RunFlags,
): Promise<readonly OutputFile[]> =>
  explained(flags.place.path, () =>
    filesOf(checkpoint, planning, flags, configNameFor(subject, planning, flags))(noValues),
  );

/** What a real run would be refused for. */
function standsThere(checkpoint: Checkpoint, flags: RunFlags): string[] {
  const { place, force } = flags;
  try {
    checkReplaceable(findOutputPlace(place.path, place.kind), force);
    refuseLost(checkpoint, flags);
    return [];
  } catch (error) {
    if (!(error instanceof UserError)) return [];
    return [`As it is, the output could not be written: ${error.message}`];
  }
}

function refuseLost(checkpoint: Checkpoint, { place, force }: RunFlags): void {
  if (place.kind === 'folder' && force) refuseLostSidecars(place.path, sidecarsOf(checkpoint));
}

const withNotes = ({ plan }: Planning, notes: readonly string[]) => ({
  ...plan,
  notes: [...plan.notes, ...notes],
});

const noValues: ValuesOf = () => {
  throw new Error('a preview writes nothing');
};

/** Converts, and puts the output in its place. */
export async function convert(
  checkpoint: Checkpoint,
  subject: Subject,
  flags: RunFlags,
  multiplierFor: (srte: SrtePlan | null) => Promise<Multiplier>,
  step: Step,
): Promise<Converted & { readonly resumed: boolean; readonly products: string }> {
  // All that can be wrong with the plan is told before anything is made.
  const first = await subject.plan(subject.rank ?? 1);
  const srte = withOpenRank(first.plan.srte, subject);
  const multiplier = await multiplierFor(srte);
  const memory = memoryFor(srte, flags, multiplier);
  const expected = await expectedFiles(checkpoint, first, subject, flags);
  // What is there to resume takes its space already.
  if (!flags.resume) refuseFullDisk(flags.place.path, expected);
  refuseLost(checkpoint, flags);
  const staging = await openStaging(checkpoint, subject, first, flags);
  const scratch = scratchAt((name) => staging.spool(name));
  const stopped = () => tellStopped(staging, flags);
  process.once('exit', stopped);
  const tools = { scratch, multiplier, memory, step };
  try {
    // What an earlier run has put in its place needs nothing but to be looked at.
    const made = staging.isInPlace ? [] : await make(checkpoint, subject, first, flags, tools);
    const rank = subject.rank ?? made[0]?.rank ?? rankIn(flags.place.path);
    const planning = subject.rank === null ? await subject.plan(rank) : first;
    const usual = CONFIG_FILES[formatOf(planning)];
    const configName = staging.isFinished(usual) ? usual : configNameFor(subject, planning, flags);
    const saturate = flags.saturate;
    const check = flags.check && !staging.isInPlace;
    const { files, tables, tie } = await execute(
      {
        checkpoint,
        tables: subject.srte?.tables ?? null,
        planned: planning,
        made,
        files: filesOf(checkpoint, planning, flags, configName),
      },
      { ...optionsOf(tools), output: staging, saturate, check },
    );
    scratch.close();
    await staging.commit();
    const resumed = files.some((file) => file.resumed);
    const plan = withNotes(planning, sidecarNotes(checkpoint, flags.place.kind));
    return { ...planning, plan, files, tables, tie, memory, resumed, products: multiplier.name };
  } catch (error) {
    scratch.close();
    throw await abandoned(error, staging, flags);
  } finally {
    process.removeListener('exit', stopped);
  }
}

/** Where Ctrl-C, or whatever else ends the process, leaves a conversion. */
function tellStopped(staging: Staging, { place }: RunFlags): void {
  if (!staging.isWorthKeeping) return;
  const line = process.stderr.isTTY ? CLEAR_LINE : '';
  process.stderr.write(`${line}stopped: ${goOn(place)}\n`);
}

const goOn = ({ path: out }: OutputPlace) =>
  `go on with --resume: what is finished of ${escapeText(out)} is kept`;

/** The rank of the pair in a finished output. */
function rankIn(file: string): number {
  const output = openCheckpoint(file);
  try {
    return findSrteTables(output).rank ?? 0;
  } finally {
    output.close();
  }
}

interface Tools {
  readonly scratch: Scratch;
  readonly multiplier: Multiplier;
  readonly memory: MemoryPlan;
  readonly step: Step;
}

const optionsOf = ({ scratch, multiplier, memory, step }: Tools) => ({
  scratch,
  products: multiplier.products,
  blockRows: memory.blockRows,
  step,
});

function make(
  checkpoint: Checkpoint,
  subject: Subject,
  { plan }: Planning,
  { seed, saturate, truncation }: RunFlags,
  tools: Tools,
): Promise<(MadeTable | undefined)[]> {
  const relativeError =
    truncation && 'relativeError' in truncation ? truncation.relativeError : undefined;
  const input = { checkpoint, tables: subject.srte?.tables ?? null };
  return makeTables(plan.srte, input, { ...optionsOf(tools), seed, saturate, relativeError });
}

/** The rank that a first plan is made with is none, when it is yet to be found. */
const withOpenRank = (srte: SrtePlan | null, { rank }: Subject): SrtePlan | null =>
  srte && rank === null ? { ...srte, target: { ...srte.target, rank } } : srte;

function memoryFor(srte: SrtePlan | null, flags: RunFlags, { bytes }: Multiplier): MemoryPlan {
  const taken = { processBytes: process.memoryUsage.rss(), engineBytes: bytes };
  return planMemory(srte, flags.maxMemoryBytes, taken, formatBytes);
}

/** What was done is kept where it is worth it, and said so: not where the same would only fail again. */
async function abandoned(error: unknown, staging: Staging, { place }: RunFlags): Promise<unknown> {
  const isLost =
    error instanceof WrongOutput || (error instanceof UserError && error.code === 'refused-file');
  if (isLost) {
    await staging.discard();
    return error;
  }
  const left = await staging.abandon();
  if (left === 'removed' || !(error instanceof UserError)) return error;
  return new UserError(error.code, error.message, {
    problems: error.problems,
    suggestion: `${error.suggestion ? `${error.suggestion}, then ` : ''}${goOn(place)}`,
    cause: error,
  });
}

async function openStaging(
  checkpoint: Checkpoint,
  subject: Subject,
  first: Planning,
  flags: RunFlags,
): Promise<Staging> {
  const { place, force, resume } = flags;
  const identity = identityOf(checkpoint, subject, first, flags);
  return Staging.open(place.path, { kind: place.kind, force, resume, identity });
}

/** Changes when the result would: with the input's files, and with what is asked for. */
function identityOf(
  checkpoint: Checkpoint,
  { source }: Subject,
  first: Planning,
  flags: RunFlags,
): string {
  const { force: _, resume: __, check: ___, maxMemoryBytes: ____, ...asked } = flags;
  const target = flags.target === undefined ? undefined : first.config?.written.value;
  const inputs = checkpoint.files.map((file) => [
    path.resolve(file.path),
    file.size,
    file.changedAt,
  ]);
  const sidecars = flags.place.kind === 'folder' ? sidecarsOf(checkpoint) : [];
  const text = JSON.stringify([inputs, sidecars, asked, target, source?.written.value]);
  return createHash('sha256').update(text).digest('hex');
}

const formatOf = ({ config }: Planning): ConfigFormat => config?.written.format ?? 'yaml';

/** @param configName Of the config beside the output. */
function filesOf(
  checkpoint: Checkpoint,
  planning: Planning,
  flags: RunFlags,
  configName: string,
): (valuesOf: ValuesOf) => readonly OutputFile[] {
  const { plan } = planning;
  const { place, shardBytes, target, set } = flags;
  const isNew = target !== undefined || set.length > 0;
  const companions = { ...companionsOf(checkpoint, planning, isNew), configName };
  if (place.container === 'pt' && shardBytes !== undefined) {
    throw new UserError('usage', 'a PyTorch file has no shards', {
      suggestion: 'leave --shard-size out, or write safetensors into a folder',
    });
  }
  const shards = shardsIn(planning, flags);
  if (place.kind === 'file' && shards.length > 1) {
    throw new UserError(
      'usage',
      `${place.path} is one file, and there are ${shards.length} shards`,
      { suggestion: 'name a folder for them: a name without an ending' },
    );
  }
  const name = path.basename(placeOf(place));
  return (valuesOf) =>
    place.container === 'pt'
      ? [torchFile(name, plan, companions, valuesOf)]
      : [
          ...safetensorsFiles(plan, shards, companions, valuesOf),
          ...(place.kind === 'folder' ? copiesOf(sidecarsOf(checkpoint)) : []),
        ];
}

/** The files of the output, with the tensors in each. */
export function shardsIn({ plan }: Planning, { place, shardBytes }: RunFlags): PlannedShard[] {
  const most = place.kind === 'file' ? Number.POSITIVE_INFINITY : DEFAULT_SHARD_BYTES;
  const shards = shardsOf(plan.tensors, shardBytes ?? most);
  const [only, ...others] = shards;
  if (place.kind === 'folder' || only === undefined || others.length > 0) return shards;
  return [{ ...only, file: path.basename(placeOf(place)) }];
}

/** The path of an output, where it is a link to it. */
const placeOf = ({ path: target, kind }: OutputPlace): string => findOutputPlace(target, kind).file;

/**
 * What the config beside an output is called: `config.yaml` or, in the form of Hugging Face, `config.json`,
 * unless that is somebody else's already, or another would be taken for the output's. Even by force no config is replaced that the conversion reads.
 * @throws UserError when there is no name left for it.
 */
function configNameFor(
  { source }: Subject,
  planning: Planning,
  { place, force, target, config }: RunFlags,
): string {
  const format = formatOf(planning);
  const usual = CONFIG_FILES[format];
  if (place.kind === 'folder' || place.container === 'pt') return usual;
  const folder = path.dirname(placeOf(place));
  const read = [target, config, source?.origin === 'inside' ? undefined : source?.file];
  const isRead = (name: string) =>
    read.some((file) => file !== undefined && isSameFile(file, path.join(folder, name)));
  // Beside an output that is not there yet it is another model's.
  const mayReplace = force && fs.existsSync(placeOf(place));
  const isUsable = (name: string) =>
    !fs.existsSync(path.join(folder, name)) || (mayReplace && !isRead(name));
  const others = configIn(folder);
  const isHidden = others !== undefined && path.basename(others) !== usual && format === 'json';
  const own = ownConfigName(placeOf(place), format);
  const name = [...(isHidden ? [] : [usual]), own].find(isUsable) ?? own;
  if (!isRead(name)) return name;
  throw new UserError('usage', `${path.join(folder, name)} is read, and would be replaced`, {
    suggestion: 'choose an output in another folder: its config is written beside it',
  });
}

function companionsOf(
  checkpoint: Checkpoint,
  { config, keepsConfig }: Planning,
  isNew: boolean,
): Omit<Companions, 'configName'> {
  const metadata = new Map(
    [...checkpoint.metadata].filter(([key]) => !checkpoint.aliases.has(key) && key !== 'step'),
  );
  // A config that came with the checkpoint keeps its whole numbers and floats apart.
  const kept: Writable | undefined =
    isNew || !config?.isInside || config.written.format === 'json'
      ? undefined
      : configWith(checkpoint, config.settings);
  return {
    step: stepOf(checkpoint),
    metadata,
    config: config
      ? { text: config.written.text, value: kept ?? writableOf(config.written.value) }
      : keepsConfig
        ? unreadConfig(checkpoint)
        : null,
  };
}

/** A config that nothing here can read stays in a PyTorch file as it was, while it is true. */
function unreadConfig({ content }: Checkpoint): Companions['config'] {
  const value = content.get('config');
  return value === undefined ? null : { text: null, value };
}
