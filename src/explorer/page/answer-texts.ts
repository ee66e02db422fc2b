/** The answers as texts, for the console of the browser: `await explorer.answers({ name, text }, { context: 8192 })`. */
import { toJson } from '../../base/text/escape.js';
import { fitAnswer, modelAnswers } from '../answers.js';
import type { ExploredModel, ExplorerSetting } from '../explorer-state.js';

/** JSON output of each command; undefined where the model is invalid. */
export interface AnswerTexts {
  readonly validate: string;
  readonly profile: string | undefined;
  readonly fit: string | undefined;
}

export async function answerTexts(
  model: ExploredModel,
  setting: ExplorerSetting = {},
): Promise<AnswerTexts> {
  const { validation, profile } = await modelAnswers(model, setting);
  const fit = await fitAnswer(model, setting);
  return {
    validate: toJson(validation),
    profile: profile && toJson(profile),
    fit: fit && toJson(fit),
  };
}
