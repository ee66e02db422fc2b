/** Presets: the commented files in the package's configs folder, by name. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { FAMILY_NAMES } from '../architecture/families.js';
import { nearest } from '../config/nearest.js';
import { quote } from '../config/quote.js';
import { UserError } from '../errors.js';

export interface PresetFile {
  /** `hybrid/recommended`. */
  readonly preset: string;
  readonly family: string;
  readonly text: string;
}

/** Folder of the package's configs, from the sources as from any depth of the built files. */
function presetFolder(): string | undefined {
  let folder = path.dirname(fileURLToPath(import.meta.url));
  for (let depth = 0; depth < 4; depth++) {
    const configs = path.join(folder, 'configs');
    if (fs.existsSync(path.join(configs, 'hybrid'))) return configs;
    folder = path.dirname(folder);
  }
  return undefined;
}

/** Names of all presets with their families: `hybrid/original`. */
export function presetNames(): string[] {
  const folder = presetFolder();
  if (folder === undefined) return [];
  return FAMILY_NAMES.flatMap((family) => {
    const own = path.join(folder, family);
    if (!fs.existsSync(own)) return [];
    const files = fs.readdirSync(own).filter((name) => name.endsWith('.yaml'));
    return files.map((name) => `${family}/${path.basename(name, '.yaml')}`);
  });
}

const lastPart = (preset: string) => preset.slice(preset.indexOf('/') + 1);

const foldedName = (name: string) => name.trim().toLowerCase().replaceAll('_', '-');

/** Config files of the published report of the SRTE, and the presets with their models. */
const PUBLISHED_FILES: Readonly<Record<string, string>> = {
  'pretrain-optimized': 'hybrid/recommended',
  'pretrain-v1': 'hybrid/original',
};

/** Preset of a published file, by its name or path: `configs/pretrain_optimized.yaml`. */
export function publishedPreset(name: string): string | undefined {
  const file = path.basename(foldedName(name));
  const stem = file.replace(/\.ya?ml$/, '');
  return Object.hasOwn(PUBLISHED_FILES, stem) ? PUBLISHED_FILES[stem] : undefined;
}

/** Presets that a name in any case means, with or without the family. */
export function presetsNamed(name: string): string[] {
  const wanted = foldedName(publishedPreset(name) ?? name);
  return presetNames().filter((preset) =>
    [preset, lastPart(preset)].some((each) => foldedName(each) === wanted),
  );
}

/** File of the only preset of this name. */
export function presetPath(name: string): string | undefined {
  const isFile = /\.(?:ya?ml|json)$/i.test(name) && publishedPreset(name) === undefined;
  const [only, ...others] = isFile ? [] : presetsNamed(name);
  const folder = presetFolder();
  if (only === undefined || others.length > 0 || folder === undefined) return undefined;
  return path.join(folder, `${only}.yaml`);
}

/** Name of the preset whose file this is. */
export function presetOfPath(file: string): string | undefined {
  const folder = presetFolder();
  if (folder === undefined || !file.startsWith(folder + path.sep)) return undefined;
  return file.slice(folder.length + 1, -'.yaml'.length).replaceAll(path.sep, '/');
}

/** Advice for a name that is not one of a preset: a family is not. */
export function presetAdvice(name: string): string {
  const folded = name.toLowerCase();
  const family = FAMILY_NAMES.find((each) => each === folded);
  const example = presetNames().find((preset) => preset.startsWith(`${family}/`));
  if (example !== undefined) {
    return `${family} is a family: write one of its presets, as ${example}; minimind list ${family} shows them`;
  }
  const close = nearestPreset(name);
  return close ? `did you mean ${close}?` : 'minimind list shows the presets';
}

/** The preset with the most similar name, as short as it is unique. */
function nearestPreset(name: string): string | undefined {
  const presets = presetNames();
  const close = nearest(name, [...presets, ...presets.map(lastPart)]);
  if (close === undefined || close.includes('/')) return close;
  return presetsNamed(close).length === 1 ? close : presetsNamed(close)[0];
}

/**
 * @param name `hybrid/recommended`, or `recommended` when only one family has it; in any case.
 * @throws UserError when there is no such preset.
 */
export function readPresetFile(name: string): PresetFile {
  const found = presetsNamed(name);
  const [preset] = found;
  const file = presetPath(name);
  if (preset === undefined || file === undefined) {
    throw new UserError(
      'usage',
      preset === undefined
        ? `unknown preset ${quote(name)}`
        : `expected one preset, found ${found.length} of the name ${quote(name)}`,
      { suggestion: preset === undefined ? presetAdvice(name) : `write ${found.join(' or ')}` },
    );
  }
  const [family = ''] = preset.split('/');
  return { preset, family, text: withLocalSchema(fs.readFileSync(file, 'utf8'), family) };
}

/** Sets the schema's path: in docs for the package's presets, in the same folder for the user's file. */
function withLocalSchema(text: string, family: string): string {
  return text.replace(/^(# yaml-language-server: \$schema=).*$/m, `$1./${family}.schema.json`);
}
