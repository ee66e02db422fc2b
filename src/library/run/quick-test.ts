/** `quick-test` as a function: runs a model and checks that it works. */
import type { QuickTestResult } from '../../check/quick-test-result.js';
import type { ChecksRequest } from '../../check/test-forms.js';
import { refuseHub } from '../../input/hub/needs-download.js';
import {
  checkpointAsConfig,
  checkpointWarnings,
  openFlaggedCheckpoint,
} from '../../input/model-input/checkpoint/checkpoint-config.js';
import { configFirst, configOf } from '../../input/model-input/checkpoint/required-config.js';
import { verifiedModel } from '../../input/model-input/checkpoint/verify-checkpoint.js';
import { locateModel } from '../../input/model-input/locate.js';
import { modelOf } from '../../input/model-input/model-file.js';
import { loadModelFile } from '../../input/model-input/read-model-file.js';
import { type AnswerNotes, withNotes } from '../answer.js';
import { checkOptions, type OptionKinds, requireReference } from '../arguments.js';
import { CONFIG_KINDS, overridesOf } from '../models/describe-model.js';
import { type HubOptions, mounted } from '../models/load-model.js';
import { silent } from '../warnings.js';
import { type EngineOptions, engineKinds, engineOf, SEED, WEIGHT_FORM } from './engine-options.js';
import type { WeightOptions } from './evaluate.js';

export interface QuickTestOptions
  extends Omit<WeightOptions, 'random'>,
    EngineOptions,
    Pick<HubOptions, 'offline'> {
  /** Names of the checks. Default: all that suit the model. */
  readonly only?: ChecksRequest['only'];
  /** Token ids, or a file with them. Default: random ids. */
  readonly ids?: string | undefined;
  /** Sequences at a time. Default: 1. */
  readonly batch?: number | undefined;
  /** Tokens of a sequence. Default: 512, or all positions. */
  readonly context?: number | undefined;
  /** Seed of random values. Default: 0. */
  readonly seed?: number | undefined;
  /** Quantization of the matrices. */
  readonly weights?: ChecksRequest['weightForm'];
  /** Whether a second engine computes the same logits. */
  readonly crossCheck?: boolean | undefined;
  /** Timed runs. Default: those of half a second. */
  readonly repeats?: number | undefined;
  /** Tokens to generate one by one. Default: 32, at most half of the context. */
  readonly outputTokens?: number | undefined;
  /** Whether a model larger than memory runs layer by layer, not as a smaller proxy. */
  readonly full?: boolean | undefined;
}

const QUICK_TEST_KINDS: OptionKinds<Omit<QuickTestOptions, keyof EngineOptions>> = {
  ...CONFIG_KINDS,
  checkpoint: 'text',
  stateDict: 'text',
  offline: 'flag',
  only: 'list',
  ids: 'text',
  batch: 'count',
  context: 'count',
  seed: SEED,
  weights: WEIGHT_FORM,
  crossCheck: 'flag',
  repeats: 'count',
  outputTokens: 'count',
  full: 'flag',
};

/**
 * Builds a model with random weights or those of a checkpoint, runs it and checks it.
 * @param reference A preset, a config, a checkpoint, or `hf:ORG/NAME`, of which the config is read and no weights are.
 * @throws UserError when the model cannot be read, or a setting has no effect.
 */
export async function quickTest(
  reference: string,
  options: QuickTestOptions = {},
): Promise<QuickTestResult & AnswerNotes> {
  requireReference(reference, 'quickTest');
  checkOptions('quickTest', options, { ...QUICK_TEST_KINDS, ...(await engineKinds()) });
  const flags = { ...options, set: overridesOf(options.set) };
  const { path, references } = await mounted(reference, 'config', options);
  refuseHub('quickTest with a checkpoint', options.checkpoint);
  const place = locateModel(path);
  const own = checkpointAsConfig(place, flags);
  const checkpoint = own ?? openFlaggedCheckpoint(flags);
  const surroundings = silent();
  try {
    const described = own
      ? await modelOf((await configOf(own, undefined, configFirst)).document, flags)
      : await loadModelFile(place, flags);
    await surroundings.warn(described.warnings);
    const held = checkpoint && (await verifiedModel(described, checkpoint, surroundings.display));
    if (held) await surroundings.warn([...checkpointWarnings(checkpoint), ...held.warnings]);
    const { checkModel } = await import('../../check/test-forms.js');
    const side = { loaded: held?.loaded ?? described, checkpoint };
    const { result } = await checkModel(side, requestOf(options), surroundings);
    return withNotes(result, { warnings: surroundings.warnings, references });
  } finally {
    checkpoint?.close();
  }
}

const requestOf = ({
  seed,
  weights,
  crossCheck = false,
  full = false,
  ...options
}: QuickTestOptions): ChecksRequest => ({
  ...{ ids: options.ids, batch: options.batch, context: options.context, seed: seed ?? 0 },
  ...engineOf(options, weights),
  isSeedGiven: seed !== undefined,
  only: options.only,
  isCrossChecked: crossCheck,
  repeats: options.repeats,
  outputTokens: options.outputTokens,
  full,
  keepsOutput: false,
  weightForm: weights,
});
