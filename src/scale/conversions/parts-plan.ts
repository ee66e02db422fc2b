/**
 * The plan of a conversion in parts, as data in a file: the request, fingerprints of the input and of the planned output,
 * and the work of each part. Every part plans again from the input, and compares.
 */
import fs from 'node:fs';
import path from 'node:path';
import * as z from 'zod';
import { usageError } from '../../base/errors.js';
import { removeQuietly } from '../../base/files/file-system.js';
import { ENCODABLE_DTYPES } from '../../base/tensor/encode.js';
import { commandText } from '../../base/text/setting.js';
import { shellWord } from '../../base/text/shell-words.js';
import { quoted } from '../../checkpoint/checkpoint-rules.js';
import { CONTAINER_NAMES } from '../../checkpoint/formats.js';
import { MIXTURE_NAMES } from '../../checkpoint/gguf/mixtures.js';
import {
  EXTENSIONS,
  LAYOUT_NAMES,
  NAMING_SCHEMES,
  TIES,
} from '../../convert/conversion/conversion-choices.js';
import type { EngineChoice } from '../../engine/select/devices.js';
import {
  numberedParts,
  PLAN_VALUES,
  type PlanFormat,
  partsFolder,
  planHead,
  readPlan,
  withHash,
} from '../plan-file.js';

const PARTS_PLAN_SCHEMA = 'minimind/conversion-parts-plan@1';

const { count, name, hash } = PLAN_VALUES;
/** A name in a folder, without a path. */
const fileName = z.string().regex(/^(?!\.{1,2}$)[^/\\]+$/);

/** Flags that determine the output, and those that bound its memory. Paths are absolute, or of a commit of the hub. */
const requestSchema = z.strictObject({
  stateDict: z.string().optional(),
  mergeLora: name.optional(),
  imatrix: name.optional(),
  layout: z.enum(LAYOUT_NAMES).optional(),
  target: name.optional(),
  merge: z.union([z.enum(['mean', 'first']), z.strictObject({ layer: count })]).optional(),
  rank: count.optional(),
  maxError: z.number().optional(),
  maxPositions: count.optional(),
  extend: z.enum(EXTENSIONS).optional(),
  tie: z.enum(TIES).optional(),
  dtype: z.enum([...ENCODABLE_DTYPES, ...MIXTURE_NAMES]).optional(),
  quantize: z.union([z.literal(4), z.literal(8)]).optional(),
  group: z.union([z.literal(16), z.literal(32), z.literal(64), z.literal(128)]).optional(),
  dequantize: z.boolean(),
  saturate: z.boolean(),
  dialect: z.enum(NAMING_SCHEMES).optional(),
  heads: count.optional(),
  container: z.enum(CONTAINER_NAMES).optional(),
  shardSize: count.optional(),
  maxMemory: count.optional(),
  config: name.optional(),
  family: name.optional(),
  noConfig: z.boolean(),
  set: z.array(z.string()).optional(),
  seed: count.optional(),
  engine: z.enum(['auto', 'onnx', 'tfjs'] as const satisfies readonly EngineChoice[]),
  threads: count.optional(),
});

const planSchema = z.strictObject({
  ...planHead(PARTS_PLAN_SCHEMA),
  input: z.strictObject({
    path: name,
    files: z.array(
      z.strictObject({
        path: name,
        bytes: count,
        /** SHA-256 of the first and last 64 KiB and four samples between. Files of the hub have none. */
        sampleSha256: hash.optional(),
        /** Tag of a file of the hub: the SHA-256 of its content, or the SHA-1 of its Git blob. */
        contentTag: z.string().optional(),
      }),
    ),
    tensors: count,
    /** SHA-256 of the index of all tensors (names, types, shapes and places), and of the config of an adapter. */
    indexSha256: hash,
  }),
  output: z.strictObject({
    path: name,
    kind: z.enum(['file', 'folder']),
    container: z.enum(CONTAINER_NAMES),
    /** All files, those without tensors last. */
    files: z.array(z.strictObject({ name: fileName, bytes: count })),
    /** SHA-256 of the planned tensors, their sources, the config and the metadata. */
    planSha256: hash,
    /** SHA-256 of the importances of its matrices. */
    importanceSha256: hash.optional(),
  }),
  request: requestSchema,
  compute: z.strictObject({
    /** Rows of a table processed at a time: a pair depends on it in its last bits. */
    blockRows: z.int().min(1),
    /** Backend of the matrix products. */
    products: name,
    limitBytes: count,
    /** Found while planning, where it depends on an error. */
    rank: count.nullable(),
  }),
  parts: numberedParts({
    /** Rows of tables, the first phase. */
    slices: z.array(z.strictObject({ table: count, first: count, end: count })),
    /** Tables that are joined and factorised here. */
    tables: z.array(count),
    files: z.array(fileName),
    readBytes: count,
    writeBytes: count,
    /** Predicted peak of the process. */
    memoryBytes: count,
  }),
});

export type PartsPlan = z.infer<typeof planSchema>;
export type PlannedPart = PartsPlan['parts'][number];
export type PartsRequest = z.infer<typeof requestSchema>;

/** The flags that a plan keeps. */
export const plannedRequest = (flags: object): PartsRequest => requestSchema.strip().parse(flags);

/** Models of the hub that a plan reads, at their commits. */
export function modelsOfConversion({ input, request }: PartsPlan): string[] {
  const paths = [input.path, request.mergeLora, request.target, request.config];
  // Paths on a disk are absolute.
  return paths.filter((each): each is string => each?.startsWith('hf:') === true);
}

const FORMAT: PlanFormat<PartsPlan> = {
  name: PARTS_PLAN_SCHEMA,
  content: planSchema,
  command: 'convert-checkpoint IN OUT',
};

/** A plan with its hash. */
export const hashedPartsPlan = (content: Omit<PartsPlan, 'schema' | 'hash'>): PartsPlan =>
  withHash(FORMAT, content);

/** The file of a plan, the version of minimind, and the output as the command line names it. */
export interface PlanFile {
  readonly file: string;
  readonly version: string;
  /** Undefined where the command line names none. */
  readonly out?: string | undefined;
}

/** @throws UserError as `readPlan`. */
export const readPartsPlan = ({ file, version }: PlanFile): Promise<PartsPlan> =>
  readPlan(FORMAT, file, version);

/** Rows of a table that the parts of a plan compute, in their order. */
export const slicesOf = ({ parts }: PartsPlan, table: number): PlannedPart['slices'] =>
  parts
    .flatMap(({ slices }) => slices)
    .filter((slice) => slice.table === table)
    .toSorted((a, b) => a.first - b.first);

/**
 * Reads a plan whose output is written. A plan can come from someone else, so an output in another place than the working
 * folder and the folder of the plan must be named.
 * @throws UserError as `readPlan`, and for an output that is not named or another one.
 */
export async function readPlanToWrite(named: PlanFile): Promise<PartsPlan> {
  const plan = await readPartsPlan(named);
  const target = path.resolve(plan.output.path);
  const { file, out } = named;
  if (out !== undefined) {
    if (path.resolve(out) === target) return plan;
    throw usageError(
      `expected the output of ${file}, ${quoted(target)}, found ${quoted(out)}`,
      `write ${shellWord(target)}, or plan again`,
    );
  }
  const isBelow = [path.dirname(path.resolve(file)), process.cwd()].some((folder) => {
    const below = path.relative(folder, target);
    return below !== '' && !below.startsWith('..') && !path.isAbsolute(below);
  });
  if (isBelow) return plan;
  throw usageError(
    `${file} writes into another folder: ${quoted(target)}`,
    `name it, if you want that: ${commandText('convertCheckpoint', [target], { plan: file })} …`,
  );
}

/** The folders in which the parts are built, next to the output. */
export class PartsFolder {
  readonly #output: PartsPlan['output'];
  /** All of them, the one that has the others first. */
  readonly all: readonly [root: string, ...string[]];
  /** Finished files of the output. */
  readonly files: string;
  /** Tables and their rows. */
  readonly spool: string;
  readonly receipts: string;
  readonly locks: string;
  /** The receipts of a finished output. */
  readonly finished: string;

  constructor(plan: PartsPlan) {
    this.#output = plan.output;
    const root = partsFolder(plan.output.path, plan);
    this.files = path.join(root, 'files');
    this.spool = path.join(root, 'spool');
    this.receipts = path.join(root, 'receipts');
    this.locks = path.join(root, 'locks');
    this.all = [root, this.files, this.spool, this.receipts, this.locks];
    this.finished = path.join(root, 'finished.json');
  }

  /** Whether `--finish` has already put the output in place. */
  get isFinished(): boolean {
    if (!fs.existsSync(this.finished)) return false;
    const { kind, path: target, files } = this.#output;
    const folder = kind === 'folder' ? target : path.dirname(target);
    return files.every(({ name, bytes }) => {
      return fs.statSync(path.join(folder, name), { throwIfNoEntry: false })?.size === bytes;
    });
  }

  /** Path of a finished file: in this folder, or in the output that an interrupted finish has begun. */
  written(name: string): string {
    const own = path.join(this.files, name);
    if (fs.existsSync(own)) return own;
    const { dir, base } = path.parse(this.#output.path);
    const staged = path.join(dir, `.${base}.minimind`, 'files', name);
    return fs.existsSync(staged) ? staged : own;
  }

  /**
   * Removes all but the receipts of the finished output. Files that a late task has open can stay: NFS keeps them under
   * another name.
   */
  clear(): void {
    const [, ...folders] = this.all;
    for (const folder of folders) removeQuietly(folder);
  }
}
