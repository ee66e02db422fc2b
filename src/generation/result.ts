/** Result of `generate`. */
import type { EngineInfo } from '../runtime/engine.js';
import type { WeightForm } from '../tensor/group-quantization.js';
import type { SamplingSettings } from './sampling.js';
import type { ReportedAnswer } from './session.js';

export interface GenerateResult {
  readonly schema: 'minimind/generate@1';
  readonly file: string;
  readonly family: string;
  readonly checkpoint: string | null;
  readonly weights: 'checkpoint' | 'random';
  /** Quantization of the matrices; null for float32. */
  readonly weightForm: WeightForm | null;
  readonly tokenizer: string | null;
  readonly chat: boolean;
  readonly engine: EngineInfo;
  readonly context: number;
  readonly sampling: SamplingSettings & {
    readonly seed: number;
    readonly maxTokens: number;
    /** Settings of generation_config.json that were used. */
    readonly fromFile: readonly string[];
  };
  readonly stop: { readonly ids: readonly number[]; readonly strings: readonly string[] };
  readonly loadMilliseconds: number;
  readonly answers: readonly ReportedAnswer[];
}
