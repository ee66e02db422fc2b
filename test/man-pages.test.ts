import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { commandNames, inPackage, readJson } from './fixtures.js';

type Described = { readonly hidden?: boolean; readonly description?: string };
const { commands } = readJson<{
  commands: Record<string, { flags: Record<string, Described>; summary: string }>;
}>('oclif.manifest.json');

const page = (name: string) => fs.readFileSync(inPackage('dist/man', `${name}.1`), 'utf8');

/** Printed text of a page. */
const printed = (text: string) => text.replaceAll('\\-', '-').replaceAll('\\(aq', "'");

/** Allowed requests of a page. roff would drop any other line that begins with a dot or a quote. */
const REQUEST = /^\.(TH .+|SH [A-Z ]+|SS .+|TP|PP|br|nf|fi)$/;

describe('man pages', () => {
  const files = fs.readdirSync(inPackage('dist/man'));

  it('are listed in package.json, for a global installation', () => {
    const { man } = readJson<{ man: string[] }>('package.json');
    expect(man.toSorted()).toEqual(files.map((file) => `./dist/man/${file}`).toSorted());
  });

  it('name every command on the page of the program', () => {
    const program = page('minimind').replaceAll('\\', '');
    for (const name of commandNames()) {
      expect(program).toContain(`minimind-${name.replace(' ', '-')}`);
    }
  });

  it.each(commandNames())('have all flags of %s', (name) => {
    const text = printed(page(`minimind-${name.replace(' ', '-')}`));
    const { flags, summary } = commands[name.replace(' ', ':')] ?? { flags: {}, summary: '' };
    expect(text).toContain(`- ${summary.replace(/\.$/, '')}`);
    // The server has a protocol instead of an answer.
    expect(Object.keys(flags)).toContain(name === 'mcp' ? 'root' : 'json');
    for (const [flag, { hidden = false }] of Object.entries(flags)) {
      expect(new RegExp(`^\\\\fB(-\\w, )?--${flag}( |\\\\fR$)`, 'm').test(text), flag).toBe(
        !hidden,
      );
    }
  });

  it.each(files)('have no text that roff reads as a request: %s', (file) => {
    const lines = fs.readFileSync(inPackage('dist/man', file), 'utf8').trimEnd().split('\n');
    for (const line of lines) {
      if (/^[.']/.test(line)) expect(line).toMatch(REQUEST);
      expect(line.replace(/\\[-e]|\\\((aq|ga|ha|ti|dq)|\\f[BR]|\\&/g, '')).not.toContain('\\');
    }
  });
});
