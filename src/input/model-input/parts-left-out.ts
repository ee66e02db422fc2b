/**
 * Tensors next to a language model: parts of a larger model that are not described, and tensors that classes ignore on
 * loading.
 */

import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { firstOfPattern, storedNames } from '../../checkpoint/names.js';
import type { Ignored } from '../../model/architecture/family.js';
import { ignoredOnLoad, SEEING } from '../../model/architecture/transformer/ignored-tensors.js';

/** Tensors that classes around a text model ignore on loading, in addition to the class of the text model alone. */
const IGNORED_AROUND: Readonly<Record<string, readonly string[]>> = {
  // Layers that generate images, sound and actions, parallel to those of the language model and between them.
  cosmos3_omni: [
    '\\.add_k_proj\\.',
    '\\.add_q_proj\\.',
    '\\.add_v_proj\\.',
    '\\.norm_added_k\\.',
    '\\.norm_added_q\\.',
    '\\.to_add_out\\.',
    '^action_modality_embed$',
    '^action_proj_in\\.',
    '^action_proj_out\\.',
    '^audio_modality_embed$',
    '^audio_proj_in\\.',
    '^audio_proj_out\\.',
    '^proj_in\\.',
    '^proj_out\\.',
    '^time_embedder\\.',
    'moe_gen',
  ],
  exaone4_5: ['mtp.*'],
};

/**
 * Tensors that a class ignores on loading.
 * @param of Kind of the whole model around a text model; undefined for a model alone.
 * @param ofText Those of the text model alone.
 */
export function ignoredAround(
  of: string | undefined,
  ofText: readonly Ignored[],
): readonly Ignored[] {
  if (of === undefined) return ofText;
  const further = Object.hasOwn(IGNORED_AROUND, of) ? (IGNORED_AROUND[of] ?? []) : [];
  return [
    ...ofText.filter(({ pattern }) => !(pattern instanceof RegExp && pattern.source === SEEING)),
    ...ignoredOnLoad(further),
  ];
}

/** A part of a checkpoint outside the language model. */
export interface LeftOutPart {
  /** `vision_tower` */
  readonly name: string;
  /** Pattern of its names: `model.vision_tower.**`. */
  readonly pattern: string;
  readonly parameters: number;
}

/**
 * Parts of a checkpoint that hold nothing of the language model, with their parameters.
 * @param own Names of the language model's tensors.
 * @param ignored Tensors that belong to no part; a part with only such tensors is not listed.
 */
export function partsLeftOut(
  checkpoint: Checkpoint,
  own: ReadonlySet<string>,
  ignored: readonly Ignored[],
): LeftOutPart[] {
  const places = new Set([...own].map(partPrefix));
  const parts = new Map<string, LeftOutPart>();
  const other = new Set<string>();
  for (const [name, { tensor }] of storedNames(checkpoint)) {
    const place = partPrefix(name);
    if (places.has(place)) continue;
    if (firstOfPattern(name, ignored) === undefined) other.add(place);
    const before = parts.get(place)?.parameters ?? 0;
    parts.set(place, {
      name: place.split('.').at(-1) ?? place,
      pattern: name === place ? place : `${place}.**`,
      parameters: before + tensor.elements,
    });
  }
  return [...parts].filter(([place]) => other.has(place)).map(([, part]) => part);
}

/** `model.vision_tower` of `model.vision_tower.blocks.0.weight`, `visual` of `visual.patch_embed.weight`. */
function partPrefix(name: string): string {
  const [first = '', second = ''] = name.split('.');
  return first === 'model' || first === 'thinker' ? `${first}.${second}` : first;
}
