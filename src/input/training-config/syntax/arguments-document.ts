/** Arguments of Megatron-LM as a document: those of a shell script, of a line of arguments, or of a YAML file. */
import { UserError } from '../../../base/errors.js';
import { isRecord } from '../../../base/values.js';
import { ConfigDocument } from '../../../config/document.js';
import type { LocatedFinding } from '../../../config/document-problems.js';
import { escapeText, quote } from '../../../config/quote.js';
import { type LocatedValue, TextSource } from '../../../config/source.js';
import {
  dividedAtBlanks,
  resolveScript,
  type ShellScript,
  type ShellWord,
} from './shell-values.js';
import { ScriptLimit } from './shell-words.js';

/** Words of a script that could be of Megatron. */
const MARK = /--(?:num-layers|micro-batch-size|tensor-model-parallel-size|seq-length)\b/;

/** Whether a text could be a script of Megatron, before it is read. */
export const hasArguments = (text: string): boolean => MARK.test(text);

/**
 * Reads a script without running it.
 * @throws UserError `refused-file` for a script beyond the limits.
 */
export function parseArguments(text: string, file: string): ConfigDocument {
  const source = new TextSource(file, text);
  let script: ShellScript;
  try {
    script = resolveScript(source.text);
  } catch (cause) {
    if (!(cause instanceof ScriptLimit)) throw cause;
    throw new UserError('refused-file', `${escapeText(file)} has more words than a launch script`, {
      suggestion: 'write its arguments into a file, one line of them',
      cause,
    });
  }
  const words = trainingWords(script);
  const found: LocatedFinding[] = [];
  const parts = new Map<string, LocatedValue>();
  let at = 0;
  while (at < words.length) {
    const word = words[at++] as ShellWord;
    const flag = /^--([A-Za-z][\w-]*)(?:=(.*))?$/s.exec(word.text);
    if (flag === null) continue;
    const [, name = '', inline] = flag;
    const values: ShellWord[] = [];
    // A word after a flag is its value, also a negative number.
    while (inline === undefined && at < words.length && !isNext(words[at]?.text ?? '')) {
      values.push(words[at++] as ShellWord);
    }
    const key = name.replaceAll('_', '-');
    const texts = inline === undefined ? values.map((each) => each.text) : [inline];
    const place = { source, offset: word.offset };
    const unknown = texts.find((each) => /\$[\w({@*#]/.test(each));
    if (unknown !== undefined) {
      found.push({
        severity: 'warning',
        place,
        path: [key],
        finding: {
          message: `${quote(unknown)} is not known: the script is read, not run`,
          suggestion: 'write the value, or set the variable in the script',
        },
      });
      // Kept as a key, so that the check of names covers it.
      parts.set(key, { value: undefined, place, key: place, flaw: 'wrong' });
      continue;
    }
    const value =
      texts.length === 0 ? true : argumentValue(texts.length === 1 ? (texts[0] ?? '') : texts);
    parts.set(key, { value, place, key: place });
  }
  for (const { text: condition, offset } of script.assumed) {
    found.push({
      severity: 'warning',
      place: { source, offset },
      finding: {
        message: `the condition ${quote(condition)} is taken as true: the script is read, not run`,
      },
    });
  }
  const value = Object.fromEntries([...parts].map(([key, part]) => [key, part.value]));
  return new ConfigDocument(file, { value, place: { source, offset: 0 }, parts }, found);
}

/** Whether a word is no value: the next flag, or the script that a launcher starts. */
const isNext = (text: string): boolean => /^--?[A-Za-z]/.test(text) || /\.py$/.test(text);

/** Numbers as numbers; other texts as they are. */
function argumentValue(value: string | readonly string[]): unknown {
  if (typeof value !== 'string') return value;
  return /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/.test(value) ? Number(value) : value;
}

/** The words of the command that trains; without one, all flags of assigned values, as in a file of settings. */
function trainingWords({ commands, assigned }: ShellScript): readonly ShellWord[] {
  const divided = commands.map((words) => words.flatMap(dividedFlags));
  const flags = (words: readonly ShellWord[]) =>
    words.filter(({ text }) => text.startsWith('--')).length;
  const command = divided
    .filter((words) => words.some(({ text }) => MARK.test(text)))
    .sort((a, b) => flags(b) - flags(a))[0];
  // A line of arguments is read as a command too.
  return command ?? assigned.flatMap(dividedAtBlanks);
}

/** `"--fp8-format hybrid"` in quotes is two words for the script that uses it without quotes. */
const dividedFlags = (word: ShellWord): ShellWord[] =>
  /^--[\w-]+\s/.test(word.text) ? dividedAtBlanks(word) : [word];

/** Sections of YAML files with arguments: `MODEL_ARGS` of its tests, those of `--yaml-cfg`. */
const SECTIONS = [
  'MODEL_ARGS',
  'model_args',
  'ARGS',
  'args',
  'language_model',
  'model_parallel',
  'TRAINING_ARGS',
];

/** A YAML file with arguments in Megatron's names, as one mapping; undefined for another file. */
export function argumentsOfMapping(document: ConfigDocument): ConfigDocument | undefined {
  const { root } = document;
  const sections = SECTIONS.filter((name) => isRecord(document.value[name]));
  const isFlat =
    Object.keys(document.value).some((key) => /^(?:--)?num[-_]layers$/.test(key)) &&
    Object.keys(document.value).some((key) =>
      /^(?:--)?(?:micro[-_]batch[-_]size|seq[-_]length)$/.test(key),
    );
  if (sections.length === 0 && !isFlat) return undefined;
  const parts = new Map<string, LocatedValue>();
  const add = (from: LocatedValue | undefined) => {
    for (const [name, part] of from?.parts ?? []) {
      if (SECTIONS.includes(name) && isRecord(part.value)) continue;
      const key = name.replace(/^--/, '').replaceAll('_', '-');
      if (part.value !== null && !isRecord(part.value)) parts.set(key, part);
    }
  };
  if (isFlat || sections.includes('language_model')) add(root);
  for (const name of sections) add(root.parts?.get(name));
  if (!['num-layers', 'hidden-size', 'micro-batch-size'].some((key) => parts.has(key)))
    return undefined;
  const value = Object.fromEntries([...parts].map(([key, part]) => [key, part.value]));
  return new ConfigDocument(document.file, { ...root, value, parts }, document.found);
}
