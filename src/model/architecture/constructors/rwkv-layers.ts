/** Constructors of the layers of RWKV-4, with the names of its class. */
import type { RwkvChannelMix, RwkvTimeMix } from '../layer.js';
import { param } from '../param.js';
import { linear } from './basic-layers.js';

const mixes = (name: string, hidden: number, leaves: readonly string[]) =>
  leaves.map((leaf) => param(`${name}.time_mix_${leaf}`, [1, 1, hidden]));

export function rwkvTimeMix(name: string, hidden: number, width: number): RwkvTimeMix {
  const product = (leaf: string, from: number, to: number) =>
    linear(`${name}.${leaf}`, from, to, { bias: false });
  return {
    kind: 'rwkvTimeMix',
    name,
    component: 'linearAttention',
    timeDecay: param(`${name}.time_decay`, [width]),
    timeFirst: param(`${name}.time_first`, [width]),
    mixes: mixes(name, hidden, ['key', 'value', 'receptance']),
    hidden,
    key: product('key', hidden, width),
    value: product('value', hidden, width),
    receptance: product('receptance', hidden, width),
    output: product('output', width, hidden),
  };
}

export function rwkvChannelMix(name: string, hidden: number, inner: number): RwkvChannelMix {
  const product = (leaf: string, from: number, to: number) =>
    linear(`${name}.${leaf}`, from, to, { bias: false });
  return {
    kind: 'rwkvChannelMix',
    name,
    component: 'feedForward',
    mixes: mixes(name, hidden, ['key', 'receptance']),
    hidden,
    key: product('key', hidden, inner),
    receptance: product('receptance', hidden, hidden),
    value: product('value', inner, hidden),
  };
}
