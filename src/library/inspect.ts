/** `inspect` as a function: the tensors of a checkpoint. */
import { isAdapterFolder } from '../base/files/config-names.js';
import { STORED_DTYPES } from '../base/tensor/dtype.js';
import { sumOf } from '../base/values.js';
import {
  type AdapterFiles,
  describeAdapter,
  openAdapterFiles,
} from '../checkpoint/adapter/adapter.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { openCheckpoint } from '../checkpoint/open.js';
import { withUnpackedWeights } from '../checkpoint/packed-weights.js';
import { viewsOf } from '../checkpoint/sharing.js';
import { type Measurement, measureTensors } from '../checkpoint/statistics.js';
import type { StoredTensor } from '../checkpoint/stored-tensor.js';
import {
  type CheckpointSummary,
  describedTensors,
  groupTensors,
  summarise,
} from '../checkpoint/summary.js';
import type { SrteSurvey } from '../convert/conversion/srte/survey-srte.js';
import {
  checkpointWarnings,
  type StoredModel,
  storedModel,
} from '../input/model-input/checkpoint/checkpoint-config.js';
import { modelViewOf } from '../input/model-input/gguf/gguf-checkpoint.js';
import { onnxViewOf } from '../input/model-input/onnx/onnx-tensors.js';
import { FAMILY_NAMES, type FamilyName } from '../model/architecture/families.js';
import type { InspectResult, OnnxInspection } from '../report/command-results.js';
import { type AnswerNotes, withNotes } from './answer.js';
import { checkOptions, type OptionKinds, requireReference } from './arguments.js';
import { HUB_KINDS, type HubOptions, mounted } from './models/load-model.js';

export interface InspectOptions extends HubOptions {
  /** Whether minimum, maximum, mean, deviation, norm, zeros, NaN and infinities are measured. */
  readonly stats?: boolean | undefined;
  /** Whether the sha256 of the values is computed. */
  readonly hash?: boolean | undefined;
  /** Whether the SRTE tables of the layers are compared. */
  readonly srte?: boolean | undefined;
  /** Ranks of that comparison. Default: powers of two. */
  readonly ranks?: readonly number[] | undefined;
  /** Family to read the config as. */
  readonly family?: FamilyName | undefined;
}

const INSPECT_KINDS: OptionKinds<InspectOptions> = {
  ...HUB_KINDS,
  stats: 'flag',
  hash: 'flag',
  srte: 'flag',
  ranks: 'list',
  family: FAMILY_NAMES,
};

/**
 * Lists the tensors of a checkpoint. Only its index is read, unless an option needs the values.
 * @param reference A file, an index of shards, a folder, or `hf:ORG/NAME`.
 * @throws UserError for a broken file, or one of another kind.
 */
export async function inspect(
  reference: string,
  options: InspectOptions = {},
): Promise<InspectResult & AnswerNotes> {
  requireReference(reference, 'inspect');
  checkOptions('inspect', options, INSPECT_KINDS);
  const { stats = false, hash = false, srte = false, ranks, family, stateDict } = options;
  const { path, references } = await mounted(reference, 'index', options);
  const adapter = isAdapterFolder(path) ? openAdapterFiles(path) : undefined;
  const checkpoint = adapter?.checkpoint ?? openCheckpoint(path, { stateDict, keepPacked: true });
  try {
    const { tensors } = checkpoint;
    const views = stats || hash ? viewsOf(tensors) : [];
    const survey = srte ? await import('../convert/conversion/srte/survey-srte.js') : undefined;
    const result = await inspectCheckpoint(checkpoint, {
      ...{ chosen: tensors, adapter, family },
      measurements: await measureTensors(views, { stats, hash, onBytes: () => {} }),
      srte: await survey?.surveySrte(checkpoint, { ...(ranks && { ranks }), onBytes: () => {} }),
    });
    return withNotes(result, { warnings: checkpointWarnings(checkpoint), references });
  } finally {
    checkpoint.close();
  }
}

interface Inspection {
  /** Tensors to list. */
  readonly chosen: ReadonlyMap<string, StoredTensor>;
  readonly measurements: ReadonlyMap<string, Measurement>;
  readonly adapter: AdapterFiles | undefined;
  readonly family: string | undefined;
  /** The glob that the names of the listed tensors match. */
  readonly filter?: string | undefined;
  readonly srte: SrteSurvey | undefined;
}

/** The answer about an open checkpoint. */
export async function inspectCheckpoint(
  checkpoint: Checkpoint,
  { chosen, measurements, adapter, family, filter, srte }: Inspection,
): Promise<InspectResult> {
  const view = modelViewOf(checkpoint);
  const unpacked = withUnpackedWeights(view);
  const model = await storedModel(unpacked, family);
  const like = model?.config == null && !adapter ? await presetOf(unpacked) : undefined;
  let tensors: CheckpointSummary['tensors'] | undefined;
  return {
    schema: 'minimind/inspect@1',
    ...(filter !== undefined && { filter }),
    ...(srte && { srte }),
    ...summarise(checkpoint),
    // Computed on demand: the list is long, and most answers do not show it.
    get tensors() {
      tensors ??= describedTensors(chosen, measurements);
      return tensors;
    },
    ...(adapter && { adapter: describeAdapter(adapter) }),
    ...modelFields(unpacked, model),
    ...(like !== undefined && { like }),
    ...onnxFields(view),
  };
}

/** The model of a checkpoint without a config. Reads the published models, which no other answer needs. */
async function presetOf(checkpoint: Checkpoint): Promise<string | undefined> {
  const { presetInstead } = await import('../input/model-input/checkpoint/matching-preset.js');
  return presetInstead(checkpoint);
}

/** The graph of an ONNX file, and the tensors of its model. */
function onnxFields(view: Checkpoint): { readonly onnx?: OnnxInspection } {
  const stored = onnxViewOf(view);
  if (!view.onnx || !stored) return {};
  const { description } = view.onnx;
  return { onnx: { ...description, ...stored, components: groupTensors(view.tensors) } };
}

/** The model without the roles of its tensors, and its parameters if they are known. */
function modelFields({ tensors }: Checkpoint, model: StoredModel | null) {
  if (model === null) return { model };
  const { parameters, isWhole, others, ...known } = model;
  if (model.family === null) return { model: known };
  const views = viewsOf(tensors).filter(({ names }) => !names.some((name) => others.has(name)));
  const floats = views.filter(
    ({ tensor, names }) =>
      !DISCRETE.has(STORED_DTYPES[tensor.dtype].kind) || names.some((name) => parameters.has(name)),
  );
  // Without a parameter, integers can be words of an unknown packing.
  const isCountable = isWhole || floats.length === views.length;
  return {
    model: known,
    ...(isCountable && { parameters: sumOf(floats, ({ tensor }) => tensor.elements) }),
  };
}

/** Kinds of values that only quantized parameters have. */
const DISCRETE: ReadonlySet<string> = new Set(['integer', 'bool']);
