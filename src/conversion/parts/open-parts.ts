/** The conversion of a plan, planned again from its input and compared with the plan. */
import { statSync } from 'node:fs';
import type { ByteFile } from '../../checkpoint/byte-file.js';
import { listed } from '../../checkpoint/checkpoint-rules.js';
import { UserError } from '../../errors.js';
import { contentTagOf, fileStatus } from '../../files/mounted.js';
import { withAdapter } from '../../model-input/adapter-model.js';
import { openModelCheckpoint } from '../../model-input/gguf/gguf-checkpoint.js';
import { sampleSha256 } from '../../parts/fingerprint.js';
import { changedInput } from '../../parts/plan-file.js';
import { type PreparedConversion, prepare } from '../conversion.js';
import { outputFilesOf } from '../execute/accompanying-files.js';
import type { OutputFile } from '../execute/output-files.js';
import type { ConversionDisplay, ConversionRequest } from '../job.js';
import { planConversion } from '../plan/plan-conversion.js';
import { indexSha256, outputSha256 } from './fingerprints.js';
import { modelsOfConversion, type PartsPlan } from './parts-plan.js';

/** Needs of a part besides its plan. */
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
  { display, mount }: PartsSurroundings,
): Promise<OpenedParts> {
  refuseChangedSizes(plan);
  const models = modelsOfConversion(plan);
  if (models.length > 0) await mount(models);
  const { path: input } = plan.input;
  const { 'state-dict': stateDict, 'merge-lora': adapter, ...flags } = plan.request;
  let checkpoint = openModelCheckpoint(input, { stateDict });
  try {
    if (adapter !== undefined) checkpoint = await withAdapter(checkpoint, adapter, flags);
    refuseOtherHubFiles(plan);
    if (indexSha256(checkpoint, adapter) !== plan.input.indexSha256) {
      throw changedInput(`${input} has other tensors than when it was planned`);
    }
    const prepared = await prepare(requestFrom(plan, checkpoint, display));
    const close = async () => {
      await prepared.resources.backend.close();
      checkpoint.close();
    };
    const { rank, blockRows, products } = plan.compute;
    const { input: opened, resources } = prepared;
    const conversion = rank === null ? prepared.plan : await planConversion(opened, rank);
    const files = outputFilesOf(opened, conversion);
    if (outputSha256(opened, conversion, files) !== plan.output.planSha256) {
      await close();
      throw changedInput(`the config or the tokenizer files of ${input} are not those of the plan`);
    }
    refuseOtherProducts(products, resources.backend.name);
    return {
      input: opened,
      plan: conversion,
      resources: { ...resources, blockRows },
      files,
      refuseOther: (read) => refuseOtherSamples(plan, checkpoint.files, read),
      close,
    };
  } catch (error) {
    checkpoint.close();
    throw error;
  }
}

function requestFrom(
  { request, output }: PartsPlan,
  checkpoint: ConversionRequest['checkpoint'],
  display: ConversionDisplay,
): ConversionRequest {
  return {
    ...request,
    checkpoint,
    display,
    out: output.kind === 'folder' ? `${output.path}/` : output.path,
    ...{ 'dry-run': false, resume: false, check: false, prove: false },
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
    throw changedInput(`${path} is not the input of the plan: ${listed(wrong)}`);
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

/** Engines round products in their own way, so one conversion uses one. Threads do not matter. */
function refuseOtherProducts(planned: string, here: string): void {
  const [expected, found] = [planned, here].map((name) => name.split(',')[0]);
  if (expected === found) return;
  throw new UserError(
    'usage',
    `the plan computes matrix products with ${expected}, and this machine has ${found}`,
    { suggestion: 'install the same engine on every machine, or plan again with --engine tfjs' },
  );
}
