/** Plans a conversion in parts. */
import path from 'node:path';
import { contentTagOf, mountedPath } from '../../base/files/mounted.js';
import {
  checkReplaceable,
  refuseFullDisk,
  resolveOutputTarget,
} from '../../base/files/write-whole.js';
import { prepare } from '../../convert/conversion/conversion.js';
import { expectedFiles, findRank, refuseLost } from '../../convert/conversion/execute/execute.js';
import type { ConversionRequest } from '../../convert/conversion/job.js';
import { isRankOpen, planConversion } from '../../convert/conversion/plan/plan-conversion.js';
import { plannedMemory } from '../../convert/conversion/resources.js';
import type { SrtePlan } from '../../convert/conversion/srte/srte-plan.js';
import { sampleSha256 } from '../fingerprint.js';
import { divide } from './divide.js';
import { indexSha256, outputSha256 } from './open-parts.js';
import {
  hashedPartsPlan,
  type PartsPlan,
  type PartsRequest,
  plannedRequest,
} from './parts-plan.js';

interface PartsOptions {
  /** Number of parts. */
  readonly parts: number;
  readonly stateDict: string | undefined;
  /** Version of minimind. */
  readonly version: string;
  /** Rows of a table processed at a time; by default those of a single run. */
  readonly blockRows?: number | undefined;
}

/**
 * Plans a conversion in parts. The same input, request and number give the same plan. With `--max-error` it reads the
 * tables once, because the rank decides the shapes.
 * @throws UserError for every fault of the input, the request or the destination.
 */
export async function planInParts(
  request: ConversionRequest,
  { parts, stateDict, version, blockRows }: PartsOptions,
): Promise<PartsPlan> {
  const prepared = await prepare(request);
  const { input } = prepared;
  const { size: tensors } = request.checkpoint.tensors;
  const memoryOf = (srte: SrtePlan | null) =>
    plannedMemory(srte, request, prepared.resources.backend, tensors);
  try {
    const withTables = memoryOf(prepared.plan.srte);
    const resources = {
      ...prepared.resources,
      ...withTables,
      blockRows: blockRows ?? withTables.blockRows,
    };
    const rank = isRankOpen(input)
      ? ((await findRank(input, prepared.plan, resources)) ?? null)
      : null;
    const plan = rank === null ? prepared.plan : await planConversion(input, rank);
    const { job, place } = input;
    // The job of a GGUF file has the tensors under other names.
    const { checkpoint } = request;
    const files = await expectedFiles(input, plan);
    const target = resolveOutputTarget(place.path, place.kind);
    checkReplaceable(target, job.force);
    refuseLost(input);
    refuseFullDisk(place.path, files);
    const withoutTables = memoryOf(null);
    const divided = divide(parts, { input, plan, resources }, files);
    return hashedPartsPlan({
      version,
      input: {
        path: lastingPath(checkpoint.path),
        files: checkpoint.files.map((file) => ({
          path: lastingPath(file.path),
          bytes: file.size,
          ...(mountedPath(file.path)
            ? { contentTag: contentTagOf(file.path) }
            : { sampleSha256: sampleSha256(file) }),
        })),
        tensors,
        indexSha256: indexSha256(checkpoint, request.mergeLora),
      },
      output: {
        path: target.file,
        kind: place.kind,
        container: place.container,
        files: files.map(({ name, bytes }) => ({ name, bytes })),
        planSha256: outputSha256(input, plan, files),
        importanceSha256: plan.gguf?.importanceSha256,
      },
      request: requestOf(request, stateDict),
      compute: {
        blockRows: resources.blockRows,
        products: resources.backend.name,
        limitBytes: resources.limitBytes,
        rank,
      },
      parts: divided.map(({ hasTables, ...part }) => ({
        ...part,
        memoryBytes: Math.round((hasTables ? withTables : withoutTables).peakBytes),
      })),
    });
  } finally {
    await prepared.resources.backend.close();
  }
}

/** A path that other machines read: absolute, or of a commit of the hub. */
const lastingPath = (file: string): string => (mountedPath(file) ? file : path.resolve(file));

function requestOf(request: ConversionRequest, stateDict: string | undefined): PartsRequest {
  const { shardSize: shard, maxMemory: memory, mergeLora: adapter } = request;
  const file = (name: string | undefined) => (name === undefined ? undefined : lastingPath(name));
  const number = (value: number | bigint | undefined) =>
    value === undefined ? undefined : Number(value);
  return plannedRequest({
    ...request,
    stateDict,
    // A missing flag is undefined, despite its type.
    dequantize: Boolean(request.dequantize),
    saturate: Boolean(request.saturate),
    noConfig: Boolean(request.noConfig),
    mergeLora: file(adapter),
    imatrix: file(request.imatrix),
    target: file(request.target),
    config: file(request.config),
    shardSize: number(shard),
    maxMemory: number(memory),
  });
}
