/** The plan of a conversion, from the index of the input and what its output has to have. */
import type { Formula } from '../../architecture/computed-buffers.js';
import { computedBuffers } from '../../architecture/computed-buffers.js';
import type { Ignored } from '../../architecture/family.js';
import type { LanguageModel } from '../../architecture/layer.js';
import type { Param } from '../../architecture/param.js';
import { buffer } from '../../architecture/param.js';
import type { SrteLayout } from '../../architecture/srte-layout.js';
import { stateDictOf, tensorsOf } from '../../architecture/walk.js';
import { firstLike } from '../../checkpoint/name-patterns.js';
import type { StoredTensor } from '../../checkpoint/stored-tensor.js';
import { isSameView } from '../../checkpoint/stored-tensor.js';
import { viewsOf } from '../../checkpoint/summary-sharing.js';
import { UserError } from '../../errors.js';
import type { Shape, StoredDtype } from '../../tensor/dtype.js';
import {
  elementCount,
  isSameShape,
  STORED_DTYPES,
  shapeText,
  storedBytes,
} from '../../tensor/dtype.js';
import { isEncodable } from '../../tensor/encode.js';
import type { PlanFault } from '../conversion-rules.js';
import { refusedPlan } from '../conversion-rules.js';
import type { ConversionRequest, Tie } from '../job.js';
import { planTables } from '../srte/srte-plan.js';
import type { SrteTables } from '../srte/srte-tables.js';
import { srtePlaceOf } from '../srte/srte-tables.js';
import type {
  Action,
  ConversionPlan,
  LeftOut,
  PlannedTensor,
  PlannedTie,
  SrtePlan,
} from './plan.js';

/** A tensor of the input under the name that the output has for it. */
export interface SourceTensor {
  /** As the file has it. */
  readonly own: string;
  readonly tensor: StoredTensor;
  /** Attention heads whose rows have to be unpaired (see dialects.ts). */
  readonly heads?: number;
}

export type SourceTensors = ReadonlyMap<string, SourceTensor>;

export interface PlanInput {
  /** As the user wrote it, for messages. */
  readonly file: string;
  readonly sources: SourceTensors;
  /** The model as it is and as it is to be; undefined when nothing describes it. */
  readonly models?:
    | { readonly source: LanguageModel | undefined; readonly target: LanguageModel }
    | undefined;
  /** Undefined when the SRTE, if there is one, stays as it is. */
  readonly srte?:
    | {
        /** Null when the SRTE is computed. */
        readonly tables: SrteTables | null;
        readonly source: SrteLayout;
        readonly target: SrteLayout;
        /** Before `layers.` in its names. */
        readonly prefix: string;
      }
    | undefined;
  readonly request: ConversionRequest;
  /** What others keep beside the model, and the output does without. */
  readonly ignored?: readonly Ignored[];
  /**
   * Whether buffers that the input does not have are computed, for a loader that wants every name. The
   * SRTE's always are: it is nothing but its buffer.
   */
  readonly completesBuffers: boolean;
}

export interface Planned {
  readonly plan: ConversionPlan;
  /** How the buffers that can be computed are, by their names. */
  readonly formulas: ReadonlyMap<string, Formula>;
}

/**
 * @throws UserError with everything that is missing, extra or misshapen; when the request does not fit.
 */
export function planConversion(input: PlanInput): Planned {
  const { file, sources, models, srte, request } = input;
  if (sources.size === 0) throw holdsNothing(file);
  const tables = srte
    ? planTables(srte.tables, srte.source, srte.target, request, srte.prefix)
    : null;
  const wanted = models ? wantedByModel(models.target) : wantedOfNames(input);
  const resolver = new Resolver(input, tables);
  const tensors = wanted.tensors.flatMap((each) => resolver.plan(each) ?? []);
  const { leftOut, faults } = resolver.unused(models !== undefined);
  const all = [...resolver.faults, ...faults];
  if (all.length > 0) throw refusedPlan(file, all);
  const planned = new Set(tensors.flatMap(({ name, aliases }) => [name, ...aliases]));
  const plan = {
    tensors,
    names: wanted.names.filter((name) => planned.has(name)),
    srte: tables,
    tie: resolver.tie,
    leftOut,
    notes: notesOf(sources, tensors),
  };
  const formulas = wanted.tensors.flatMap(({ name, formula }) =>
    formula ? [[name, formula] as const] : [],
  );
  return { plan, formulas: new Map(formulas) };
}

const holdsNothing = (file: string) =>
  new UserError('refused-file', `${file} holds no tensors`, {
    suggestion: 'check that it is the file of the weights',
  });

function wantedOfNames({ sources, srte, request, file }: PlanInput): WantedTensors {
  const stored = new Map(Array.from(sources, ([name, { tensor }]) => [name, tensor]));
  const tied = request.tie === undefined ? undefined : tiedPairOf((name) => stored.has(name));
  if (request.tie !== undefined && tied === undefined) {
    throw new UserError('usage', `${file} has no embedding and head by names that are known here`, {
      suggestion: 'leave --tie out, or name a config that describes the model, with --config',
    });
  }
  return wantedByNames(stored, srte && { layout: srte.target, prefix: srte.prefix }, tied);
}

class Resolver {
  readonly faults: PlanFault[] = [];
  tie: PlannedTie | null = null;
  readonly #used = new Set<string>();
  readonly #input: PlanInput;
  readonly #tables: SrtePlan | null;
  /** Further names under which the input's own description knows a tensor. */
  readonly #known: ReadonlyMap<string, readonly string[]>;

  constructor(input: PlanInput, tables: SrtePlan | null) {
    this.#input = input;
    this.#tables = tables;
    this.#known = namesKnown(input.models?.source);
  }

  /** Undefined when there is a fault. */
  plan(wanted: WantedTensor): PlannedTensor | undefined {
    const { name, aliases, role, shape } = wanted;
    const found = this.#srteAction(wanted) ?? this.#storedAction(wanted) ?? this.#computed(wanted);
    if (found === undefined) return undefined;
    const { action, stored } = found;
    const dtype = this.#dtypeOf(wanted, action, stored);
    const elements = elementCount(shape) ?? Number.NaN;
    const bytes = storedBytes(elements, dtype);
    if (bytes === undefined) {
      const message = `would be ${shapeText(shape)}, which is more than a file can hold`;
      this.#fault(name, message, 'ask for fewer rows with --max-positions');
      return undefined;
    }
    return { name, aliases, role, dtype, shape, bytes, action };
  }

  /** What the input has and the output does not. @param isDescribed Whether there is a word on what belongs. */
  unused(isDescribed: boolean): { leftOut: LeftOut[]; faults: PlanFault[] } {
    const leftOut: LeftOut[] = [];
    const faults: PlanFault[] = [];
    for (const [name, { own }] of this.#input.sources) {
      if (this.#used.has(name)) continue;
      if (this.#tables && isSrteName(name)) {
        leftOut.push({ name: own, why: `replaced by ${this.#tables.tables[0]?.name ?? 'SRTE'}` });
        continue;
      }
      const ignored = isDescribed ? firstLike(name, this.#input.ignored ?? []) : undefined;
      if (ignored) leftOut.push({ name: own, why: ignored.what });
      else if (isDescribed) {
        faults.push({
          name: own,
          message: 'has no place in the output',
          suggestion: 'check the config, or convert by names alone with --no-config',
        });
      }
    }
    return { leftOut, faults };
  }

  #srteAction({ name, aliases, shape }: WantedTensor): Resolution | undefined {
    const place = srtePlaceOf(name);
    const { tables, srte } = { tables: this.#tables, srte: this.#input.srte };
    if (place === undefined || tables === null || srte === undefined) return undefined;
    const number = place.layer === null ? 0 : Number(place.layer);
    const table = tables.tables[number];
    if (table === undefined) return undefined;
    this.#use([name, ...aliases]);
    if (table.isMade) return { action: { do: 'table', table: number, part: place.part } };
    const source = srte.tables?.tables[table.sources[0] ?? 0];
    const from = place.part === 'proj.weight' ? source?.projectionName : source?.name;
    const stored = place.part === 'proj.weight' ? source?.projection : source?.rows;
    if (source === undefined || from == null || stored == null) return undefined;
    const [, rows = 0] = shape;
    const isFitted = place.part !== 'proj.weight' && rows !== srte.source.positions;
    const action: Action = isFitted
      ? { do: 'fit', from, rows, extension: tables.extension }
      : { do: 'copy', from };
    return { action, stored };
  }

  #storedAction(wanted: WantedTensor): Resolution | undefined {
    const { name, aliases, shape, role } = wanted;
    const own = [name, ...aliases];
    const names = own.some((each) => this.#input.sources.has(each))
      ? own
      : own.flatMap((each) => this.#known.get(each) ?? []);
    const present = names.flatMap((each) => {
      const source = this.#input.sources.get(each);
      return source ? [{ ...source, name: each }] : [];
    });
    const [first, ...others] = present;
    if (first === undefined) return undefined;
    this.#use(names);
    const misshapen = present.find(({ tensor }) => !isSameShape(tensor.shape, shape));
    if (misshapen) {
      if (role === 'buffer' && wanted.formula) return undefined;
      this.#fault(
        misshapen.own,
        `is ${shapeText(misshapen.tensor.shape)}, and the output wants ${shapeText(shape)}`,
        'choose a target of the same sizes: only the SRTE, tying and types can be changed',
      );
      return { action: { do: 'copy', from: misshapen.own }, stored: misshapen.tensor };
    }
    // What is one tensor by the input's own description has been found to hold the same values.
    const known = this.#known.get(first.name);
    const other = others.find(
      ({ tensor, name: another }) => !isSameView(tensor, first.tensor) && !known?.includes(another),
    );
    if (other !== undefined && role === 'parameter') return this.#tie(name, first, other);
    const { own: from, heads, tensor: stored } = first;
    return { action: heads ? { do: 'unpair', from, heads } : { do: 'copy', from }, stored };
  }

  /** One tensor out of two. */
  #tie(name: string, first: SourceTensor, other: SourceTensor): Resolution {
    const { tie } = this.#input.request;
    const pair = [first.own, other.own] as const;
    const stored = first.tensor;
    if (tie === undefined) {
      this.#fault(
        other.own,
        `and ${JSON.stringify(first.own)} are to be one tensor, and are two here`,
        'say whose values it gets: --tie embed, --tie head or --tie mean',
      );
      return { action: { do: 'copy', from: first.own }, stored };
    }
    this.tie = { name, from: pair, values: tie };
    const dtype = this.#input.request.dtype ?? stored.dtype;
    if (tie === 'mean' && !isEncodable(dtype)) {
      this.#fault(
        first.own,
        `holds ${stored.dtype}, as which a mean cannot be written`,
        'choose another type with --dtype',
      );
    }
    const actions = {
      embed: { do: 'copy', from: first.own },
      head: { do: 'copy', from: other.own },
      mean: { do: 'average', from: pair },
    } as const satisfies Record<Tie, Action>;
    return { action: actions[tie], stored: tie === 'head' ? other.tensor : stored };
  }

  #computed({ name, formula }: WantedTensor): Resolution | undefined {
    if (formula !== undefined) {
      const isWanted = this.#input.completesBuffers || isSrteName(name);
      return isWanted ? { action: { do: 'compute' } } : undefined;
    }
    this.#fault(name, 'is missing', 'check that the checkpoint is whole, and the config its own');
    return undefined;
  }

  #dtypeOf({ role }: WantedTensor, action: Action, stored?: StoredTensor): StoredDtype {
    if (action.do === 'table') return this.#tables?.tables[action.table]?.dtype ?? 'F32';
    const own = stored?.dtype ?? 'F32';
    const { dtype } = this.#input.request;
    const isCast =
      dtype !== undefined && role === 'parameter' && STORED_DTYPES[own].kind === 'float';
    return isCast ? dtype : own;
  }

  #use(names: readonly string[]): void {
    for (const name of names) this.#used.add(name);
  }

  #fault(name: string, message: string, suggestion: string): void {
    this.faults.push({ name, message, suggestion });
  }
}

interface Resolution {
  readonly action: Action;
  /** What the values are stored as, when they are those of one tensor. */
  readonly stored?: StoredTensor;
}

function namesKnown(model: LanguageModel | undefined): ReadonlyMap<string, readonly string[]> {
  const known = new Map<string, readonly string[]>();
  for (const { name, aliases } of model ? tensorsOf(model) : []) {
    const names = [name, ...aliases];
    for (const each of names) known.set(each, names);
  }
  return known;
}

function notesOf(sources: SourceTensors, tensors: readonly PlannedTensor[]): string[] {
  const computed = tensors.filter(({ action }) => action.do === 'compute').length;
  const unpaired = tensors.filter(({ action }) => action.do === 'unpair').length;
  const wrapped = [...sources].find(([name, { own }]) => own !== name && own.endsWith(name));
  const prefix = wrapped ? wrapped[1].own.slice(0, -wrapped[0].length) : '';
  return [
    ...(prefix === '' ? [] : [`Names lose what a wrapper put before them: ${prefix}`]),
    ...(computed === 0
      ? []
      : [`Buffers that the input does not have are computed from the config: ${computed}`]),
    ...(unpaired === 0
      ? []
      : [`Rows of query and key projections are reordered for RoPE by halves: ${unpaired}`]),
  ];
}

// The tensors that the output of a conversion has to have.

export interface WantedTensor {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly shape: Shape;
  readonly role: 'parameter' | 'buffer';
  /** How it is computed when the input does not have it. */
  readonly formula?: Formula;
}

export interface WantedTensors {
  readonly tensors: readonly WantedTensor[];
  /** All names in the order of the state dict. */
  readonly names: readonly string[];
}

/** Those of a described model. */
export function wantedByModel(model: LanguageModel): WantedTensors {
  const formulas = computedBuffers(model);
  return {
    tensors: tensorsOf(model).map((tensor) => wantedOf(tensor, formulas.get(tensor))),
    names: stateDictOf(model).map(({ name }) => name),
  };
}

const wantedOf = (
  { name, aliases, shape, role }: Param,
  formula: Formula | undefined,
): WantedTensor => ({ name, aliases, shape, role, ...(formula && { formula }) });

/** Buffers by what PyTorch models call them: they are not cast. */
const BUFFER =
  /(?:^|\.)(?:rope\.(?:inv_freq|cos_cached|sin_cached)|rotary_emb\.(?:inv_freq|cos_cached|sin_cached)|(?:shared_)?srte\.inv_freq)$/;

export const isBufferName = (name: string): boolean => BUFFER.test(name);

/** An SRTE that is only computed: `layers.0.srte.inv_freq`, `shared_srte.inv_freq`. */
const SINCOS = /^(?:|.*\.)(?:layers\.[^.]*\.srte|shared_srte)\.inv_freq$/s;

/** Whether a name is that of an SRTE tensor, learned or computed. */
export const isSrteName = (name: string): boolean =>
  srtePlaceOf(name) !== undefined || SINCOS.test(name);

/** The embedding and the head of models, by their names: those that tying makes one. */
const TIED_PAIRS = [
  ['embed_tokens.weight', 'lm_head.weight'],
  ['model.embed_tokens.weight', 'lm_head.weight'],
  ['token_embedding.weight', 'lm_head.weight'],
  ['tok_embeddings.weight', 'output.weight'],
  ['transformer.wte.weight', 'lm_head.weight'],
  ['embed.weight', 'head.weight'],
] as const;

export function tiedPairOf(has: (name: string) => boolean): readonly [string, string] | undefined {
  return TIED_PAIRS.find((pair) => pair.every(has));
}

/**
 * Those of a model that nothing describes: the input's, but for the SRTE.
 * @param stored By the names that the output has.
 * @param srte The SRTE to have, and the prefix of its names; undefined to leave it as it is.
 * @param tied Whether the embedding and the head become one.
 */
export function wantedByNames(
  stored: ReadonlyMap<string, StoredTensor>,
  srte: { readonly layout: SrteLayout; readonly prefix: string } | undefined,
  tied: readonly [string, string] | undefined,
): WantedTensors {
  const kept = [...stored].filter(([name]) => srte === undefined || !isSrteName(name));
  const [embedding, head] = tied ?? [];
  const views = viewsOf(new Map(kept)).filter(({ names: [first] }) => first !== head);
  const fromNames = views.map(
    ({ names: [name, ...aliases], tensor: { shape } }): WantedTensor => ({
      name,
      aliases:
        name === embedding && head !== undefined ? [...new Set([...aliases, head])] : aliases,
      shape,
      role: isBufferName(name) ? 'buffer' : 'parameter',
    }),
  );
  const tables = srte ? wantedSrte(srte.layout, srte.prefix) : [];
  // Before the first layer, where the original registers what the layers share.
  const place = fromNames.findIndex(({ name }) => name.startsWith(`${srte?.prefix}layers.`));
  const tensors = fromNames.toSpliced(Math.max(0, place), 0, ...tables);
  return { tensors, names: tensors.flatMap(({ name, aliases }) => [name, ...aliases]) };
}

function wantedSrte(layout: SrteLayout, prefix: string): WantedTensor[] {
  const layers = Array.from({ length: layout.layers }, (_, i) => `${prefix}layers.${i}.srte`);
  return layout.sharing === 'shared'
    ? srteTensors(`${prefix}shared_srte`, layers, layout)
    : layers.flatMap((name) => srteTensors(name, [], layout));
}

function srteTensors(
  name: string,
  mounts: readonly string[],
  { form, positions, hidden, rank }: SrteLayout,
): WantedTensor[] {
  const parameter = (leaf: string, shape: Shape): WantedTensor => ({
    name: `${name}.${leaf}`,
    aliases: mounts.map((mount) => `${mount}.${leaf}`),
    shape,
    role: 'parameter',
  });
  switch (form) {
    case 'table':
      return [parameter('freqs', [1, positions, hidden])];
    case 'low-rank':
      return [
        parameter('lowrank', [1, positions, rank ?? 0]),
        parameter('proj.weight', [hidden, rank ?? 0]),
      ];
    case 'sincos': {
      const inverse = buffer(`${name}.inv_freq`, [hidden / 2], {
        aliases: mounts.map((mount) => `${mount}.inv_freq`),
      });
      const layer = { kind: 'srteSincos', name, inverseFrequencies: inverse } as const;
      return [wantedOf(inverse, computedBuffers(layer).get(inverse))];
    }
  }
}
