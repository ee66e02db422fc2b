/** The required tensors of an output, and the sources of their values. */

import { UserError, usageError } from '../../../base/errors.js';
import type { Shape, StoredDtype } from '../../../base/tensor/dtype.js';
import {
  elementCount,
  isSameShape,
  STORED_DTYPES,
  shapeText,
  storedBytes,
} from '../../../base/tensor/dtype.js';
import { isEncodable } from '../../../base/tensor/encode.js';
import { setting } from '../../../base/text/setting.js';
import { counted } from '../../../base/text/words.js';
import { isTrainingFormat } from '../../../checkpoint/formats.js';
import { firstOfPattern } from '../../../checkpoint/names.js';
import { viewsOf } from '../../../checkpoint/sharing.js';
import type { StoredTensor } from '../../../checkpoint/stored-tensor.js';
import { isSameView } from '../../../checkpoint/stored-tensor.js';
import { isIgnoredOnLoad } from '../../../model/architecture/family.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import { buffer } from '../../../model/architecture/param.js';
import type { Formula } from '../../../model/architecture/rotary-scaling.js';
import { computedBuffers } from '../../../model/architecture/rotary-scaling.js';
import type { SrteLayout } from '../../../model/architecture/srte-layout.js';
import { stateDictOf, tensorsOf } from '../../../model/architecture/walk.js';
import type { Tie } from '../conversion-choices.js';
import type { ConversionFault } from '../conversion-rules.js';
import { refusedPlan } from '../conversion-rules.js';
import type { SrtePlan } from '../srte/srte-plan.js';
import { planTables } from '../srte/srte-plan.js';
import { parseSrteTensorName } from '../srte/srte-tables.js';
import type {
  Action,
  ConversionInput,
  ConversionPlan,
  Omission,
  PlannedTensor,
  PlannedTie,
  SourceTensor,
  SourceTensors,
} from './conversion-plan.js';
import { ignoredNote, type TargetConfig } from './model-configs.js';

/**
 * The tensors of the output, and the sources of their values.
 * @param config The config of the output; undefined without a description.
 * @param layout The SRTE of the output; undefined to keep it.
 * @throws UserError with all missing, extra or misshapen tensors; when the request does not apply.
 */
export function planTensors(
  input: ConversionInput,
  config: TargetConfig | undefined,
  layout: SrteLayout | undefined,
): Omit<ConversionPlan, 'config' | 'keepsConfig'> {
  const { job, srte } = input;
  const file = job.checkpoint.path;
  if (input.tensors.size === 0) throw holdsNothing(file);
  const srtePlan = srte && layout ? planTables(srte, layout, job) : null;
  const expected = config ? expectedByModel(config.model) : expectedByNames(input, layout);
  const resolver = new Resolver(input, config, srtePlan);
  const tensors = expected.tensors.flatMap((each) => resolver.plan(each) ?? []);
  const { kept, leftOut } = resolver.unused();
  if (resolver.faults.length > 0) throw refusedPlan(file, resolver.faults);
  const planned = new Set(tensors.flatMap(({ name, aliases }) => [name, ...aliases]));
  const formulas = expected.tensors.flatMap(({ name, formula }) =>
    formula ? [[name, formula] as const] : [],
  );
  return {
    tensors: [...tensors, ...kept],
    names: [...expected.names.filter((name) => planned.has(name)), ...kept.map(({ name }) => name)],
    srte: srtePlan,
    tie: resolver.tie,
    leftOut,
    notes: [
      ...planNotes(input.tensors, tensors),
      ...(kept.length > 0 ? ignoredNote(input.source, 'kept as they are') : []),
    ],
    formulas: new Map(formulas),
  };
}

const holdsNothing = (file: string) =>
  new UserError('refused-file', `${file} holds no tensors`, {
    suggestion: 'check that it is the file of the weights',
  });

class Resolver {
  readonly faults: ConversionFault[] = [];
  tie: PlannedTie | null = null;
  readonly #used = new Set<string>();
  readonly #input: ConversionInput;
  readonly #config: TargetConfig | undefined;
  readonly #tables: SrtePlan | null;
  /** Aliases of a tensor in the input's own description. */
  readonly #known: ReadonlyMap<string, readonly string[]>;

  constructor(input: ConversionInput, config: TargetConfig | undefined, tables: SrtePlan | null) {
    this.#input = input;
    this.#config = config;
    this.#tables = tables;
    this.#known = namesKnown(config && input.source?.model);
  }

  /** Undefined when there is a fault. */
  plan(expected: ExpectedTensor): PlannedTensor | undefined {
    const { name, aliases, role, shape } = expected;
    const found =
      this.#srteAction(expected) ?? this.#storedAction(expected) ?? this.#computed(expected);
    if (found === undefined) return undefined;
    const { action, stored } = found;
    const dtype = this.#dtypeOf(expected, action, stored);
    const elements = elementCount(shape) ?? Number.NaN;
    const bytes = storedBytes(elements, dtype);
    if (bytes === undefined) {
      const message = `would be ${shapeText(shape)}, beyond the limit of a file`;
      this.#fault(name, message, `ask for fewer rows with ${setting('maxPositions')}`);
      return undefined;
    }
    return { name, aliases, role, dtype, shape, bytes, action };
  }

  /**
   * Input tensors that no tensor of the model uses. Those that transformers ignores are kept unchanged. Any other is a
   * fault if the model is described.
   */
  unused(): { readonly kept: readonly PlannedTensor[]; readonly leftOut: readonly Omission[] } {
    const kept: PlannedTensor[] = [];
    const leftOut: Omission[] = [];
    for (const [name, { own, tensor }] of this.#input.tensors) {
      if (this.#used.has(name)) continue;
      if (this.#tables && isSrteName(name)) {
        leftOut.push({ name: own, why: `replaced by ${this.#tables.tables[0]?.name ?? 'SRTE'}` });
        continue;
      }
      if (this.#config === undefined) continue;
      const ignored = firstOfPattern(name, this.#config.ignored);
      if (ignored && isIgnoredOnLoad(ignored)) kept.push(keptAsItIs(name, own, tensor));
      else if (ignored) leftOut.push({ name: own, why: ignored.what });
      else {
        const suggestion = `check the config, or convert by names alone with ${setting('noConfig')}`;
        this.#fault(own, 'has no place in the output', suggestion);
      }
    }
    return { kept, leftOut };
  }

  #srteAction({ name, aliases, shape }: ExpectedTensor): Resolution | undefined {
    const place = parseSrteTensorName(name);
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
    const isFitted = place.part !== 'proj.weight' && rows !== srte.layout.positions;
    const action: Action = isFitted
      ? { do: 'fit', from, rows, extension: tables.extension }
      : { do: 'copy', from };
    return { action, stored };
  }

  #storedAction(expected: ExpectedTensor): Resolution | undefined {
    const { name, aliases, shape, role } = expected;
    const own = [name, ...aliases];
    const names = own.some((each) => this.#input.tensors.has(each))
      ? own
      : own.flatMap((each) => this.#known.get(each) ?? []);
    const present = names.flatMap((each) => {
      const source = this.#input.tensors.get(each);
      return source ? [{ ...source, name: each }] : [];
    });
    const [first, ...others] = present;
    if (first === undefined) return undefined;
    this.#use(names);
    const misshapen = present.find(({ tensor }) => !isSameShape(tensor.shape, shape));
    if (misshapen) {
      if (role === 'buffer' && expected.formula) return undefined;
      this.#fault(
        misshapen.own,
        `has the shape ${shapeText(misshapen.tensor.shape)}, expected ${shapeText(shape)} in the output`,
        'choose a target of the same sizes: only the SRTE, tying and types can be changed',
      );
      return { action: { do: 'copy', from: misshapen.own }, stored: misshapen.tensor };
    }
    // The input's own description declares them as one tensor, and their values have been compared.
    const known = this.#known.get(first.name);
    const other = others.find(
      ({ tensor, name: another }) => !isSameView(tensor, first.tensor) && !known?.includes(another),
    );
    if (other !== undefined && role === 'parameter') return this.#tie(name, first, other);
    const { own: from, heads, tensor: stored } = first;
    return { action: heads ? { do: 'unpair', from, heads } : { do: 'copy', from }, stored };
  }

  /** Ties two tensors into one. */
  #tie(name: string, first: SourceTensor, other: SourceTensor): Resolution {
    const { tie } = this.#input.job;
    const pair = [first.own, other.own] as const;
    const stored = first.tensor;
    if (tie === undefined) {
      this.#fault(
        other.own,
        `expected one tensor with ${JSON.stringify(first.own)}, found two`,
        `choose its values: ${setting('tie', 'embed')}, ${setting('tie', 'head')} or ${setting('tie', 'mean')}`,
      );
      return { action: { do: 'copy', from: first.own }, stored };
    }
    this.tie = { name, from: pair, values: tie };
    const dtype = this.#input.job.dtype ?? stored.dtype;
    if (tie === 'mean' && !isEncodable(dtype)) {
      this.#fault(
        first.own,
        `has the type ${stored.dtype}, which cannot store a mean`,
        `choose another type with ${setting('dtype')}`,
      );
    }
    const actions = {
      embed: { do: 'copy', from: first.own },
      head: { do: 'copy', from: other.own },
      mean: { do: 'average', from: pair },
    } as const satisfies Record<Tie, Action>;
    return { action: actions[tie], stored: tie === 'head' ? other.tensor : stored };
  }

  #computed({ name, formula }: ExpectedTensor): Resolution | undefined {
    if (formula !== undefined) {
      // A PyTorch loader requires every name. A computed SRTE consists only of its buffer.
      const isExpected = isTrainingFormat(this.#input.place.container) || isSrteName(name);
      return isExpected ? { action: { do: 'compute' } } : undefined;
    }
    this.#fault(
      name,
      'is missing',
      'check that the checkpoint is complete, and that the config belongs to it',
    );
    return undefined;
  }

  #dtypeOf({ role }: ExpectedTensor, action: Action, stored?: StoredTensor): StoredDtype {
    if (action.do === 'table') return this.#tables?.tables[action.table]?.dtype ?? 'F32';
    const own = stored?.dtype ?? 'F32';
    const { dtype } = this.#input.job;
    const isCast =
      dtype !== undefined && role === 'parameter' && STORED_DTYPES[own].kind === 'float';
    return isCast ? dtype : own;
  }

  #use(names: readonly string[]): void {
    for (const name of names) this.#used.add(name);
  }

  #fault(tensor: string, message: string, suggestion: string): void {
    this.faults.push({ tensor, message, suggestion });
  }
}

/** A tensor outside the model, copied with its type. */
const keptAsItIs = (name: string, own: string, { dtype, shape, bytes }: StoredTensor) =>
  ({
    name,
    aliases: [],
    role: 'buffer',
    dtype,
    shape,
    bytes,
    action: { do: 'copy', from: own },
  }) as const satisfies PlannedTensor;

interface Resolution {
  readonly action: Action;
  /** The stored tensor, when the values come from a single one. */
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

function planNotes(sources: SourceTensors, tensors: readonly PlannedTensor[]): string[] {
  const computed = tensors.filter(({ action }) => action.do === 'compute').length;
  const unpaired = tensors.filter(({ action }) => action.do === 'unpair').length;
  const wrapped = [...sources].find(([name, { own }]) => own !== name && own.endsWith(name));
  const prefix = wrapped ? wrapped[1].own.slice(0, -wrapped[0].length) : '';
  return [
    ...(prefix === '' ? [] : [`Prefix of a wrapper removed from names: ${prefix}`]),
    ...(computed === 0
      ? []
      : [`Computed from the config: ${counted(computed, 'buffer')} that the input lacks`]),
    ...(unpaired === 0
      ? []
      : [`Rows of query and key projections are reordered for RoPE by halves: ${unpaired}`]),
  ];
}

interface ExpectedTensor {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly shape: Shape;
  readonly role: 'parameter' | 'buffer';
  /** Formula for a tensor that the input lacks. */
  readonly formula?: Formula;
}

interface ExpectedTensors {
  readonly tensors: readonly ExpectedTensor[];
  /** All names in the order of the state dict. */
  readonly names: readonly string[];
}

/** Tensors of a described model. */
function expectedByModel(model: LanguageModel): ExpectedTensors {
  const formulas = computedBuffers(model);
  return {
    tensors: tensorsOf(model).map((tensor) => expectedOf(tensor, formulas.get(tensor))),
    names: stateDictOf(model).map(({ name }) => name),
  };
}

const expectedOf = (
  { name, aliases, shape, role }: Param,
  formula: Formula | undefined,
): ExpectedTensor => ({ name, aliases, shape, role, ...(formula && { formula }) });

/** Buffers by their names in PyTorch models: they are not cast. */
const BUFFER =
  /(?:^|\.)(?:rope\.(?:inv_freq|cos_cached|sin_cached)|rotary_emb\.(?:inv_freq|cos_cached|sin_cached)|(?:shared_)?srte\.inv_freq)$/;

export const isBufferName = (name: string): boolean => BUFFER.test(name);

/** A computed SRTE: `layers.0.srte.inv_freq`, `shared_srte.inv_freq`. */
const SINCOS = /^(?:|.*\.)(?:layers\.[^.]*\.srte|shared_srte)\.inv_freq$/s;

/** Whether a name belongs to an SRTE tensor, learned or computed. */
export const isSrteName = (name: string): boolean =>
  parseSrteTensorName(name) !== undefined || SINCOS.test(name);

/** Names of the embedding and the head of models, for tying. */
const TIED_PAIRS = [
  ['embed_tokens.weight', 'lm_head.weight'],
  ['model.embed_tokens.weight', 'lm_head.weight'],
  ['token_embedding.weight', 'lm_head.weight'],
  ['tok_embeddings.weight', 'output.weight'],
  ['transformer.wte.weight', 'lm_head.weight'],
  ['embed.weight', 'head.weight'],
] as const;

function tiedPairOf(has: (name: string) => boolean): readonly [string, string] | undefined {
  return TIED_PAIRS.find((pair) => pair.every(has));
}

/**
 * Tensors of a model without a description: the input's, except the SRTE.
 * @param layout The SRTE of the output; undefined to keep it.
 * @throws UserError when an embedding and a head to tie do not exist.
 */
function expectedByNames(
  { tensors: sources, srte: source, job }: ConversionInput,
  layout: SrteLayout | undefined,
): ExpectedTensors {
  const stored = new Map(Array.from(sources, ([name, { tensor }]) => [name, tensor]));
  const srte = source && layout && { layout, prefix: source.prefix };
  const tied = job.tie === undefined ? undefined : tiedPairOf((name) => stored.has(name));
  if (job.tie !== undefined && tied === undefined) {
    const file = job.checkpoint.path;
    throw usageError(
      `${file}: expected an embedding and a head with known names, found none`,
      `leave ${setting('tie')} out, or name a config that describes the model, with ${setting('config')}`,
    );
  }
  const kept = [...stored].filter(([name]) => srte === undefined || !isSrteName(name));
  const [embedding, head] = tied ?? [];
  const views = viewsOf(new Map(kept)).filter(({ names: [first] }) => first !== head);
  const fromNames = views.map(
    ({ names: [name, ...aliases], tensor: { shape } }): ExpectedTensor => ({
      name,
      aliases:
        name === embedding && head !== undefined ? [...new Set([...aliases, head])] : aliases,
      shape,
      role: isBufferName(name) ? 'buffer' : 'parameter',
    }),
  );
  const srteTensors = srte ? expectedSrte(srte.layout, srte.prefix) : [];
  // They are inserted before the first layer, where the original model registers shared modules.
  const place = fromNames.findIndex(({ name }) => name.startsWith(`${srte?.prefix}layers.`));
  const tensors = fromNames.toSpliced(Math.max(0, place), 0, ...srteTensors);
  return { tensors, names: tensors.flatMap(({ name, aliases }) => [name, ...aliases]) };
}

function expectedSrte(layout: SrteLayout, prefix: string): ExpectedTensor[] {
  const layers = Array.from({ length: layout.layers }, (_, i) => `${prefix}layers.${i}.srte`);
  return layout.sharing === 'shared'
    ? tensorsOfSrte(`${prefix}shared_srte`, layers, layout)
    : layers.flatMap((name) => tensorsOfSrte(name, [], layout));
}

function tensorsOfSrte(
  name: string,
  mounts: readonly string[],
  { form, positions, hidden, rank }: SrteLayout,
): ExpectedTensor[] {
  const parameter = (leaf: string, shape: Shape): ExpectedTensor => ({
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
      return [expectedOf(inverse, computedBuffers(layer).get(inverse))];
    }
  }
}
