/** Explains a published number of FLOPs or MACs by those of a pass, a token, an answer and a training step. */

import { formatInteger } from '../../../base/text/units.js';
import type { PublishedOperations } from '../../../config/parse-published.js';
import type { LanguageModel } from '../../architecture/layer.js';
import type { Exact } from '../figure.js';
import { decodingFlopsOf, flopsByConvention, lastTokensFlopsOf } from '../flops.js';
import { parameterFigures } from '../parameters.js';
import type { ProfileSetting } from '../profile-model.js';
import type { Explanation, PublishedReport } from './explanations.js';
import { judged } from './explanations.js';

/** Contexts that publications use, in addition to the one of the profile. */
const CONTEXTS = [1, 512, 1024, 2048, 4096, 8192] as const;

/** Tries the operations of the profile's setting, of one sequence of other contexts, and usual rules. */
export function explainOperations(
  model: LanguageModel,
  published: PublishedOperations,
  { inference, training }: ProfileSetting,
): PublishedReport<bigint> {
  const { batch, context } = inference;
  const settings = [
    { batch, context, weight: 1 },
    ...[context, ...CONTEXTS]
      .filter((tokens) => tokens <= model.positions && (tokens !== context || batch > 1))
      .map((tokens) => ({ batch: 1, context: tokens, weight: 1.3 })),
  ];
  const passes = settings.flatMap(({ weight, ...setting }) =>
    Object.entries({
      ...flopsByConvention(
        model,
        { ...inference, ...setting },
        { ...training, ...setting, causal: false },
      ),
      ...rules(model, setting.batch * setting.context),
    }).flatMap(([name, value]) => ways(`${name}, ${sizeText(setting)}`, value, weight, published)),
  );
  const decoding = decodingFlopsOf(model, context);
  const answer = lastTokensFlopsOf(model, context);
  const others = [
    ...ways(
      `one token after ${formatInteger(context)} in the cache`,
      Number(decoding.perToken.value) + Number(decoding.scores.value),
      1.1,
      published,
    ),
    ...(answer
      ? [
          ...ways(answerText(answer, 'with a cache'), answer.cached, 1.2, published),
          ...ways(answerText(answer, 'without a cache'), answer.recomputed, 1.2, published),
        ]
      : []),
  ];
  return { unit: 'flops', difference: null, ...judged([...passes, ...others], published) };
}

const sizeText = ({ batch, context }: { readonly batch: number; readonly context: number }) =>
  `${batch === 1 ? '' : `${formatInteger(batch)} × `}${formatInteger(context)} ${batch * context === 1 ? 'token' : 'tokens'}`;

const answerText = (
  { prompt, generated }: { readonly prompt: number; readonly generated: number },
  how: string,
) => `${formatInteger(generated)} tokens after a prompt of ${formatInteger(prompt)}, ${how}`;

/** Two FLOPs for each parameter and token, and six in training (arXiv 2001.08361). */
function rules(model: LanguageModel, tokens: number): Record<string, Exact> {
  const each = BigInt(parameterFigures(model).total.value) * BigInt(tokens);
  return {
    'the rule 2 · parameters · tokens': 2n * each,
    'the rule 6 · parameters · tokens of a training step': 6n * each,
  };
}

/** FLOPs as they are, and their half where MACs are called FLOPs. */
function ways(
  name: string,
  value: Exact,
  weight: number,
  { isMacs }: PublishedOperations,
): Explanation<bigint>[] {
  const whole = { value: BigInt(value), reasons: [{ id: `flops: ${name}`, text: name, weight }] };
  const text = `${name}; MACs, called FLOPs`;
  const macs = { id: `macs: ${name}`, text, weight: weight + 0.4 };
  return isMacs ? [whole] : [whole, { value: BigInt(value) / 2n, reasons: [macs] }];
}
