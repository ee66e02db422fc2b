/** A saved projector applied to the keys and values of a file. */
import fs from 'node:fs';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { FORMATS } from '../checkpoint/formats.js';
import { openCheckpoint } from '../checkpoint/open.js';
import { writeSafetensors } from '../checkpoint/safetensors/write-safetensors.js';
import { quote } from '../config/quote.js';
import type { CheckpointPlace } from '../conversion/job.js';
import { outputPlace, refuseOverlap } from '../conversion/job.js';
import { matmulBackendFor } from '../conversion/resources.js';
import type { Problem } from '../errors.js';
import { UserError } from '../errors.js';
import { refuseFullDisk } from '../files/disk-space.js';
import { isFolder, refuseUnwritable, writeWhole } from '../files/write-whole.js';
import type { Dtype, StoredDtype } from '../tensor/dtype.js';
import { elementCount, storedBytes } from '../tensor/dtype.js';
import type { EncodableDtype } from '../tensor/encode.js';
import { isEncodable } from '../tensor/encode.js';
import { sumOf } from '../text/values.js';
import { planProjection } from './inputs.js';
import type { NonFinite } from './project.js';
import { multiplicationsOf, projectedChunks } from './project.js';
import type { ProjectorSurroundings } from './saved.js';
import { describedProjector, projectorWarnings, savedProjector } from './saved.js';

/** The element types that results can be written in. */
export const OUTPUT_DTYPES = {
  f32: 'F32',
  f16: 'F16',
  bf16: 'BF16',
  f64: 'F64',
} as const satisfies {
  readonly [Name in Dtype]?: EncodableDtype;
};
export type OutputDtype = keyof typeof OUTPUT_DTYPES;

export interface ProjectRequest extends ProjectorSurroundings {
  readonly output: string;
  /** As the input's when undefined. */
  readonly dtype: OutputDtype | undefined;
  readonly threads: number | undefined;
}

export type Projection = Awaited<ReturnType<typeof projectKv>>;

/**
 * Writes what a projector makes of keys and values.
 * @throws UserError with all that does not fit, before anything is written.
 */
export async function projectKv(file: string, kvFile: string, request: ProjectRequest) {
  const checkpoint = openCheckpoint(file);
  try {
    const kv = openCheckpoint(kvFile);
    try {
      return await project(checkpoint, kv, request);
    } finally {
      kv.close();
    }
  } finally {
    checkpoint.close();
  }
}

async function project(checkpoint: Checkpoint, kv: Checkpoint, request: ProjectRequest) {
  const projector = savedProjector(checkpoint);
  await request.warn(projectorWarnings(checkpoint.path, projector.warnings));
  if (kv.format !== 'safetensors') {
    throw new UserError(
      'usage',
      `${kv.path} is ${FORMATS[kv.format].title}, and keys and values come in safetensors`,
      {
        suggestion: 'save them with safetensors.torch.save_file',
      },
    );
  }
  const place = resultsPlace(request.output);
  refuseOverlap(checkpoint, place, { read: [], report: undefined });
  refuseOverlap(kv, place, { read: [], report: undefined });
  await refuseUnwritable(request.output, request.force);
  const { tensors, unused, ignored } = planProjection(projector, kv);
  await request.warn(
    projectorWarnings(
      kv.path,
      unused.map((module) => `has nothing of the teacher ${quote(module)} of the projector`),
    ),
  );
  const planned = tensors.map((each) => ({
    ...each,
    dtype: writtenDtype(each.tensor.dtype, request),
  }));
  const bytes = sumOf(
    planned,
    ({ shape, dtype }) => storedBytes(elementCount(shape) ?? 0, dtype) ?? 0,
  );
  refuseFullDisk(request.output, [{ bytes }]);
  const backend = await matmulBackendFor(multiplicationsOf(tensors), {
    engine: 'auto',
    ...request,
  });
  const total = sumOf(tensors, ({ tensor }) => tensor.bytes);
  const shown = request.display.bytes('projecting', total);
  const results = planned.map((each) => ({
    ...each,
    nonFinite: { given: 0, made: 0 } satisfies NonFinite,
  }));
  try {
    await writeWhole(request.output, request.force, (sink) =>
      writeSafetensors(
        sink,
        results.map((each) => ({
          name: each.output,
          dtype: each.dtype,
          shape: each.shape,
          chunks: () =>
            projectedChunks(each, { ...each, products: backend.products, done: shown.add }),
        })),
      ),
    );
  } finally {
    shown.end();
    await backend.close();
  }
  await request.warn(results.flatMap((each) => nonFiniteWarning(kv.path, each)));
  return {
    schema: 'minimind/kv-projector-project@1',
    projector: describedProjector(projector),
    input: kv.path,
    output: request.output,
    products: backend.name,
    bytes,
    tensors: results.map(({ teacher, branch, input, output, tensor, shape, dtype, nonFinite }) => ({
      teacher,
      branch,
      input: { name: input, dtype: tensor.dtype, shape: tensor.shape, nonFinite: nonFinite.given },
      output: { name: output, dtype, shape, nonFinite: nonFinite.made },
    })),
    unused,
    ignored,
  } as const;
}

/** Results are one file, whose name must not be that of another container. */
function resultsPlace(name: string): CheckpointPlace {
  const isThere = fs.statSync(name, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (isThere || /[\\/]$/.test(name)) throw isFolder(name);
  const { container } = outputPlace(name, undefined);
  if (container === 'safetensors') return { path: name, container, kind: 'file' };
  throw new UserError(
    'usage',
    `${name} is named like a ${container} file, and results are safetensors`,
    {
      suggestion: 'let the name end in .safetensors',
    },
  );
}

/** Types that nothing can be written in become F32. */
function writtenDtype(
  given: StoredDtype,
  { dtype }: Pick<ProjectRequest, 'dtype'>,
): EncodableDtype {
  if (dtype !== undefined) return OUTPUT_DTYPES[dtype];
  return isEncodable(given) ? given : 'F32';
}

function nonFiniteWarning(
  file: string,
  { input, output, nonFinite }: { input: string; output: string; nonFinite: NonFinite },
): Problem[] {
  const { given, made } = nonFinite;
  if (made === 0) return [];
  const why =
    given > 0
      ? `${quote(input)} holds ${given} NaN or infinities, each of which spoils its row`
      : `${quote(input)} leads to values beyond the type`;
  return projectorWarnings(file, [`${why}: ${made} values of ${quote(output)} are not finite`]);
}
