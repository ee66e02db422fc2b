/** Types of quantized weights in other spellings: bits, types of llama.cpp without their mixture, mixtures of others. */
import { parseDtype } from '../../../base/tensor/dtype.js';
import { nearestValue } from '../../foreign/spellings.js';
import type { DeclaredFlag } from '../flag-example.js';
import { isOtherMixture, nearType } from './names-in-path.js';

/** Types of llama-quantize by their numbers: ggml-org/llama.cpp include/llama.h, `llama_ftype`. */
const NUMBERED: Readonly<Record<number, string>> = {
  ...{ 0: 'f32', 1: 'f16', 2: 'q4_0', 3: 'q4_1', 7: 'q8_0', 8: 'q5_0', 9: 'q5_1', 10: 'q2_k' },
  ...{ 11: 'q3_k_s', 12: 'q3_k_m', 13: 'q3_k_l', 14: 'q4_k_s', 15: 'q4_k_m', 16: 'q5_k_s' },
  ...{ 17: 'q5_k_m', 18: 'q6_k', 19: 'iq2_xxs', 20: 'iq2_xs', 21: 'q2_k_s', 22: 'iq3_xs' },
  ...{ 23: 'iq3_xxs', 24: 'iq1_s', 25: 'iq4_nl', 26: 'iq3_s', 27: 'iq3_m', 28: 'iq2_s' },
  ...{ 29: 'iq2_m', 30: 'iq4_xs', 31: 'iq1_m', 32: 'bf16', 36: 'tq1_0', 37: 'tq2_0' },
};

/** The type of a number of llama-quantize. */
export const numberedType = (text: string): string | undefined =>
  /^\d{1,2}$/.test(text) ? NUMBERED[Number(text)] : undefined;

/** A number of bits, and what follows it: `5`, `5-bit`, `6bpw`, `4.0bpw`. */
const BITS = /^(\d+)(?:\.0)?[-_ ]?(?:bits?|bpw)?$/;

/** Bits of weights, without those of activations: `w4a16`, `int6`, `uint4`. */
const OF_WEIGHTS = /^(?:w(\d)a\d+|u?int(\d))$/;

/** Types in 4 bits with a table of values. */
const TABLES = /^(?:nf4|bnb|bitsandbytes)$/;

/** Usual mixtures of llama.cpp by their bits. */
const USUAL: Readonly<Record<string, string>> = {
  ...{ '2': 'q2_k', '3': 'q3_k_m', '4': 'int4', '5': 'q5_k_m', '6': 'q6_k', '8': 'int8' },
};

/** Usual mixtures with tables of codes. */
const USUAL_CODES: Readonly<Record<string, string>> = {
  ...{ iq1: 'iq1_m', iq2: 'iq2_m', iq3: 'iq3_m', iq4: 'iq4_xs' },
};

/** The type of this package that a spelling is nearest to; undefined for one of its own types, and for other words. */
function usualOf(text: string): string | undefined {
  const folded = text.toLowerCase().replaceAll('-', '_');
  const mixture = /^(?:ud_)?(i?q\d\w*)$/.exec(folded)?.[1] ?? folded;
  const bits = BITS.exec(folded)?.[1] ?? OF_WEIGHTS.exec(folded)?.slice(1).find(Boolean);
  if (bits !== undefined) return USUAL[bits] ?? numberedType(bits);
  if (TABLES.test(folded)) return 'int4';
  // Without the line between the parts of a name: q4km.
  const [, plain, letters = ''] = /^(q\d)(k[sml]?)$/.exec(mixture) ?? [];
  if (plain !== undefined) return nearType(`${plain}_${letters.split('').join('_')}`);
  const alone = /^q([2-8])$/.exec(mixture)?.[1];
  if (alone !== undefined) return USUAL[alone];
  if (isOtherMixture(mixture) || mixture !== folded) return nearType(mixture);
  return USUAL_CODES[mixture];
}

/** Types in files of safetensors, in a GGUF file. */
const IN_GGUF: Readonly<Record<string, string>> = { int4: 'q4_k_m', int8: 'q8_0' };

/** A value as the command calls it. */
interface QuantizedValue {
  readonly value: string;
  /** Remark on it: `q5 is counted as q5_k_m`. */
  readonly note: string;
}

/**
 * The type that a spelling of other tools means for a flag; undefined for a type of its own, and for one that the flag does
 * not take.
 * @param words The words of the line.
 */
export function quantizedValue(
  command: string,
  { name, options }: DeclaredFlag & { readonly options?: readonly string[] },
  text: string,
  words: readonly string[],
): QuantizedValue | undefined {
  if (!/^(?:dtype|quantize|weights)$/.test(name)) return undefined;
  // The command reads its own names.
  if (options === undefined && parseDtype(text) !== undefined) return undefined;
  const usual = usualOf(text);
  const isGguf = command === 'convert-checkpoint' && words.some((word) => /\.gguf$/i.test(word));
  const own = isGguf && name === 'dtype' ? (IN_GGUF[usual ?? ''] ?? usual) : usual;
  if (own === undefined || own === text.toLowerCase()) return undefined;
  const value = options === undefined ? own : nearestValue(name, own, options);
  if (value === undefined) return undefined;
  const verb = command === 'convert-checkpoint' ? 'written' : 'counted';
  return { value, note: `${text} is ${verb} as ${value}` };
}
