/** The tensors that the output of a conversion has to have. */
import { computedBuffers, type Formula } from '../architecture/computed-buffers.js';
import type { LanguageModel } from '../architecture/layer.js';
import { buffer, type Param } from '../architecture/param.js';
import type { SrteLayout } from '../architecture/srte-layout.js';
import { stateDictOf, tensorsOf } from '../architecture/walk.js';
import { viewsOf } from '../checkpoint/sharing.js';
import type { StoredTensor } from '../checkpoint/stored-tensor.js';
import type { Shape } from '../tensor/dtype.js';
import { srtePlaceOf } from './srte-names.js';

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
