/** The SRTE tables of a checkpoint, found by their names and checked without reading values. */

import { STORED_DTYPES, shapeText } from '../../../base/tensor/dtype.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import { quotedNames } from '../../../checkpoint/checkpoint-rules.js';
import { canonicalNames, layerNumber } from '../../../checkpoint/names.js';
import type { ComparisonProgress, TensorEquality } from '../../../checkpoint/sharing.js';
import { equalByBytes, equalByLocation } from '../../../checkpoint/sharing.js';
import type { StoredTensor } from '../../../checkpoint/stored-tensor.js';
import { isSameView } from '../../../checkpoint/stored-tensor.js';
import { memoized } from '../../../model/architecture/walk.js';
import { SrteFaults } from '../conversion-rules.js';

/** A stored table [L, H]. */
export interface StoredSrteTable {
  /** Name in the file; for a pair, the name of the rows. */
  readonly name: string;
  /** [L, H]; [L, r] for a pair. */
  readonly rows: StoredTensor;
  /** [H, r] when the table is the product rows · projectionᵀ; null for a full table. */
  readonly projection: StoredTensor | null;
  /** Name in the file; null when there is none. */
  readonly projectionName: string | null;
}

export interface SrteTables {
  readonly sharing: 'per-layer' | 'shared';
  /** Layer i at index i; when shared, the only one. All have the same shape and rank. */
  readonly tables: readonly [StoredSrteTable, ...StoredSrteTable[]];
  /** L, the rows of a table. */
  readonly positions: number;
  /** H, its columns. */
  readonly hidden: number;
  /** Rank r of pairs; null for full tables. */
  readonly rank: number | null;
}

type Tensors = Pick<Checkpoint, 'path' | 'tensors' | 'aliases'>;

/**
 * The SRTE tables of a state dict: `layers.{i}.srte.freqs` [1, L, H], or the pairs `layers.{i}.srte.lowrank` [1, L, r]
 * and `layers.{i}.srte.proj.weight` [H, r], or the same under `shared_srte.`, with any prefix before all of these
 * names. A tensor that all layers name is a shared table, with or without a name of its own.
 *
 * @param sameness Decides which tensors are the same: by default those at one location. `srteTablesWithCopies` compares
 * values.
 * @throws UserError with all violations of `SRTE_RULES`.
 */
export function findSrteTables(
  checkpoint: Tensors,
  sameness: TensorEquality = equalByLocation,
): SrteTables {
  const faults = new SrteFaults(checkpoint.path);
  const { shared, layers } = onlyModel(checkpoint, faults);
  const hasShared = shared.size > 0;
  const stored = [...(hasShared ? [shared] : []), ...layersInOrder(layers, faults)];
  const tables = stored.flatMap((parts) => storedTable(parts, faults) ?? []);
  faults.throwAny();
  const [first, ...others] = tables;
  if (first === undefined) throw new Error('SRTE names without a table');
  for (const other of others) checkAlike(other, first, faults);
  const [firstParts = new Map(), ...otherParts] = stored;
  const own = others.filter(
    (_, index) => !areOne(firstParts, otherParts[index] ?? new Map(), sameness),
  );
  if (hasShared) checkShared(first, own, faults);
  faults.throwAny();
  const isShared = hasShared || (others.length > 0 && own.length === 0);
  return {
    ...tableSizes(first),
    sharing: isShared ? 'shared' : 'per-layer',
    tables: isShared ? [first] : [first, ...others],
  };
}

/**
 * The SRTE tables of a state dict, treating copies of a shared table as one: safetensors files may store it under each
 * of its names. Reads the tables only if names of a shared table have different locations.
 *
 * @param isShared Whether the description shares the table between the layers.
 * @throws UserError as `findSrteTables`, and when reading fails.
 */
export async function srteTablesWithCopies(
  checkpoint: Tensors,
  {
    isShared = false,
    watch,
  }: { readonly isShared?: boolean; readonly watch?: ComparisonProgress } = {},
): Promise<SrteTables> {
  const groups = srteNames(checkpoint).flatMap(({ shared, layers }) => {
    if (shared.size === 0 && !isShared) return [];
    const holders = [shared, ...layers.values()];
    return SRTE_PARTS.map((part) => holders.flatMap((parts) => parts.get(part)?.tensor ?? []));
  });
  return findSrteTables(checkpoint, await equalByBytes(groups, watch));
}

/** Whether a table is the same tensor at the same location. */
export const isSameAs =
  (table: StoredSrteTable) =>
  ({ rows, projection }: StoredSrteTable): boolean =>
    isSameView(rows, table.rows) &&
    (projection === null || table.projection === null
      ? projection === table.projection
      : isSameView(projection, table.projection));

/** Whether the tensors of two tables are identical, or have the same values. */
const areOne = (a: SrteParts, b: SrteParts, sameness: TensorEquality): boolean =>
  SRTE_PARTS.every((part) => {
    const [one, other] = [a.get(part)?.tensor, b.get(part)?.tensor];
    return one && other ? sameness(one, other) === true : one === other;
  });

function onlyModel(checkpoint: Tensors, faults: SrteFaults): SrteNames {
  const models = srteNames(checkpoint);
  const [model] = models;
  if (model === undefined) {
    const isComputed = [...checkpoint.tensors.keys()].some((name) =>
      name.endsWith('srte.inv_freq'),
    );
    throw faults.with({
      rule: 'srte-present',
      message:
        'has no SRTE table: no name ends in srte.freqs, nor in srte.lowrank and srte.proj.weight',
      suggestion: isComputed
        ? 'leave it as it is: its SRTE is computed (sincos), and needs no table'
        : 'check that it holds a hybrid model',
    });
  }
  if (models.length > 1) {
    throw faults.with({
      rule: 'srte-one-model',
      message: `has SRTE tables under ${models.length} prefixes: ${quotedNames(models.map(({ prefix }) => prefix))}`,
      suggestion: 'save the state dict of one model by itself',
    });
  }
  return model;
}

/** Tables of layer 0, of layer 1 and so on. */
function layersInOrder(layers: SrteNames['layers'], faults: SrteFaults): SrteParts[] {
  const byNumber = new Map<number, SrteParts>();
  for (const [text, parts] of layers) {
    const number = layerNumber(text);
    if (number !== undefined) byNumber.set(number, parts);
    else {
      faults.add({
        rule: 'srte-layer-number',
        ...tensorField(parts),
        message: `has ${quotedNames([text])} where the number of a layer is expected`,
        suggestion: 'give it the name that its layer has in the model',
      });
    }
  }
  faults.throwAny();
  const numbers = Array.from(byNumber.keys()).sort((a, b) => a - b);
  const gap = numbers.findIndex((number, index) => number !== index);
  if (gap >= 0) {
    throw faults.with({
      rule: 'srte-layers-complete',
      message: `has tables for ${numbers.length} layers, the last of them number ${numbers.at(-1)}, but none for layer ${gap}`,
      suggestion: 'check that the checkpoint is whole',
    });
  }
  return numbers.flatMap((number) => byNumber.get(number) ?? []);
}

/** The table stored in some tensors; undefined for a fault. */
function storedTable(parts: SrteParts, faults: SrteFaults): StoredSrteTable | undefined {
  const full = parts.get('freqs');
  const factors = [parts.get('lowrank'), parts.get('proj.weight')] as const;
  const [rows, projection] = factors;
  checkDtypes(parts, faults);
  if (full && parts.size === 1) return shaped(full, null, faults);
  if (rows && projection && parts.size === 2) return shaped(rows, projection, faults);
  faults.add({
    rule: 'srte-parts',
    ...tensorField(parts),
    message: `also has ${[...parts.keys()].join(', ')}; expected freqs alone, or lowrank and proj.weight`,
    suggestion: 'check that the checkpoint is whole',
  });
  return undefined;
}

function checkDtypes(parts: SrteParts, faults: SrteFaults): void {
  for (const { name, tensor } of parts.values()) {
    if (STORED_DTYPES[tensor.dtype].kind === 'float') continue;
    faults.add({
      rule: 'srte-dtype',
      tensor: name,
      message: `holds ${tensor.dtype}, expected floating-point numbers`,
      suggestion: 'check the program that saved it: learned tables are real numbers',
    });
  }
}

/** The table without the first axis of its rows, if the shape is correct. */
function shaped(
  { name, tensor }: SrteTensor,
  projection: SrteTensor | null,
  faults: SrteFaults,
): StoredSrteTable | undefined {
  const [one, , width] = tensor.shape;
  const other = projection?.tensor ?? null;
  const isRight =
    tensor.shape.length === 3 &&
    one === 1 &&
    tensor.elements > 0 &&
    (other === null ||
      (other.shape.length === 2 && other.shape[1] === width && other.elements > 0));
  if (isRight) {
    const rows = { ...tensor, shape: tensor.shape.slice(1), strides: tensor.strides.slice(1) };
    return { name, rows, projection: other, projectionName: projection?.name ?? null };
  }
  faults.add({
    rule: 'srte-shape',
    tensor: name,
    message: other
      ? `has shape ${shapeText(tensor.shape)} and proj.weight ${shapeText(other.shape)}, expected [1, L, r] and [H, r], none of them 0`
      : `has shape ${shapeText(tensor.shape)}, expected [1, L, H], none of them 0`,
    suggestion: 'check that it comes from a hybrid model',
  });
  return undefined;
}

function tableSizes({ rows, projection }: StoredSrteTable) {
  const [positions = 0, width = 0] = rows.shape;
  return projection === null
    ? { positions, hidden: width, rank: null }
    : { positions, hidden: projection.shape[0] ?? 0, rank: width };
}

function checkAlike(table: StoredSrteTable, first: StoredSrteTable, faults: SrteFaults): void {
  const [found, expected] = [sizesText(table), sizesText(first)];
  if (found === expected) return;
  faults.add({
    rule: 'srte-alike',
    tensor: table.name,
    message: `is a table of ${found}, expected ${expected} as in ${quotedNames([first.name])}`,
    suggestion: 'tables that differ in shape cannot be compared, nor shared',
  });
}

function sizesText(table: StoredSrteTable): string {
  const { positions, hidden, rank } = tableSizes(table);
  return `shape ${shapeText([positions, hidden])}${rank === null ? '' : ` and rank ${rank}`}`;
}

function checkShared(
  shared: StoredSrteTable,
  own: readonly StoredSrteTable[],
  faults: SrteFaults,
): void {
  if (own.length === 0) return;
  faults.add({
    rule: 'srte-one-sharing',
    tensor: shared.name,
    message: `is a shared table, and ${own.length} layers have one of their own: ${quotedNames(own.map(({ name }) => name))}`,
    suggestion: 'remove the ones that the model does not use',
  });
}

/** Name of one of the tensors, to locate a fault. */
function tensorField(parts: SrteParts): { readonly tensor?: string } {
  const [first] = parts.values();
  return first ? { tensor: first.name } : {};
}

/** Tensors of a stored table: the full table, or one factor of a low-rank pair. */
export const SRTE_PARTS = ['freqs', 'lowrank', 'proj.weight'] as const;

export type SrtePart = (typeof SRTE_PARTS)[number];

export interface SrteTensor {
  /** Name in the file. */
  readonly name: string;
  readonly tensor: StoredTensor;
}

export type SrteParts = ReadonlyMap<SrtePart, SrteTensor>;

/** The SRTE of one model. */
export interface SrteNames {
  /** Prefix of `layers.` and `shared_srte.`: empty, or ending in a dot. */
  readonly prefix: string;
  /** Tensors under `shared_srte.`. */
  readonly shared: SrteParts;
  /** Tensors under `layers.{i}.srte.`, by the text of the layer number. */
  readonly layers: ReadonlyMap<string, SrteParts>;
}

/** Groups: prefix; layer, undefined when shared; part. */
const SRTE_NAME = /^(|.*\.)(?:layers\.([^.]*)\.srte|shared_srte)\.(freqs|lowrank|proj\.weight)$/s;

/**
 * The SRTE of each model in a state dict, without wrappers' prefixes. Aliases in metadata count as names of their
 * tensors.
 * @throws UserError when two names are equal without those prefixes.
 */
const srteNames = memoized(({ path, tensors, aliases }: Tensors): readonly SrteNames[] => {
  const named = new Map(tensors);
  for (const [alias, target] of aliases) {
    const tensor = tensors.get(target);
    if (tensor) named.set(alias, tensor);
  }
  const models = new Map<string, { shared: StoredParts; layers: Map<string, StoredParts> }>();
  for (const [name, canonical] of canonicalNames(named.keys(), path)) {
    const place = parseSrteTensorName(canonical);
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
});

/** Model, layer and part of an SRTE tensor's name. */
export interface SrteTensorName {
  /** Prefix of `layers.` and `shared_srte.`. */
  readonly prefix: string;
  /** The layer; null when shared. */
  readonly layer: string | null;
  readonly part: SrtePart;
}

export function parseSrteTensorName(name: string): SrteTensorName | undefined {
  const [, prefix, layer, part] = SRTE_NAME.exec(name) ?? [];
  return prefix === undefined
    ? undefined
    : { prefix, layer: layer ?? null, part: part as SrtePart };
}

type StoredParts = Map<SrtePart, SrteTensor>;
