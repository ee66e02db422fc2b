/** The conversion of a plan, planned again from its input and compared with the plan. */

import { createHash, type Hash } from 'node:crypto';
import { statSync } from 'node:fs';
import path from 'node:path';
import { usageError } from '../../base/errors.js';
import { contentTagOf, fileStatus } from '../../base/files/mounted.js';
import { setting } from '../../base/text/setting.js';
import { ByteFile } from '../../checkpoint/byte-file.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { quotedNames } from '../../checkpoint/checkpoint-rules.js';
import { type PreparedConversion, prepare } from '../../convert/conversion/conversion.js';
import { outputFilesOf } from '../../convert/conversion/execute/accompanying-files.js';
import type { OutputFile } from '../../convert/conversion/execute/output-files.js';
import type { ConversionDisplay, ConversionRequest } from '../../convert/conversion/job.js';
import type {
  ConversionInput,
  ConversionPlan,
} from '../../convert/conversion/plan/conversion-plan.js';
import { planConversion } from '../../convert/conversion/plan/plan-conversion.js';
import { withAdapter } from '../../input/model-input/adapter-model.js';
import { openModelCheckpoint } from '../../input/model-input/gguf/gguf-checkpoint.js';
import { changedInput, sampleSha256 } from '../fingerprint.js';
import { divide } from './divide.js';
import { modelsOfConversion, type PartsPlan, type PlannedPart } from './parts-plan.js';

/** Needs of a part, in addition to its plan. */
export interface PartsSurroundings {
  readonly display: ConversionDisplay;
  /** Makes models of the hub readable. */
  readonly mount: (models: readonly string[]) => Promise<unknown>;
}

export interface OpenedParts extends PreparedConversion {
  /** The files of the output. */
  readonly files: readonly OutputFile[];
  /** @throws UserError when a sampled byte of a file differs from the plan. */
  readonly refuseOther: (files: Iterable<ByteFile>) => void;
  close(): Promise<void>;
}

/**
 * Opens the input of a plan.
 * @throws UserError when the input is another one than was planned, or gives another output.
 */
export async function openParts(
  plan: PartsPlan,
  { display, mount, force }: PartsSurroundings & { readonly force: boolean },
): Promise<OpenedParts> {
  refuseChangedSizes(plan);
  const models = modelsOfConversion(plan);
  if (models.length > 0) await mount(models);
  const { path: input } = plan.input;
  const { stateDict, mergeLora: adapter, ...flags } = plan.request;
  let checkpoint = openModelCheckpoint(input, { stateDict });
  let prepared: PreparedConversion | undefined;
  const close = async () => {
    await prepared?.resources.backend.close();
    checkpoint.close();
  };
  try {
    if (adapter !== undefined) checkpoint = await withAdapter(checkpoint, adapter, flags);
    refuseOtherHubFiles(plan);
    if (indexSha256(checkpoint, adapter) !== plan.input.indexSha256) {
      throw changedInput(`${input} has other tensors than when it was planned`);
    }
    prepared = await prepare(requestFrom(plan, checkpoint, display, force));
    const { rank, blockRows, products } = plan.compute;
    const { input: opened } = prepared;
    const conversion = rank === null ? prepared.plan : await planConversion(opened, rank);
    const files = outputFilesOf(opened, conversion);
    refuseOtherImportances(plan, conversion);
    if (outputSha256(opened, conversion, files) !== plan.output.planSha256) {
      throw changedInput(`the config or the tokenizer files of ${input} are not those of the plan`);
    }
    refuseOtherProducts(products, prepared.resources.backend.name);
    const resources = { ...prepared.resources, blockRows };
    const planned = { input: opened, plan: conversion, resources };
    if (workOf(divide(plan.parts.length, planned, files)) !== workOf(plan.parts)) {
      throw changedInput(`${input} is divided otherwise than in the plan`);
    }
    const all = checkpoint.files;
    const refuseOther = (read: Iterable<ByteFile>) => refuseOtherSamples(plan, all, read);
    return { ...planned, files, refuseOther, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function requestFrom(
  { request, output }: PartsPlan,
  checkpoint: ConversionRequest['checkpoint'],
  display: ConversionDisplay,
  force: boolean,
): ConversionRequest {
  return {
    ...request,
    force,
    checkpoint,
    display,
    out: output.kind === 'folder' ? `${output.path}/` : output.path,
    ...{ dryRun: false, resume: false, check: false, prove: false },
    // Planning has shown them.
    warn: async () => {},
  };
}

function refuseChangedSizes({ input: { path, files } }: PartsPlan): void {
  const wrong = files.flatMap((file) => {
    if (file.sampleSha256 === undefined) return [];
    const size = statSync(file.path, { throwIfNoEntry: false })?.size;
    if (size === file.bytes) return [];
    return [
      `${file.path} (${size === undefined ? 'missing' : `${size} bytes, not ${file.bytes}`})`,
    ];
  });
  if (wrong.length > 0)
    throw changedInput(`${path} is not the input of the plan: ${quotedNames(wrong)}`);
}

/** A commit does not change, but a mirror can serve something else. */
function refuseOtherHubFiles({ input: { files } }: PartsPlan): void {
  for (const { path, bytes, sampleSha256: sample, contentTag: planned } of files) {
    if (sample !== undefined) continue;
    const size = fileStatus(path)?.size;
    if (size === undefined)
      throw changedInput(`${path} is missing, and was there when it was planned`);
    if (size !== bytes) throw changedInput(`${path} has ${size} bytes, not ${bytes} as planned`);
    const found = contentTagOf(path);
    if (planned !== undefined && found !== undefined && planned !== found) {
      throw changedInput(
        `${path} has other content than when it was planned: ${found}, not ${planned}`,
      );
    }
  }
}

function refuseOtherSamples(
  { input }: PartsPlan,
  all: readonly ByteFile[],
  files: Iterable<ByteFile>,
): void {
  const planned = new Map(all.map((file, index) => [file, input.files[index]]));
  for (const file of files) {
    const expected = planned.get(file)?.sampleSha256;
    if (expected !== undefined && sampleSha256(file) !== expected) {
      throw changedInput(`${file.path} has other bytes than when it was planned`);
    }
  }
}

function refuseOtherImportances({ request, output }: PartsPlan, { gguf }: ConversionPlan): void {
  const [planned, found] = [output.importanceSha256, gguf?.importanceSha256];
  if (planned === undefined || planned === found) return;
  throw changedInput(`${request.imatrix} has other importances than when it was planned`);
}

/** The units of all parts, as text. */
const workOf = (parts: readonly Pick<PlannedPart, 'part' | 'slices' | 'tables' | 'files'>[]) =>
  JSON.stringify(parts.map(({ part, slices, tables, files }) => [part, slices, tables, files]));

/** Engines round products in their own way, so one conversion uses one. Threads do not matter. */
function refuseOtherProducts(planned: string, here: string): void {
  const [expected, found] = [planned, here].map((name) => name.split(',')[0]);
  if (expected === found) return;
  throw usageError(
    `the plan computes matrix products with ${expected}, and this machine has ${found}`,
    `install the same engine on every machine, or plan again with ${setting('engine', 'tfjs')}`,
  );
}

// Fingerprints of a conversion's input and of its planned output, from contents and never from times.

/**
 * SHA-256 of the index of all tensors of a checkpoint, as its headers give it.
 * @param adapter Folder of a LoRA adapter that is merged: its config scales the values.
 */
export function indexSha256(
  { tensors, aliases, metadata, files }: Checkpoint,
  adapter: string | undefined,
): string {
  const numbers = new Map(files.map((file, number) => [file, number]));
  const hash = createHash('sha256');
  updateLines(hash, tensors, ([name, tensor]) => {
    const { dtype, shape, strides, offset, storage, encoding } = tensor;
    const place = [numbers.get(storage.file) ?? -1, storage.position, storage.isBigEndian];
    const packed = encoding && [encoding.type, encoding.position, encoding.bytes];
    return JSON.stringify([name, dtype, shape, strides, offset, place, packed]);
  });
  hash.update(JSON.stringify([...aliases]));
  hash.update(JSON.stringify([...metadata].sort()));
  if (adapter !== undefined) {
    const config = ByteFile.open(path.join(adapter, 'adapter_config.json'));
    hash.update(config.read(0, config.size));
    config.close();
  }
  return hash.digest('hex');
}

/** SHA-256 of all that a plan says about its output: tensors, their sources, the config, the metadata, the files. */
export function outputSha256(
  { job: { checkpoint } }: ConversionInput,
  plan: ConversionPlan,
  files: readonly Pick<OutputFile, 'name' | 'bytes'>[],
): string {
  const { tensors, names, srte, tie, quantization, formulas, config, keepsConfig, gguf } = plan;
  const hash = createHash('sha256');
  updateLines(hash, tensors, (tensor) =>
    // Most are copied. Their JSON is the same, and takes a third of the time.
    tensor.action.do === 'copy' ? JSON.stringify(tensor) : plainJson(tensor),
  );
  // The hash of importances stands for their millions of values.
  const metadata = gguf && { ...gguf, importances: undefined };
  hash.update(plainJson([names, srte, tie, quantization, formulas, keepsConfig, metadata]));
  hash.update(plainJson([config?.written.text, checkpoint.content.get('step')]));
  hash.update(plainJson(files.map(({ name, bytes }) => [name, bytes])));
  return hash.digest('hex');
}

/** Lines that go into a hash at once: a call for each takes longer than hashing it. */
const LINES = 1000;

function updateLines<Value>(
  hash: Hash,
  values: Iterable<Value>,
  lineOf: (value: Value) => string,
): void {
  let lines: string[] = [];
  const flush = () => {
    hash.update(lines.join(''));
    lines = [];
  };
  for (const value of values) {
    lines.push(`${lineOf(value)}\n`);
    if (lines.length === LINES) flush();
  }
  flush();
}

/** JSON of values that JSON lacks too. */
const plainJson = (value: unknown): string =>
  JSON.stringify(value, (_, each) => {
    if (typeof each === 'bigint') return `${each}n`;
    if (each instanceof Map) return [...each];
    return ArrayBuffer.isView(each) ? [...(each as Uint8Array)] : each;
  }) ?? '';
