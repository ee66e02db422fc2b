/** A checkpoint as the answer to what a model is: its config, and whether its tensors agree. */
import type { Checkpoint, CheckpointFormat } from '../checkpoint/checkpoint.js';
import { openCheckpoint } from '../checkpoint/open.js';
import { summarise, type Totals } from '../checkpoint/summary.js';
import type { Problem } from '../errors.js';
import type { FaultGroup } from '../reconcile/group.js';
import { type Reconciliation, reconcileIndex } from '../reconcile/reconcile.js';
import type { Suggestion } from '../reconcile/suggest.js';
import {
  asStored,
  type ConfigOrigin,
  configOf,
  descriptionOf,
  warningsOf,
} from './checkpoint-config.js';
import { faultProblems } from './checkpoint-faults.js';
import { type LoadOptions, type ModelFile, modelOf } from './model-file.js';

/** What the index of a checkpoint says of the model that is loaded with it. */
export interface CheckpointFound {
  readonly file: string;
  readonly format: CheckpointFormat;
  readonly stateDict: readonly string[];
  readonly config: { readonly file: string; readonly origin: ConfigOrigin };
  /** Whether names, shapes and types are as the config describes; no tensor was read. */
  readonly matches: boolean;
  readonly faults: readonly FaultGroup[];
  readonly suggestions: readonly Suggestion[];
  readonly totals: Totals;
}

interface CheckpointOptions extends LoadOptions {
  /** The config to take instead of the checkpoint's own. */
  readonly config?: string | undefined;
  readonly 'state-dict'?: string | undefined;
}

/**
 * The model of the config that belongs to a checkpoint. That the two do not agree is a warning.
 * @throws UserError when the checkpoint is refused, or has no valid config.
 */
export async function loadCheckpointModel(
  path: string,
  options: CheckpointOptions,
): Promise<ModelFile & { readonly checkpoint: CheckpointFound }> {
  const checkpoint = openCheckpoint(path, { stateDict: options['state-dict'] });
  try {
    const { document, origin } = await configOf(checkpoint, options.config);
    const loaded = asStored(await modelOf(document, options), checkpoint);
    const held = reconcileIndex(descriptionOf(loaded), checkpoint);
    const config = { file: document.file, origin };
    return {
      ...loaded,
      file: path,
      warnings: [
        ...loaded.warnings,
        ...warningsOf(checkpoint),
        ...mismatches(path, held, config.file),
      ],
      checkpoint: found(checkpoint, held, config),
    };
  } finally {
    checkpoint.close();
  }
}

function found(
  checkpoint: Checkpoint,
  { matches, faults, suggestions }: Reconciliation,
  config: CheckpointFound['config'],
): CheckpointFound {
  const { path: file, format, stateDict } = checkpoint;
  const { totals } = summarise(checkpoint, new Map(), new Map());
  return { file, format, stateDict, config, matches, faults, suggestions, totals };
}

/** More faults than this are only counted. */
const TOLD = 3;

function mismatches(file: string, { faults }: Reconciliation, config: string): Problem[] {
  if (faults.length === 0) return [];
  const more = faults.length > TOLD ? `, of which ${TOLD} are told here` : '';
  return [
    {
      severity: 'warning',
      file,
      message: `is not as ${config} describes: ${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}${more}`,
      suggestion: 'see them all with --json',
    },
    ...faultProblems(file, faults, 'warning', TOLD),
  ];
}
