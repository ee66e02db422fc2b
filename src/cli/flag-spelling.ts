/** Settings and commands as the command line writes them. */
import {
  type CommandName,
  type SettingName,
  type Spelling,
  useSpelling,
} from '../base/text/setting.js';
import { shellWord } from '../base/text/shell-words.js';
import { COMMAND_WORDS, OWN_FLAGS, SETTING_FLAGS } from './setting-flags.js';

/**
 * Writes settings in all later texts as flags.
 * @param id Name of the command that runs, as `kv-projector:init`; some settings have a flag of their own there.
 */
export function spellAsFlags(id?: string): void {
  const words = id?.replaceAll(':', ' ');
  const names = Object.keys(COMMAND_WORDS) as CommandName[];
  useSpelling(flagSpelling(names.find((name) => COMMAND_WORDS[name] === words)));
}

function flagSpelling(running: CommandName | undefined): Spelling {
  const flagOf = (name: SettingName, command = running) =>
    `--${(command && OWN_FLAGS[command]?.[name]) ?? SETTING_FLAGS[name]}`;
  return {
    setting: (name, value, command) => [
      flagOf(name, command),
      ...(value === undefined ? [] : [value]),
    ],
    command: (name) => ['minimind', ...COMMAND_WORDS[name].split(' ')],
    line: (words) => words.map(shellWord).join(' '),
    without: (words, names) =>
      withoutFlags(
        words,
        names.map((name) => flagOf(name)),
      ),
  };
}

/** Flags of the output, and whether they have a value. */
const OUTPUT_FLAGS = {
  '--check': false,
  '--details': false,
  '--explain': false,
  '--json': false,
  '--force': false,
  '--sequence-parallel': false,
  '--format': true,
  '--output': true,
  '-o': true,
} as const satisfies Record<string, boolean>;

/** `argv` without some flags that have values, and without the flags of the output. */
export function withoutFlags(argv: readonly string[], names: readonly string[]): string[] {
  const hasValue = new Map<string, boolean>([
    ...names.map((name) => [name, true] as const),
    ...Object.entries(OUTPUT_FLAGS),
  ]);
  const kept: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? '';
    const [name = ''] = word.split('=');
    const value = hasValue.get(name);
    if (value === undefined) kept.push(word);
    else if (value && !word.includes('=')) index++;
  }
  return kept;
}
