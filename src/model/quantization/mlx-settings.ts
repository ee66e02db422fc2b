/** Settings of the quantization of MLX in a `config.json`: its key `quantization`, and since 2024 a copy of that. */
import { asNumber, asText, isRecord, ownValue } from '../../base/values.js';

export interface MlxSettings {
  readonly bits: number;
  /** Inputs per scale. */
  readonly group: number;
  /** Undefined for one that is not known. */
  readonly mode: string | undefined;
}

/** Bits and group size of modes whose config does not give them. mlx/nn/layers/quantized.py, _defaults_for_mode. */
const DEFAULTS: Readonly<Record<string, Pick<MlxSettings, 'bits' | 'group'>>> = {
  affine: { bits: 4, group: 64 },
  mxfp4: { bits: 4, group: 32 },
  nvfp4: { bits: 4, group: 16 },
  mxfp8: { bits: 8, group: 32 },
};

const isMlx = (value: unknown): boolean =>
  isRecord(value) &&
  value.quant_method === undefined &&
  ['bits', 'group_size', 'mode'].some((key) => Object.hasOwn(value, key));

interface Quantized {
  readonly quantization?: unknown;
  readonly quantization_config?: unknown;
}

/** Whether a config is of MLX: other programs name their method. */
export const isOfMlx = ({ quantization, quantization_config: copy }: Quantized): boolean =>
  isMlx(quantization) && (copy == null || isMlx(copy));

/** Settings of a module: its own, or those of the model; undefined without any. */
export function mlxSettings(config: Quantized, module: string): MlxSettings | undefined {
  const whole = [config.quantization, config.quantization_config].find(isMlx);
  if (!isRecord(whole)) return undefined;
  const own = ownValue(whole, module);
  const { mode = 'affine', bits, group_size: group } = isRecord(own) ? own : whole;
  const usual = ownValue(DEFAULTS, asText(mode));
  return {
    bits: asNumber(bits ?? usual?.bits),
    group: asNumber(group ?? usual?.group),
    mode: usual && asText(mode),
  };
}
