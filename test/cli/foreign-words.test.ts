import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type FlagRow, SOURCES } from '../../src/cli/foreign/flags/flag-row.js';
import { OF_A_STORE, VERBS } from '../../src/cli/foreign/foreign-commands.js';
import { FLAGS } from '../../src/cli/foreign/foreign-flags.js';
import { foldedName } from '../../src/cli/foreign/spellings.js';
import { readCommandLine } from '../../src/cli/line/command-line.js';
import { exampleOf } from '../../src/cli/line/flag-example.js';
import { LineMistake, type MeantLine } from '../../src/cli/line/line-mistake.js';
import * as meanings from '../../src/cli/line/other-tools/tool-meanings.js';
import type { DeclaredCommand } from '../../src/cli/line/typed-line.js';
import { inPackage } from '../fixtures.js';

const COMMANDS: readonly DeclaredCommand[] = Object.values(
  JSON.parse(fs.readFileSync(inPackage('oclif.manifest.json'), 'utf8')).commands,
);

/** Commands in which a word is tried, the usual ones first. */
const USUAL = [
  'fit',
  'train-plan',
  'profile',
  'generate',
  'evaluate',
  'convert-checkpoint',
  'list',
];

const IN_ORDER = [
  ...USUAL.flatMap((id) => COMMANDS.filter((each) => each.id === id)),
  ...COMMANDS.filter(({ id }) => !USUAL.includes(id)),
];

/** Arguments of a line. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  'convert-checkpoint': ['in.pt', 'out.pt'],
  'kv-projector:project': ['in.pt', 'kv.pt'],
  // A line with adapters and a schedule keeps its command.
  'train-plan': ['--steps', '10'],
};

/** Values that patterns of the table match. */
const MATCHING: readonly string[] = [
  ...['ds_zero1.json', 'ds_zero2.json', 'ds_zero3.json', 'ds_zero0.json', '33', 'cuda:0', 'sft'],
  ...['full_shard auto_wrap', './cache', 'exps=CPU', 'adamw', 'lora', 'full'],
  ...['bf16', 'safetensors', 'chatml', 'gpt2-xl', 'resume', 'int8', 'int4', 'fp16', 'fp32'],
  ...['q4', 'q8', 'nf4', '24GB', '8M', '1,2,3', 'a.csv', 'key=value', 'gpu', 'directml', 'coreml'],
  ...['webgpu', 'tfjs', 'onnx', 'awq', '0.7'],
];

interface Name {
  readonly name: string;
  /** Value after the name; undefined for none, '' for any. */
  readonly condition: string | undefined;
}

const namesIn = (spellings: string): Name[] =>
  spellings.split(',').map((each) => {
    const [name = '', condition] = each.split(/=(.*)/s);
    return { name, condition };
  });

/** The value of a condition in the table. */
function conditionValue(condition: string): string {
  if (!condition.startsWith('~')) return condition;
  const pattern = new RegExp(condition.slice(1), 'i');
  const value = MATCHING.find((each) => pattern.test(each));
  if (value === undefined) throw new Error(`no value for ${condition}`);
  return value;
}

const has = (command: DeclaredCommand, name: string): boolean =>
  Object.values(command.flags).some(
    (flag) => foldedName(flag.name) === foldedName(name) || flag.char === name,
  );

const FIRST_ARGUMENTS: Readonly<Record<string, string>> = {
  '<model>': 'profile',
  '<in>': 'convert-checkpoint',
  '<out>': 'convert-checkpoint',
  '<prompt>': 'generate',
  '<data>': 'data',
  '<pattern>': 'list',
  '<each>': 'evaluate',
  '<hub>': 'fit',
  '<shown>': 'profile',
};

const VALUES_OF: Readonly<Record<string, readonly string[]>> = {
  '<each>': ['text=file.txt,context=4'],
  '<hub>': ['org/name'],
  '<shown>': [],
  '<of-gpu>': [],
};

/** Commands in which a name has a meaning. */
function commandsFor(meaning: string, name: string): DeclaredCommand[] {
  const [sized = '', only] = meaning.split('@');
  const flag = sized.split(/[=*/]/)[0] ?? '';
  const wanted = FIRST_ARGUMENTS[flag];
  return IN_ORDER.filter((command) => {
    if (has(command, name)) return false;
    if (only !== undefined) return only.split('|').includes(command.id);
    if (wanted !== undefined) return command.id === wanted;
    return flag === '' || flag === '<none>' || has(command, flag);
  });
}

/** The command of a meaning `>plan --max-params`. */
const otherCommand = (meaning: string): DeclaredCommand | undefined =>
  COMMANDS.find(({ id }) => id === /^>([\w-]+)/.exec(meaning)?.[1]);

/** Values for a name of a row. */
function valuesFor([meaning]: FlagRow, { condition }: Name, command: DeclaredCommand): string[] {
  const [sized = ''] = meaning.split('@');
  const [flag = '', implied] = sized.split('=');
  const isArgument = flag.startsWith('<') && flag !== '<none>';
  const isKey = isArgument && !condition?.startsWith('~');
  if (condition) return [isKey ? `${condition}=file.pt` : conditionValue(condition)];
  if (flag.startsWith('>')) {
    const target = otherCommand(flag);
    const last = target?.flags[flag.split(' --').at(-1) ?? ''];
    return last?.type === 'boolean' ? [] : [last === undefined ? 'file.yaml' : '8'];
  }
  if (flag in VALUES_OF) return [...(VALUES_OF[flag] ?? [])];
  if (flag === '' || flag === '<none>') return condition === '' ? ['word'] : [];
  if (flag.startsWith('<')) return ['file.pt'];
  const declared = command.flags[flag.split(/[*/]/)[0] ?? ''];
  if (declared === undefined || implied !== undefined || declared.type === 'boolean') return [];
  const example = exampleOf(declared);
  if (/[*/]/.test(flag)) return ['2'];
  return [/^[A-Z]+$/.test(example) ? 'file.txt' : example];
}

function linesFor(words: readonly string[], command: DeclaredCommand): readonly MeantLine[] {
  try {
    readCommandLine(words, command, COMMANDS, meanings);
  } catch (error) {
    if (error instanceof LineMistake) return error.lines;
    throw error;
  }
  return [];
}

/** Conditions on other flags, which a line of one flag does not meet. */
const OF_OTHER_FLAGS = /requires|cannot be used together|required|^expected [A-Z]/;

/** Whether the words of a line are words of its command. */
function isRead({ words }: MeantLine, typed: DeclaredCommand): boolean {
  const command = COMMANDS.find(({ id }) => id === words[0]) ?? typed;
  const length = command.id.split(':').length;
  try {
    readCommandLine(words.slice(length), command, COMMANDS, meanings);
    return true;
  } catch (error) {
    return error instanceof Error && OF_OTHER_FLAGS.test(error.message);
  }
}

/** Whether a line has the flag of a row, or leaves the word out. */
function isMeant(line: MeantLine, meaning: string): boolean {
  const [sized = ''] = meaning.split('@');
  const [flag = '', implied] = sized.split('=');
  const name = flag.split(/[*/]/)[0] ?? '';
  if (name === '' || name === '<none>') return (line.leftOut ?? []).length > 0;
  if (name === '<each>') return ['--text', '--context'].every((each) => line.words.includes(each));
  if (name.startsWith('>')) {
    const [command, ...flags] = name.slice(1).split(' ');
    return line.words[0] === command && flags.every((each) => line.words.includes(each));
  }
  if (name === '<of-gpu>') return line.words.includes('--gpu');
  if (name.startsWith('<')) {
    const own = Object.values(ARGUMENTS).flat();
    return line.words.every((word) => !word.startsWith('--') || own.includes(word));
  }
  const at = line.words.indexOf(`--${name}`);
  return at >= 0 && (implied === undefined || line.words[at + 1] === implied);
}

/** Whether a command has the value of a meaning: `for=lora`. */
function isChoice(meaning: string): boolean {
  const [flag = '', value] = meaning.split('=');
  const declared = COMMANDS.flatMap(({ flags }) => flags[flag] ?? []);
  const options = declared.map((each) => (each as { options?: readonly string[] }).options);
  return value === undefined || options.some((each) => each === undefined || each.includes(value));
}

/** Flags that the value of a row is multiplied or divided by. */
const FACTORS: Readonly<Record<string, readonly string[]>> = {
  context: ['--context', '128'],
  batch: ['--batch', '1'],
  tokens: ['--context', '1'],
};

/** The fault of a name in a row; undefined for one that is understood. */
function fault(row: FlagRow, name: Name): string | undefined {
  const [meaning] = row;
  if (!isChoice(meaning)) return undefined;
  const written = name.name.length > 1 ? `--${name.name}` : `-${name.name}`;
  const tried = commandsFor(meaning, name.name);
  const isUnderstood = tried.some((command) => {
    const isArgument = meaning.startsWith('<') && !/^<(?:none|shown|of-gpu)/.test(meaning);
    const isOfOther = Object.keys(otherCommand(meaning)?.args ?? { file: 1 }).length === 0;
    const hasNone = isArgument || isOfOther || Object.keys(command.args).length === 0;
    const own = hasNone ? [] : (ARGUMENTS[command.id] ?? ['file.yaml']);
    const factor = /[*/](context|batch|tokens)/.exec(meaning)?.[1] ?? '';
    const counted = FACTORS[factor] ?? [];
    const given = meaning === '<out>' ? ['in.pt'] : meaning === '<prompt>' ? ['model'] : own;
    const words = [...given, ...counted, written, ...valuesFor(row, name, command)];
    return linesFor(words, command).some((line) => isMeant(line, meaning) && isRead(line, command));
  });
  // A name that all these commands have is a word of ours with a value of another kind.
  return isUnderstood || tried.length === 0
    ? undefined
    : `${written} (${tried.slice(0, 3).map(({ id }) => id)})`;
}

describe('a row of the table of flags', () => {
  it.each(FLAGS.map((row, at) => [at, row[0], row] as const))(
    'is understood in a line of its command: %i, %j',
    (_, meaning, row) => {
      expect(commandsFor(meaning, '').length).toBeGreaterThan(0);
      const faults = namesIn(row[1]).flatMap((name) => fault(row, name) ?? []);
      expect(faults).toEqual([]);
    },
  );

  it('names a source', () => {
    for (const [, , sources] of [...FLAGS, ...VERBS]) {
      expect(sources.length).toBeGreaterThan(0);
      for (const source of sources) expect(SOURCES).toHaveProperty([source]);
    }
  });
});

describe('a row of the table of commands', () => {
  it.each(VERBS)('is a line of a command: %j', (templates, words) => {
    for (const word of words.split(',')) {
      const [first = '', ...rest] = word.split(' ');
      const lines = meanings.verbLines(first, {
        words: [...rest, 'a', 'b.onnx', 'c', '--gpu=h100', '--model=m', '--lora=l'],
        isSwitch: () => true,
        isCommand: () => false,
      });
      const commands = lines.map(([command]) => command);
      expect(commands.length, word).toBeGreaterThan(0);
      for (const template of templates) {
        const [command = ''] = template.replace(/^\?\w+ /, '').split(' ');
        const known =
          COMMANDS.some(({ id }) => id === command) || /^--(?:version|help)$/.test(command);
        expect(known, template).toBe(true);
      }
      expect(templates.map((each) => each.replace(/^\?\w+ /, '').split(' ')[0])).toEqual(
        expect.arrayContaining([commands[0]]),
      );
    }
  });

  it.each([...OF_A_STORE])('has no store of models: %s', (word) => {
    expect(meanings.commandAdvice(word, ['model'])).toMatch(/no store/);
  });
});
