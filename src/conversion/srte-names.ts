/** SRTE tables among the names of a state dict. */
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { canonicalNames } from '../checkpoint/names.js';
import type { StoredTensor } from '../checkpoint/stored-tensor.js';

/** What a table is stored as: the whole of it, or one factor of a low-rank pair. */
export const SRTE_PARTS = ['freqs', 'lowrank', 'proj.weight'] as const;

export type SrtePart = (typeof SRTE_PARTS)[number];

export interface NamedTensor {
  /** As the file has it. */
  readonly name: string;
  readonly tensor: StoredTensor;
}

export type SrteParts = ReadonlyMap<SrtePart, NamedTensor>;

/** The SRTE of one model. */
export interface SrteNames {
  /** What stands before `layers.` and `shared_srte.`: nothing, or something that ends in a dot. */
  readonly prefix: string;
  /** What stands under `shared_srte.`. */
  readonly shared: SrteParts;
  /** What stands under `layers.{i}.srte.`, by the text that should be a number. */
  readonly layers: ReadonlyMap<string, SrteParts>;
}

/** Prefix; the layer, or undefined for what is shared; the part. */
const SRTE_NAME = /^(|.*\.)(?:layers\.([^.]*)\.srte|shared_srte)\.(freqs|lowrank|proj\.weight)$/s;

/**
 * The SRTE of each model in a state dict, wrappers' prefixes being taken off. Names that stand only in
 * metadata count as names of the tensors that they lead to.
 * @throws UserError when two names become one without those prefixes.
 */
export function srteNames({
  path,
  tensors,
  aliases,
}: Pick<Checkpoint, 'path' | 'tensors' | 'aliases'>): SrteNames[] {
  const named = new Map(tensors);
  for (const [alias, target] of aliases) {
    const tensor = tensors.get(target);
    if (tensor) named.set(alias, tensor);
  }
  const models = new Map<string, { shared: Parts; layers: Map<string, Parts> }>();
  for (const [name, canonical] of canonicalNames(named.keys(), path)) {
    const place = srtePlaceOf(canonical);
    const tensor = named.get(name);
    if (place === undefined || tensor === undefined) continue;
    const { prefix, layer, part } = place;
    const model = models.get(prefix) ?? { shared: new Map(), layers: new Map() };
    models.set(prefix, model);
    const parts = layer === null ? model.shared : (model.layers.get(layer) ?? new Map());
    if (layer !== null) model.layers.set(layer, parts);
    parts.set(part, { name, tensor });
  }
  return Array.from(models, ([prefix, model]) => ({ prefix, ...model }));
}

/** What a name says when it is that of an SRTE tensor. */
export interface SrtePlace {
  /** Before `layers.` and `shared_srte.`. */
  readonly prefix: string;
  /** The layer; null for what is shared. */
  readonly layer: string | null;
  readonly part: SrtePart;
}

export function srtePlaceOf(name: string): SrtePlace | undefined {
  const [, prefix, layer, part] = SRTE_NAME.exec(name) ?? [];
  return prefix === undefined
    ? undefined
    : { prefix, layer: layer ?? null, part: part as SrtePart };
}

type Parts = Map<SrtePart, NamedTensor>;
