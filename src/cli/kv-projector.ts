/** Saved projectors of keys and values, applied and written in another container. */
import fs from 'node:fs';
import { type Checkpoint, FORMATS } from '../checkpoint/checkpoint.js';
import { openCheckpoint } from '../checkpoint/open.js';
import { writeSafetensors } from '../checkpoint/safetensors/write.js';
import { quote } from '../config/quote.js';
import {
  type CheckpointPlace,
  type Container,
  outputPlace,
  refuseOverlap,
} from '../conversion/job.js';
import { matmulBackendFor, refuseFullDisk } from '../conversion/resources.js';
import { type Problem, UserError } from '../errors.js';
import { isFolder, refuseUnwritable, writeWhole } from '../files/write-whole.js';
import { planConversion, tensorsOf } from '../kv-projector/convert.js';
import { planProjection } from '../kv-projector/inputs.js';
import { multiplicationsOf, type NonFinite, projectedChunks } from '../kv-projector/project.js';
import { type SavedProjector, savedProjector } from '../kv-projector/saved.js';
import type { Dtype, StoredDtype } from '../tensor/dtype.js';
import { elementCount, storedBytes } from '../tensor/dtype.js';
import { type EncodableDtype, isEncodable } from '../tensor/encode.js';
import { isStdout } from './output.js';
import { progress } from './progress.js';

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

interface Common {
  readonly force: boolean;
  readonly quiet: boolean;
  readonly warn: (warnings: readonly Problem[]) => Promise<void>;
}

/** What a saved projector is, for reports. */
const described = ({ path, kind, studentWidth, adapters, parameters }: SavedProjector) => ({
  path,
  kind,
  studentWidth,
  teachers: [...new Set(adapters.map(({ module }) => module))],
  tensors: adapters.reduce((sum, { parts }) => sum + parts.size, 0),
  parameters,
});

const warnings = (file: string, messages: readonly string[]): Problem[] =>
  messages.map((message) => ({ severity: 'warning', file, message }));

// ── Projecting ───────────────────────────────────────────────────────────────────────────────────

export interface ProjectFlags extends Common {
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
export async function projectKv(file: string, kvFile: string, flags: ProjectFlags) {
  const checkpoint = openCheckpoint(file);
  try {
    const kv = openCheckpoint(kvFile);
    try {
      return await project(checkpoint, kv, flags);
    } finally {
      kv.close();
    }
  } finally {
    checkpoint.close();
  }
}

async function project(checkpoint: Checkpoint, kv: Checkpoint, flags: ProjectFlags) {
  const projector = savedProjector(checkpoint);
  await flags.warn(warnings(checkpoint.path, projector.warnings));
  if (kv.format !== 'safetensors') {
    throw new UserError(
      'usage',
      `${kv.path} is ${FORMATS[kv.format]}, and keys and values come in safetensors`,
      {
        suggestion: 'save them with safetensors.torch.save_file',
      },
    );
  }
  const place = resultsPlace(flags.output);
  refuseOverlap(checkpoint, place, { read: [], report: undefined });
  refuseOverlap(kv, place, { read: [], report: undefined });
  await refuseUnwritable(flags.output, flags.force);
  const { tensors, unused, ignored } = planProjection(projector, kv);
  await flags.warn(
    warnings(
      kv.path,
      unused.map((module) => `has nothing of the teacher ${quote(module)} of the projector`),
    ),
  );
  const planned = tensors.map((each) => ({
    ...each,
    dtype: writtenDtype(each.tensor.dtype, flags),
  }));
  const bytes = planned.reduce(
    (sum, { shape, dtype }) => sum + (storedBytes(elementCount(shape) ?? 0, dtype) ?? 0),
    0,
  );
  refuseFullDisk(flags.output, [{ bytes }]);
  const backend = await matmulBackendFor(multiplicationsOf(tensors), {
    engine: 'auto',
    ...flags,
  });
  const total = tensors.reduce((sum, { tensor }) => sum + tensor.bytes, 0);
  const shown = progress(flags, 'projecting', total);
  const results = planned.map((each) => ({
    ...each,
    nonFinite: { given: 0, made: 0 } satisfies NonFinite,
  }));
  try {
    await writeWhole(flags.output, flags.force, (sink) =>
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
  await flags.warn(results.flatMap((each) => nonFiniteWarning(kv.path, each)));
  return {
    schema: 'minimind/kv-projector-project@1',
    projector: described(projector),
    input: kv.path,
    output: flags.output,
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

/** Results are one file, whatever it is called, but not by the name of another container. */
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
function writtenDtype(given: StoredDtype, { dtype }: Pick<ProjectFlags, 'dtype'>): EncodableDtype {
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
  return warnings(file, [`${why}: ${made} values of ${quote(output)} are not finite`]);
}

// ── Converting ───────────────────────────────────────────────────────────────────────────────────

export interface ConvertProjectorFlags extends Common {
  readonly container: Container | undefined;
  /** The file for the report. */
  readonly output: string | undefined;
}

export type ProjectorConversion = Awaited<ReturnType<typeof convertProjector>>;

/**
 * Writes a projector in the container that the output is named after.
 * @throws UserError when the input is no projector, the container cannot hold it, or two of input, output and report are
 * in one place; before anything is written.
 */
export async function convertProjector(file: string, out: string, flags: ConvertProjectorFlags) {
  const place = outputPlace(out, flags.container);
  if (place.kind === 'folder') {
    throw new UserError('usage', `${out} is named like no file of weights`, {
      suggestion: 'let the name end in .safetensors or .pt',
    });
  }
  const checkpoint = openCheckpoint(file);
  try {
    const projector = savedProjector(checkpoint);
    await flags.warn(warnings(file, projector.warnings));
    const report = isStdout(flags.output) ? undefined : flags.output;
    refuseOverlap(checkpoint, place, { read: [], report });
    await refuseUnwritable(out, flags.force);
    const total = tensorsOf(projector).reduce((sum, [, { bytes }]) => sum + bytes, 0);
    const shown = progress(flags, 'writing', total);
    try {
      const planned = planConversion(projector, place.container, shown.add);
      refuseFullDisk(out, [planned]);
      await writeWhole(out, flags.force, planned.write);
      return {
        schema: 'minimind/kv-projector-convert@1',
        projector: described(projector),
        format: checkpoint.format,
        output: out,
        container: place.container,
        bytes: planned.bytes,
        arguments: [...projector.arguments.values.keys()],
      } as const;
    } finally {
      shown.end();
    }
  } finally {
    checkpoint.close();
  }
}
