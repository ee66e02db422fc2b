/** Words for the differences between a checkpoint and its description, in errors and in reports. */
import { counted, joined, shortened } from '../text/words.js';
import type { FaultKind, Said } from './faults.js';
import type { FaultGroup } from './notes.js';
import type { Suggestion } from './suggest.js';

/** A value that the config and the config inside the checkpoint do not agree on. */
export interface ConfigDifference {
  /** `model.window_size`. */
  readonly path: string;
  readonly config: unknown;
  readonly checkpoint: unknown;
}

export const FAULT_NAMES = {
  'missing-layers': 'missing layers',
  'layer-gap': 'gap in layers',
  'extra-layers': 'extra layers',
  missing: 'missing',
  extra: 'extra',
  misshapen: 'misshapen',
  'wrong-dtype': 'wrong type',
  'not-tied': 'not tied',
  tied: 'wrongly tied',
} as const satisfies Record<FaultKind, string>;

/** `40 faults in 107 tensors`. */
export function faultCountText(faults: readonly FaultGroup[]): string {
  const faulty = faults.reduce((sum, { names }) => sum + names.length, 0);
  return `${counted(faults.length, 'fault')} in ${counted(faulty, 'tensor')}`;
}

/** A fault in a sentence without its tensors: `misshapen: described as [8], found F32 [9]`. */
export function faultText({ kind, expected, found }: FaultGroup): string {
  const said = [
    ...(expected ? [`described as ${saidText(expected)}`] : []),
    ...(found ? [`found ${saidText(found)}`] : []),
  ];
  return `${FAULT_NAMES[kind]}: ${said.join(', ')}`;
}

/** `F32 [64, 64]`, `values of embed_tokens.weight`, `32 layers`. */
export function saidText(said: Said): string {
  if (said.sameAs !== undefined) return `values of ${shortened(said.sameAs)}`;
  if (said.layers !== undefined) return counted(said.layers, 'layer');
  const shape = said.shape ? `[${said.shape.join(', ')}]` : '';
  return [said.dtype, shape].filter(Boolean).join(' ');
}

/** A suggestion in a sentence. */
export function adviceText(suggestion: Suggestion): string {
  if (suggestion.kind === 'rename') {
    return `every name begins with ${JSON.stringify(suggestion.prefix)}, which is none of the model’s: take it off.`;
  }
  const { set } = suggestion;
  const shows = joined(set.map((each) => each.shows));
  const keys = joined(set.map(({ path, value }) => `${path}: ${value}`));
  const convert = set.every(({ convertible }) => convertible) ? ', or convert the checkpoint' : '';
  return `${shows}: set ${keys}${convert}.`;
}

/** `config inside the checkpoint says model.window_size: 1024, not 7`. */
export const differenceText = ({ path, config, checkpoint }: ConfigDifference): string =>
  `config inside the checkpoint says ${path}: ${JSON.stringify(checkpoint)}, not ${JSON.stringify(config)}`;
