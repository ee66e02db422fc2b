/** Texts about faults and their remedies, for errors, warnings and reports. */

import { counted, joined, shortened } from '../../base/text/words.js';
import { sumOf } from '../../base/values.js';
import type { FaultKind, TensorProperties } from './faults.js';
import type { FaultGroup } from './notes.js';
import type { ConfigDifference, Suggestion } from './reconcile.js';

/** Names of the kinds, in the order of the report. */
export const FAULT_NAMES = {
  'missing-layers': 'missing layers',
  'layer-gap': 'gap in layers',
  'extra-layers': 'extra layers',
  missing: 'missing',
  extra: 'extra',
  misshapen: 'wrong shape',
  'wrong-dtype': 'wrong type',
  'not-tied': 'not tied',
  tied: 'wrongly tied',
} as const satisfies Record<FaultKind, string>;

/** `40 faults in 107 tensors`. */
export function faultCountText(faults: readonly FaultGroup[]): string {
  const faulty = sumOf(faults, ({ names }) => names.length);
  return `${counted(faults.length, 'fault')} in ${counted(faulty, 'tensor')}`;
}

/** Text of a fault without its tensors: `wrong shape: expected [8], found F32 [9]`. */
export function faultText({ kind, expected, found }: FaultGroup): string {
  const said = [
    ...(expected ? [`expected ${propertiesText(expected)}`] : []),
    ...(found ? [`found ${propertiesText(found)}`] : []),
  ];
  return `${FAULT_NAMES[kind]}: ${said.join(', ')}`;
}

/** `F32 [64, 64]`, `values of embed_tokens.weight`, `32 layers`. */
export function propertiesText(said: TensorProperties): string {
  if (said.sameAs !== undefined) return `values of ${shortened(said.sameAs)}`;
  if (said.layers !== undefined) return counted(said.layers, 'layer');
  const shape = said.shape ? `[${said.shape.join(', ')}]` : '';
  return [said.dtype, shape].filter(Boolean).join(' ');
}

export function adviceText(suggestion: Suggestion): string {
  if (suggestion.kind === 'rename') {
    return `every name begins with ${JSON.stringify(suggestion.prefix)}, which the model does not have: remove this prefix.`;
  }
  const { set } = suggestion;
  const shows = joined(set.map((each) => each.shows));
  const keys = joined(set.map(({ path, value }) => `${path}: ${value}`));
  const convert = set.every(({ convertible }) => convertible) ? ', or convert the checkpoint' : '';
  return `${shows}: set ${keys}${convert}.`;
}

/** `config inside the checkpoint says model.window_size: 1024, not 7`. */
export const configDifferenceText = ({ path, config, checkpoint }: ConfigDifference): string =>
  `config inside the checkpoint says ${path}: ${JSON.stringify(checkpoint)}, not ${JSON.stringify(config)}`;
