import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import { readCommandLine } from '../../src/cli/line/command-line.js';
import type { DeclaredCommand } from '../../src/cli/line/typed-line.js';
import { commandNames, inPackage } from '../fixtures.js';

/** Placeholders for values of the user: files, models, texts, names. */
const OF_THE_USER =
  /^(?:FILE(?:,FILE)?|PATH|DIR|OTHER|ORIGINAL|MODEL|TEXT|TEACHER|IMAGE|KEY|NAME(?:,NAME)?|COLUMN|NAME\|FILE|GLOB)$/;

interface Option {
  readonly name: string;
  readonly type: string;
  readonly helpValue?: string;
  readonly options?: readonly string[];
  readonly delimiter?: string;
  readonly parse: (text: string, context: object, flag: object) => Promise<unknown>;
}

/** Value in the suggestion for a flag without one. */
function suggestedValue(command: DeclaredCommand, { name }: Option): string {
  try {
    readCommandLine([`--${name}`], { ...command, args: {} }, []);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const [, value = ''] = new RegExp(`--${name} (.+)$`).exec(error.suggestion ?? '') ?? [];
    return value.replaceAll("'", '');
  }
  throw new Error(`--${name} requires no value`);
}

describe('a flag without a value', () => {
  it.each(commandNames())('of %s gets a suggestion with a valid value', async (id) => {
    const file = inPackage('src/commands', `${id.replace(' ', '/')}.ts`);
    const { default: command } = await import(file);
    const flags = { ...command.baseFlags, ...command.flags };
    const named = Object.entries(flags).map(([name, flag]) => ({ ...(flag as Option), name }));
    const declared = {
      ...command,
      id,
      flags: Object.fromEntries(named.map((each) => [each.name, each])),
    };
    for (const flag of named.filter(({ type }) => type === 'option')) {
      const value = suggestedValue(declared, flag);
      if (OF_THE_USER.test(value)) continue;
      expect(value, `--${flag.name}`).toMatch(/[a-z0-9]/);
      const items = flag.delimiter ? value.split(flag.delimiter) : [value];
      for (const item of items) {
        if (flag.options) expect(flag.options).toContain(item);
        else {
          const context = { notes: [] };
          await expect(
            flag.parse(item, context, flag),
            `--${flag.name} ${item}`,
          ).resolves.toBeDefined();
        }
      }
    }
  });
});
