/** The model in a checkpoint, according to its config and the names of its tensors. */
import { type SrteLayout, srteLayoutOf } from '../architecture/srte-layout.js';
import { tensorsOf } from '../architecture/walk.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { storedNames } from '../checkpoint/names.js';
import { UserError } from '../errors.js';
import { namesOf } from '../reconcile/faults.js';
import { findConfig } from './checkpoint-config.js';
import { modelOf } from './model-file.js';

export interface StoredModel {
  /** Null without a usable config. */
  readonly family: string | null;
  readonly config: string | null;
  readonly srte: Pick<SrteLayout, 'sharing' | 'form'> | null;
  /** Names of the tensors that are buffers by the config. */
  readonly buffers: readonly string[];
}

const SRTE_TABLE = /(?:^|\.)(?:(shared_srte)|layers\.\d{1,5}\.srte)\.(freqs|lowrank)$/;

/**
 * Null when neither a config nor a name says anything. A config that cannot be read is ignored.
 * @param as Family to read the config as, whatever its kind.
 * @throws UserError when it cannot be read as that family.
 */
export async function storedModel(
  checkpoint: Checkpoint,
  as?: string,
): Promise<StoredModel | null> {
  const described = await describedModel(checkpoint, as);
  const srte = described?.srte ?? srteByNames(checkpoint.tensors.keys());
  if (described === null && srte === null) return null;
  return { family: null, config: null, buffers: [], ...described, srte };
}

async function describedModel(
  checkpoint: Checkpoint,
  as: string | undefined,
): Promise<StoredModel | null> {
  try {
    const found = await findConfig(checkpoint, undefined);
    if (found === undefined) return null;
    const { family, file, model } = await modelOf(found.document, { family: as });
    const layout = srteLayoutOf(model);
    const stored = storedNames(checkpoint);
    const buffers = tensorsOf(model).filter(({ role }) => role === 'buffer');
    return {
      family: family.name,
      config: file,
      srte: layout ? { sharing: layout.sharing, form: layout.form } : null,
      buffers: buffers.flatMap(namesOf).flatMap((name) => stored.get(name)?.own ?? []),
    };
  } catch (error) {
    if (error instanceof UserError && as === undefined) return null;
    throw error;
  }
}

function srteByNames(names: Iterable<string>): StoredModel['srte'] {
  for (const name of names) {
    const [, shared, part] = SRTE_TABLE.exec(name) ?? [];
    if (part === undefined) continue;
    const form = part === 'freqs' ? 'table' : 'low-rank';
    return { sharing: shared === undefined ? 'per-layer' : 'shared', form };
  }
  return null;
}
