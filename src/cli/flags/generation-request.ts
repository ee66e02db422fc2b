/** Converts the flags of `minimind generate` to a request: the prompts, the settings and the models of a generation. */
import { UserError, usageError } from '../../base/errors.js';
import type { GivenScoresRequest } from '../../language/generation/given-distribution.js';
import type { GenerationRequest } from '../../language/generation/open-generation.js';
import type { PromptSource } from '../../language/generation/prompts.js';
import { engineOf } from '../../library/run/engine-options.js';
import { DEFAULT_DRAFT_TOKENS } from '../../library/run/generate.js';
import { formatOf } from '../base-command.js';
import { isStdout } from '../output.js';
import { baseFlags } from './flags.js';
import type { GenerationFlags } from './generation-flags.js';

/** Number of first tokens whose sampling `--explain-sampling` shows. */
const EXPLAINED_TOKENS = 3;

/** Maximum bytes of a prompt, more than any model reads. */
const MAX_PROMPT_BYTES = 16_000_000;

interface GenerationArgs {
  readonly model?: string | undefined;
  readonly prompt?: string | undefined;
}

/**
 * Source of the prompts; undefined without one.
 * @throws UserError with several.
 */
export function promptSource(
  { model, prompt }: GenerationArgs,
  { ids, batch, ...flags }: GenerationFlags,
): PromptSource | undefined {
  const given = [prompt, ids, batch].filter((each) => each !== undefined);
  if (given.length > 1) {
    throw usageError(
      'expected one of a prompt, --ids and --batch, found several',
      'leave all but one out',
    );
  }
  if (ids !== undefined) return { kind: 'ids', ids };
  if (batch !== undefined) return { kind: 'batch', file: batch };
  if (prompt === '-' && model === '-') {
    throw usageError('standard input cannot be read twice', 'name a file for the model');
  }
  if (prompt !== undefined)
    return prompt === '-' ? { kind: 'stdin', read: stdinText } : { kind: 'text', text: prompt };
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const isTalk = isTerminal && formatOf(flags) === 'table' && isStdout(flags.output);
  return isTalk ? { kind: 'talk' } : undefined;
}

async function stdinText(): Promise<string> {
  const { readStreamAtMost } = await import('../../base/files/read-file.js');
  const bytes = await readStreamAtMost(process.stdin, MAX_PROMPT_BYTES);
  if (bytes) return bytes.toString('utf8').replace(/\r?\n$/, '');
  throw new UserError(
    'refused-file',
    `standard input is larger than ${MAX_PROMPT_BYTES / 1e6} MB`,
    { suggestion: 'give a shorter prompt' },
  );
}

export const generationRequest = (
  source: PromptSource,
  flags: GenerationFlags,
): GenerationRequest => ({
  source,
  isChat: flags.chat === true,
  system: flags.system,
  tokenizer: flags.tokenizer,
  settings: givenSettings(flags),
  context: flags.context,
  stops: flags.stop ?? [],
  seed: flags.seed,
  weightForm: flags.weights,
  cacheType: flags['cache-dtype'],
  topLogprobs: flags.logprobs ?? 0,
  explained: flags['explain-sampling'] ? EXPLAINED_TOKENS : 0,
  draft: flags.draft,
  draftTokens: flags['draft-tokens'] ?? DEFAULT_DRAFT_TOKENS,
  against: flags.against,
  wish: engineOf(flags, flags.weights),
});

const givenSettings = (flags: GenerationFlags) => ({
  temperature: flags.greedy || flags.against !== undefined ? 0 : flags.temperature,
  topK: flags['top-k'],
  topP: flags['top-p'],
  minP: flags['min-p'],
  repetitionPenalty: flags['repetition-penalty'],
  maxTokens: flags['max-tokens'],
});

/** Flags that apply to given scores: settings of sampling, and those of the answer. */
const OF_SCORES = new Set([
  ...['logits', 'probabilities', 'ids', 'temperature', 'top-k', 'top-p', 'min-p'],
  ...['repetition-penalty', 'greedy', ...Object.keys(baseFlags)],
]);

/**
 * The given scores and their sampling; undefined if a model computes the scores.
 * @throws UserError for a model, or a flag of one, together with given scores.
 */
export function scoresRequest(
  { model }: GenerationArgs,
  flags: GenerationFlags,
  metadata: {
    readonly flags: Readonly<Record<string, { readonly setFromDefault?: boolean } | undefined>>;
  },
): GivenScoresRequest | undefined {
  if (!hasScores(flags)) return undefined;
  const flag = Object.keys(flags).find(
    (name) => !OF_SCORES.has(name) && metadata.flags[name]?.setFromDefault !== true,
  );
  if (model !== undefined || flag !== undefined) {
    throw usageError(
      `${flag === undefined ? 'a model' : `--${flag}`} has no effect on given logits or probabilities`,
      'leave it out, or leave --logits and --probabilities out',
    );
  }
  const { logits, probabilities = '', ids } = flags;
  return {
    from: logits === undefined ? 'probabilities' : 'logits',
    text: logits ?? probabilities,
    settings: givenSettings(flags),
    ids,
  };
}

export const hasScores = ({
  logits,
  probabilities,
}: Pick<GenerationFlags, 'logits' | 'probabilities'>): boolean =>
  logits !== undefined || probabilities !== undefined;

/** Whether a flag requests a table in addition to the text of the answer. */
export const hasTables = (flags: GenerationFlags): boolean =>
  flags['explain-sampling'] ||
  flags.logprobs !== undefined ||
  flags.draft !== undefined ||
  flags.against !== undefined;
