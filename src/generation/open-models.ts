/** Models loaded for generation on one engine. */
import type { LanguageModel } from '../architecture/layer.js';
import { UserError } from '../errors.js';
import { Decoder } from '../runtime/decoder.js';
import type { Engine, EngineInfo, Program } from '../runtime/engine.js';
import { refuseWeightForm } from '../runtime/quantized-weights.js';
import type { EngineRequest } from '../runtime/select/devices.js';
import { chooseEngineFor } from '../runtime/select/devices.js';
import type { WeightSource } from '../runtime/weights.js';
import type { WeightForm } from '../tensor/group-quantization.js';
import { formatInteger } from '../text/units.js';
import { counted } from '../text/words.js';

export interface ModelToOpen {
  readonly model: LanguageModel;
  readonly weights: WeightSource;
  /** Quantization of the matrices; float32 when absent. */
  readonly form?: WeightForm | undefined;
}

/** Refuses models that do not fit into memory, before they are loaded. */
export type MemoryCheck = (
  models: readonly Pick<ModelToOpen, 'model' | 'form'>[],
  totalTokens: number,
  info: EngineInfo,
) => void;

export interface OpenModels {
  readonly info: EngineInfo;
  /** One decoder factory for each model, in order: a new sequence with each call. */
  readonly sequences: readonly (() => Decoder)[];
  close(): Promise<void>;
}

/**
 * Loads models for sequences of up to `totalTokens` tokens.
 * @throws UserError when no engine can run them.
 */
export async function openModels(
  models: readonly ModelToOpen[],
  totalTokens: number,
  wish: EngineRequest,
  notice: (text: string) => void,
  checkMemory: MemoryCheck,
): Promise<OpenModels> {
  const size = { batch: 1, tokens: totalTokens };
  const toRun = { models: models.map(({ model }) => model), ...size };
  const { engine } = await chooseEngineFor(toRun, wish, notice);
  const programs: Program[] = [];
  try {
    checkMemory(models, totalTokens, engine.info);
    for (const { model, weights, form } of models) {
      if (form) refuseWeightForm(engine.info);
      const options = { blocks: false, weightForm: form, decoding: { totalTokens } };
      programs.push(await engine.load(model, weights, options));
    }
  } catch (error) {
    await closeAll(engine, programs);
    throw error;
  }
  return {
    info: engine.info,
    sequences: programs.map((program) => () => new Decoder(program)),
    close: () => closeAll(engine, programs),
  };
}

async function closeAll(engine: Engine, programs: readonly Program[]): Promise<void> {
  for (const program of programs) await program.release();
  await engine.close();
}

export const vocabularyOf = ({ embedding }: LanguageModel): number =>
  embedding.weight.shape[0] ?? 0;

/**
 * Tokens that a sequence can have.
 * @param prompt Tokens of the longest prompt.
 * @param context Limit that the user gave.
 * @throws UserError when the model has fewer positions, or the prompt leaves no room for an answer.
 */
export function contextFor(
  { positions }: Pick<LanguageModel, 'positions'>,
  prompt: number,
  maxTokens: number,
  context: number | undefined,
): number {
  if (context !== undefined && context > positions) {
    throw new UserError(
      'usage',
      `--context: expected at most ${formatInteger(positions)} tokens, the positions of the model, found ${formatInteger(context)}`,
      { suggestion: `write --context ${positions}, or less` },
    );
  }
  const most = context ?? positions;
  if (prompt < most) return Math.min(most, prompt + maxTokens);
  const limit = context === undefined ? 'the positions of the model' : '--context';
  throw new UserError(
    'usage',
    `expected a prompt below ${counted(most, 'token')} (${limit}), found ${formatInteger(prompt)}`,
    {
      suggestion: 'give a shorter prompt',
    },
  );
}
