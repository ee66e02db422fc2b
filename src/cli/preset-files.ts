import fs from 'node:fs';
import path from 'node:path';
import { FAMILY_NAMES, loadFamily } from '../architecture/families.js';
import { nearest } from '../config/nearest.js';
import { quote } from '../config/quote.js';
import { UserError } from '../errors.js';

/** The commented file of a preset, as it stands in the package's configs folder. */
export interface PresetFile {
  /** `hybrid/recommended`. */
  readonly preset: string;
  readonly family: string;
  readonly text: string;
}

/**
 * @param root Folder of the package.
 * @param name `hybrid/recommended`, or `recommended` when only one family has it.
 * @throws UserError when there is no such preset.
 */
export async function readPresetFile(root: string, name: string): Promise<PresetFile> {
  const presets: { family: string; preset: string }[] = [];
  for (const family of FAMILY_NAMES) {
    const { presets: own } = await loadFamily(family);
    presets.push(...Object.keys(own).map((preset) => ({ family, preset })));
  }
  const full = ({ family, preset }: (typeof presets)[number]) => `${family}/${preset}`;
  const found = presets.filter((entry) => full(entry) === name || entry.preset === name);
  const [only] = found;
  if (!only || found.length > 1) {
    const names = presets.map(full);
    const close = nearest(name, [...names, ...presets.map(({ preset }) => preset)]);
    const [problem, choices] = only
      ? ['stands in several families', found.map(full).join(', ')]
      : ['is no preset', close ?? 'one that minimind list shows'];
    throw new UserError('usage', `${quote(name)} ${problem}`, {
      suggestion: `write ${choices}`,
    });
  }
  const text = fs.readFileSync(path.join(root, 'configs', `${full(only)}.yaml`), 'utf8');
  return { preset: full(only), family: only.family, text: withLocalSchema(text, only.family) };
}

/** In the package the schema stands in docs; a user's own file has it beside itself. */
function withLocalSchema(text: string, family: string): string {
  return text.replace(/^(# yaml-language-server: \$schema=).*$/m, `$1./${family}.schema.json`);
}
