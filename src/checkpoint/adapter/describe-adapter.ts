import path from 'node:path';
import { mountedPath } from '../../files/mounted.js';
import { bytesOfViews, viewsOf } from '../sharing.js';
import type { AdapterFiles } from './adapter.js';

/** A LoRA adapter: its settings and sizes. */
export interface AdapterDescription {
  readonly file: string;
  readonly rank: number;
  readonly alpha: number;
  /** Whether alpha / √rank scales the products, not alpha / rank. */
  readonly rankStabilised: boolean;
  /** Names of modules, or a pattern; null when the settings leave them to PEFT. */
  readonly targets: readonly string[] | string | null;
  /** Modules whose weights it replaces. */
  readonly replaced: readonly string[];
  /** Parameters that it adds, or replaces others with. */
  readonly parameters: number;
  readonly bytes: number;
  /** Model that it was trained on, as its settings name it. */
  readonly base: string | null;
  /** Settings that change the weights, and that a merge does not support. */
  readonly unread: readonly string[];
}

export function describeAdapter({ config, checkpoint }: AdapterFiles): AdapterDescription {
  const views = viewsOf(checkpoint.tensors);
  const { rank, alpha, isRankStabilised, targets, replaced, base, unread } = config;
  return {
    file: checkpoint.path,
    rank,
    alpha,
    rankStabilised: isRankStabilised,
    targets,
    replaced,
    parameters: views.reduce((sum, { tensor }) => sum + tensor.elements, 0),
    bytes: bytesOfViews(views),
    base,
    unread,
  };
}

/** Paths where the model of an adapter can be: as its settings name it, from here or from its own folder on the disk. */
export function basePathsOf({ config, checkpoint }: AdapterFiles): readonly string[] {
  if (config.base === null) return [];
  return mountedPath(checkpoint.path)
    ? [config.base]
    : [config.base, path.join(checkpoint.path, config.base)];
}
