/** Checks which flags of a line need each other, or exclude each other. */
import { joined } from '../../base/text/words.js';
import { type DeclaredFlag, exampleOf, isPlaceholder } from './flag-example.js';
import type { MeantLine } from './line-mistake.js';
import { withoutFlag } from './meant-lines.js';
import type { TypedLine } from './typed-line.js';

/** Names of flags of which a flag needs at least one. */
const alternativesOf = ({ relationships = [] }: DeclaredFlag): string[] =>
  relationships
    .filter(({ type }) => type === 'some')
    .flatMap(({ flags }) => flags.filter((each) => typeof each === 'string'));

export function checkRelations(typed: TypedLine): void {
  checkRequired(typed);
  refuseTypeOfTraining(typed);
  refuseServing(typed);
  refuseLoneEpochs(typed);
  for (const flag of typed.flags) {
    const { name } = flag;
    const at = typed.given.get(name);
    if (at === undefined) continue;
    const needed = flag.dependsOn?.find((each) => !typed.isSet(each));
    if (needed !== undefined) {
      throw typed.mistake(`--${name} requires --${needed}`, [
        ...leftOutOfTool(typed, flag, at),
        ...withoutPlaceholder(typed, flag, at, needed),
        typed.added(typed.command.flags[needed]),
      ]);
    }
    const choice = alternativesOf(flag);
    if (choice.length > 0 && !choice.some((each) => typed.isSet(each))) {
      const wanted = choice.map((each) => `--${each}`).join(' or ');
      throw typed.mistake(
        `--${name} requires ${wanted}`,
        choice.map((each) => typed.added(typed.command.flags[each])),
      );
    }
    const other = flag.exclusive?.find((each) => typeof each === 'string' && typed.given.has(each));
    if (typeof other === 'string') {
      const [place, declared] = [typed.given.get(other) ?? at, typed.command.flags[other] ?? flag];
      const both = [
        { flag, at },
        { flag: declared, at: place },
      ];
      // The flag that was written first is kept, and a dry run stays a dry run.
      const isKept = (each: (typeof both)[number]) => each.flag.name === 'dry-run';
      both.sort((a, b) => Number(isKept(a)) - Number(isKept(b)) || b.at - a.at);
      throw typed.mistake(
        `--${name} and --${other} cannot be used together`,
        both.map((each) => ({
          ...typed.corrected(each.at, [], typed.lengthOf(each.flag, each.at)),
          isShorter: true,
        })),
      );
    }
  }
}

/** The line of another tool without a flag that requires one whose value cannot be an example. */
function withoutPlaceholder(
  typed: TypedLine,
  flag: DeclaredFlag,
  at: number,
  needed: string,
): MeantLine[] {
  const declared = typed.command.flags[needed];
  if (!typed.isOfTool || declared === undefined || !isPlaceholder(exampleOf(declared))) return [];
  const written = `--${flag.name} ${givenValue(typed, flag.name)}`;
  const line = typed.corrected(at, [], typed.lengthOf(flag, at));
  return [{ ...line, leftOut: [`${written} requires --${needed}`] }];
}

/** The value of a flag of this command. */
function givenValue(typed: TypedLine, name: string): string | undefined {
  const at = typed.given.get(name);
  const [, inline] = typed.words[at ?? -1]?.split(/=(.*)/s) ?? [];
  return at === undefined ? undefined : (inline ?? typed.words[at + 1]);
}

/**
 * Refuses the type of a model that another tool trains: it is that of the frozen weights under adapters. Weights in 4 bits
 * have one, and so has a training of all weights, whose types are those of mixed precision.
 */
function refuseTypeOfTraining(typed: TypedLine): void {
  const [purpose, dtype] = ['for', 'dtype'].map((name) => givenValue(typed, name));
  const at = typed.given.get('dtype');
  const isTrained = typed.isOfTool && purpose !== undefined && purpose !== 'serving';
  if (!isTrained || at === undefined || !Object.hasOwn(typed.command.flags, 'base-dtype')) return;
  const flag = typed.command.flags.dtype as DeclaredFlag;
  const length = typed.lengthOf(flag, at);
  const isQuantized = !/16|32|half|float$|auto/i.test(dtype ?? '');
  const isOfBase = purpose === 'lora' || (purpose === 'qlora' && isQuantized);
  const isBase = isOfBase && !typed.given.has('base-dtype');
  const line = isBase
    ? typed.corrected(at, ['--base-dtype', dtype ?? ''], length)
    : {
        ...typed.corrected(at, [], length),
        leftOut: [`--dtype ${dtype} is the type of the ${isQuantized ? 'weights' : 'arithmetic'}`],
      };
  throw typed.mistake(`--dtype is a setting of serving, and --for ${purpose} excludes it`, [line]);
}

/** Settings of serving that programs of trainings have for what they generate on the way. */
const OF_SERVING: readonly string[] = [
  ...['output-tokens', 'prompt-tokens', 'users', 'eager', 'chunked-prefill'],
  ...['gpu-memory-utilization', 'cache-dtype'],
];

/** Refuses settings of serving of a model that another tool trains. */
function refuseServing(typed: TypedLine): void {
  const purpose = givenValue(typed, 'for');
  if (!typed.isOfTool || purpose === undefined || purpose === 'serving') return;
  const flag = typed.flags.find(({ name }) => OF_SERVING.includes(name) && typed.given.has(name));
  const at = typed.given.get(flag?.name ?? '');
  if (flag === undefined || at === undefined) return;
  const length = typed.lengthOf(flag, at);
  const written = typed.words.slice(at, at + length).join(' ');
  throw typed.mistake(`--${flag.name} is a setting of serving, and --for ${purpose} excludes it`, [
    { ...typed.corrected(at, [], length), leftOut: [`${written} is a setting of serving`] },
  ]);
}

/**
 * Refuses epochs of another tool without data that can be counted, whose tokens are an example, and with a number of steps,
 * which comes first there: huggingface/transformers TrainingArguments, `max_steps`.
 */
function refuseLoneEpochs(typed: TypedLine): void {
  const at = typed.given.get('epochs');
  const flag = typed.command.flags.epochs;
  if (!typed.isOfTool || at === undefined || flag === undefined) return;
  if (typed.given.has('steps')) {
    const line = typed.corrected(at, [], typed.lengthOf(flag, at));
    const leftOut = [`--epochs ${givenValue(typed, 'epochs')} is replaced by the steps`];
    throw typed.mistake('--epochs and --steps cannot be used together', [{ ...line, leftOut }]);
  }
  const isCounted = ['data', 'data-tokens', 'tokens'].some((name) => typed.given.has(name));
  if (isCounted || !Object.hasOwn(typed.command.flags, 'data-tokens')) return;
  const line = typed.lineOf([...typed.words, '--data-tokens', '1B']);
  throw typed.mistake('--epochs requires the number of tokens of the data', [
    { ...line, hasExample: true, leftOut: ['1B stands for the tokens of your data'] },
  ]);
}

/** The line of another tool without a flag that it has in another sense, which changes no answer here: `--threads`. */
function leftOutOfTool(typed: TypedLine, { name, type }: DeclaredFlag, at: number): MeantLine[] {
  if (!typed.isOfTool) return [];
  const [, value] = typed.words[at]?.split(/=(.*)/s) ?? [];
  const length = typed.lengthOf({ name, type } as DeclaredFlag, at);
  return typed.meanings
    .flagMeanings(name, typed.command.id)
    .filter((meaning) => meaning.name === '' || meaning.name === '<none>')
    .map((meaning) =>
      withoutFlag(typed, { at, name, value, written: `--${name}` }, meaning.name, length),
    );
}

function checkRequired(typed: TypedLine): void {
  if (typed.isPlanned) return;
  const missing = typed.flags.filter(({ required, name }) => required && !typed.given.has(name));
  if (missing.length === 0) return;
  const names = joined(missing.map(({ name }) => `--${name}`));
  throw typed.mistake(`${names} ${missing.length > 1 ? 'are' : 'is'} required`, [
    typed.added(...missing),
  ]);
}
