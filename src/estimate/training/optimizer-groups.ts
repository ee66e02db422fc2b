/** Groups of AdamW: which tensors a rule decays, each tensor once. */

import { sumOf } from '../../base/values.js';
import type { Component, LanguageModel, Layer } from '../../model/architecture/layer.js';
import type { Param } from '../../model/architecture/param.js';
import { ownTensors, walk } from '../../model/architecture/walk.js';

/** Kinds of tensors that people ask about. */
const TENSOR_KINDS = [
  'matrix',
  'embedding',
  'positions',
  'srte',
  'norm',
  'bias',
  'vector',
] as const;

export type TensorKind = (typeof TENSOR_KINDS)[number];

/** A trained tensor and what a rule needs to know about it. */
export interface TrainedTensor {
  readonly tensor: Param;
  readonly kind: TensorKind;
  /** Kind of the layer that owns it. */
  readonly layer: Layer['kind'];
}

export interface GroupRule {
  readonly title: string;
  readonly source: string;
  isDecayed(tensor: TrainedTensor): boolean;
}

/** Names that Hugging Face's Trainer does not decay: biases, and norms by their usual names. */
const UNDECAYED_NAMES = [
  /bias/,
  /layernorm/,
  /rmsnorm/,
  /(?:^|\.)norm(?:$|\.)/,
  /_norm(?:$|\.)/,
] as const;

export const GROUP_RULES = {
  nanogpt: {
    title: 'tensors of two or more dimensions are decayed',
    source: 'nanoGPT model.py, configure_optimizers',
    isDecayed: ({ tensor }) => tensor.shape.length >= 2,
  },
  huggingface: {
    title: 'all but LayerNorms and names with bias or norm are decayed',
    source: 'transformers trainer.py, get_decay_parameter_names',
    isDecayed: ({ tensor, layer }) => {
      const name = tensor.name.toLowerCase();
      return layer !== 'layerNorm' && !UNDECAYED_NAMES.some((pattern) => pattern.test(name));
    },
  },
  all: {
    title: 'one group: every tensor is decayed',
    source: 'minimind trainer/train_pretrain.py: AdamW(model.parameters())',
    isDecayed: () => true,
  },
} as const satisfies Record<string, GroupRule>;

export type GroupRuleName = keyof typeof GROUP_RULES;

export const GROUP_RULE_NAMES = Object.keys(GROUP_RULES) as GroupRuleName[];

/** Other names of the rules. */
const SYNONYMS: Readonly<Record<string, GroupRuleName>> = {
  hf: 'huggingface',
  trainer: 'huggingface',
  hugging_face: 'huggingface',
  transformers: 'huggingface',
  nano_gpt: 'nanogpt',
  dimensions: 'nanogpt',
  minimind: 'all',
  one: 'all',
  torchtitan: 'all',
};

/** The rule of a name in any usual spelling; undefined for another name. */
export function parseGroupRule(text: string): GroupRuleName | undefined {
  const name = text
    .trim()
    .toLowerCase()
    .replaceAll(/[-\s]+/g, '_');
  if (Object.hasOwn(GROUP_RULES, name)) return name as GroupRuleName;
  return Object.hasOwn(SYNONYMS, name) ? SYNONYMS[name] : undefined;
}

/** A group of tensors with one weight decay. */
export interface OptimizerGroup {
  /** Whether the group has a weight decay. */
  readonly isDecayed: boolean;
  readonly tensors: readonly TrainedTensor[];
  /** Parameters of the group. @integer */
  readonly parameters: number;
  /** Tensors and parameters of each kind in the group, in the order of `TENSOR_KINDS`. */
  readonly kinds: readonly GroupedKind[];
}

export interface GroupedKind {
  /** Kind of the tensors. */
  readonly kind: TensorKind;
  /** Number of tensors. @integer */
  readonly tensors: number;
  /** Their parameters. @integer */
  readonly parameters: number;
}

/** Corrections of a router's choice, which the load of the experts sets and no gradient (arXiv 2408.15664). */
const FROZEN = /(?:^|\.)e_score_correction_bias$/;

/** All trained tensors once, in the order of the state dict; a tied head is the embedding. */
export function trainedTensors(model: LanguageModel): readonly TrainedTensor[] {
  const met = new Set<Param>();
  return walk(model).flatMap(({ layer, component }) =>
    ownTensors(layer).flatMap((tensor): TrainedTensor[] => {
      if (tensor.role === 'buffer' || FROZEN.test(tensor.name) || met.has(tensor)) return [];
      met.add(tensor);
      return [{ tensor, kind: tensorKind(tensor, layer, component), layer: layer.kind }];
    }),
  );
}

/** The groups of a rule, the decayed one first; none without tensors. */
export function optimizerGroups(model: LanguageModel, rule: GroupRuleName): OptimizerGroup[] {
  const { isDecayed }: GroupRule = GROUP_RULES[rule];
  const all = trainedTensors(model);
  return [true, false].flatMap((decayed): OptimizerGroup[] => {
    const tensors = all.filter((each) => isDecayed(each) === decayed);
    return tensors.length === 0
      ? []
      : [
          {
            isDecayed: decayed,
            tensors,
            parameters: trainedSize(tensors),
            kinds: kindsOf(tensors),
          },
        ];
  });
}

const trainedSize = (tensors: readonly TrainedTensor[]): number =>
  sumOf(tensors, ({ tensor }) => tensor.elements);

function kindsOf(tensors: readonly TrainedTensor[]): GroupedKind[] {
  return TENSOR_KINDS.flatMap((kind) => {
    const own = tensors.filter((each) => each.kind === kind);
    return own.length === 0 ? [] : [{ kind, tensors: own.length, parameters: trainedSize(own) }];
  });
}

function tensorKind(tensor: Param, layer: Layer, component: Component): TensorKind {
  if (isNorm(layer)) return 'norm';
  if (/bias$/i.test(tensor.name)) return 'bias';
  if (component === 'srte') return 'srte';
  if (component === 'positions') return 'positions';
  if (layer.kind === 'embedding') return 'embedding';
  return tensor.shape.length >= 2 ? 'matrix' : 'vector';
}

const isNorm = ({ kind }: Layer): boolean => /norm/i.test(kind);
