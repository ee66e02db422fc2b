/** Fingerprints of a conversion's input and of its planned output, from contents and never from times. */
import { createHash, type Hash } from 'node:crypto';
import path from 'node:path';
import { ByteFile } from '../../checkpoint/byte-file.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import type { OutputFile } from '../execute/output-files.js';
import type { ConversionInput, ConversionPlan } from '../plan/conversion-plan.js';

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
  hash.update(plainJson([names, srte, tie, quantization, formulas, keepsConfig, gguf]));
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
