/** Published models of `configs/published.yaml`, which is read only when a name is asked for. */

import fs from 'node:fs';
import { codeOf, packagePath } from '../../base/files/file-system.js';
import { formatInteger, shortCount } from '../../base/text/units.js';
import { isRecord } from '../../base/values.js';
import { documentText, parseDocument } from '../../config/document.js';
import type { FamilyDocument } from '../../model/architecture/family.js';
import { presetDocument } from '../../model/architecture/presets.js';

type Settings = Readonly<Record<string, unknown>>;

/** One size of a series. */
interface PublishedSize {
  /** Repositories, if they do not follow from the size. */
  readonly hub?: string | readonly string[];
  /** Other names of the size: `30b` for `30b-a3b`. */
  readonly also?: readonly string[];
  /** Names before the size, in addition to those of the series. */
  readonly names?: readonly string[];
  /** Name of the file in `configs` that describes it. */
  readonly preset?: string;
  /** Preset with its sizes, except those in `model`. */
  readonly like?: string;
  readonly model?: Settings;
  readonly quantization?: Settings;
  /** Published number of parameters: exact, or a rounded one as text. */
  readonly parameters?: number | string;
  /** Source of the figure; the API of the hub by default. */
  readonly from?: string;
  readonly source?: string;
}

/** Models of one family and one name. */
interface PublishedSeries {
  readonly series: string;
  /** Set where the published model has further parts, which are not described. */
  readonly part?: 'text';
  readonly family: string;
  readonly hub?: string | readonly string[];
  readonly names: readonly string[];
  readonly usual?: string;
  readonly model?: Settings;
  readonly quantization?: Settings;
  readonly source?: string;
  readonly sizes: Readonly<Record<string, PublishedSize | null>>;
}

/** The file as it is written. */
export interface PublishedFile {
  readonly sources: Readonly<Record<string, string>>;
  /** Letters for kinds of layers: a list of them is written as `{kinds: MMMa}`, one of 32-bit numbers as `{float32: [1.08]}`. */
  readonly kinds: Readonly<Record<string, string>>;
  /** Letters for settings in `model`. */
  readonly keys: Readonly<Record<string, string>>;
  readonly series: readonly PublishedSeries[];
  /** Models without sizes here: names before a size, sizes with the usual one first, and the repository. */
  readonly elsewhere: readonly (readonly [names: string, sizes: string, repository: string])[];
}

/** A model of the file. */
export interface PublishedModel {
  /** Name as a preset: `qwen3/qwen3-8b`. */
  readonly preset: string;
  readonly family: string;
  /** Name of the preset without its family. */
  readonly name: string;
  /** Name for people: `Qwen3`. */
  readonly series: string;
  readonly size: string;
  readonly row: PublishedSize;
  readonly of: PublishedSeries;
  /** Repositories of the hub, the first one of which has its sizes. */
  readonly hub: readonly string[];
  /** Whether its name without a size means this one. */
  readonly isUsual: boolean;
}

const stringList = (value: string | readonly string[] | undefined): readonly string[] =>
  value === undefined ? [] : typeof value === 'string' ? [value] : value;

/** Repositories of a size. */
export function hubOf(series: PublishedSeries, size: string): string[] {
  const own = stringList(series.sizes[size]?.hub ?? series.hub);
  return own.map((each) => each.replace('$b', () => size).replace('$B', () => size.toUpperCase()));
}

/** The settings of a size in its family, without those that have the default. */
export function publishedSettings(
  file: PublishedFile,
  series: PublishedSeries,
  size: string,
): Settings {
  const { like, model } = series.sizes[size] ?? {};
  const base = like === undefined ? named(file, series.model) : settingsOf(file, like);
  return expandedValue(file, { ...base, ...named(file, model) }) as Settings;
}

/** Settings with their names in place of letters. */
const named = ({ keys }: PublishedFile, settings: Settings = {}): Settings =>
  Object.fromEntries(Object.entries(settings).map(([key, value]) => [keys[key] ?? key, value]));

/** A value without the short forms of its lists. */
function expandedValue(file: PublishedFile, value: unknown): unknown {
  if (!isRecord(value)) return value;
  if (typeof value.kinds === 'string') return [...value.kinds].map((kind) => file.kinds[kind]);
  if (Array.isArray(value.float32)) return value.float32.map(Math.fround);
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, expandedValue(file, each)]),
  );
}

/** The settings of a preset. */
function settingsOf(file: PublishedFile, preset: string): Settings {
  for (const series of file.series) {
    for (const [size, row] of Object.entries(series.sizes)) {
      if (presetName(series, size) === preset && row?.preset === undefined)
        return publishedSettings(file, series, size);
    }
  }
  const [family = '', name = ''] = preset.split('/');
  const { family: _, ...settings } = presetDocument(family, name).model;
  return settings;
}

const presetName = (series: PublishedSeries, size: string): string =>
  `${series.family}/${series.sizes[size]?.preset ?? `${series.names[0]}-${size}`}`;

/** File that the build writes into the folder above each built module. It does not exist above the sources. */
const BUILT = new URL('../published.json', import.meta.url);

let known: PublishedFile | undefined;

/** The file, from the build where there is one, because YAML of this size takes half a second. */
export function publishedFile(): PublishedFile {
  known ??= builtFile() ?? sourceFile();
  return known;
}

function builtFile(): PublishedFile | undefined {
  try {
    return JSON.parse(fs.readFileSync(BUILT, 'utf8'));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function sourceFile(): PublishedFile {
  const file = packagePath('configs/published.yaml');
  if (file === undefined) return { sources: {}, kinds: {}, keys: {}, series: [], elsewhere: [] };
  return parseDocument(fs.readFileSync(file, 'utf8'), file).value as unknown as PublishedFile;
}

let models: readonly PublishedModel[] | undefined;

/** The models of the file in its order. */
export function publishedModels(): readonly PublishedModel[] {
  models ??= publishedFile().series.flatMap((of) =>
    Object.entries(of.sizes).map(([size, row]) => {
      const preset = presetName(of, size);
      return {
        preset,
        family: of.family,
        name: preset.slice(preset.indexOf('/') + 1),
        series: of.series,
        size,
        row: row ?? {},
        of,
        hub: hubOf(of, size),
        isUsual: of.usual === size,
      };
    }),
  );
  return models;
}

/** The model of a preset that has no file of its own. */
export const publishedModel = (preset: string): PublishedModel | undefined =>
  publishedModels().find((each) => each.preset === preset && each.row.preset === undefined);

/** The document of a published model. */
export function publishedDocument({ family, of, row, size }: PublishedModel): FamilyDocument {
  const stored = row.quantization ?? of.quantization;
  return {
    model: { family, ...publishedSettings(publishedFile(), of, size) },
    ...(stored && { quantization_config: stored }),
  } as FamilyDocument;
}

/** Title in lists: `Qwen3-8B: 8.19B`. */
export function publishedTitle({ hub, of }: PublishedModel, parameters: number): string {
  const [repository = ''] = hub;
  const name = repository.slice(repository.indexOf('/') + 1);
  return `${name}${of.part === undefined ? '' : `, ${of.part}`}: ${shortCount(parameters)}`;
}

/** The config of a published model as a file, with its figures and sources. */
export function publishedText(model: PublishedModel): string {
  const { sources } = publishedFile();
  const { row, of, hub } = model;
  const [repository = ''] = hub;
  const { parameters, from = 'hub' } = row;
  const count = typeof parameters === 'number' ? formatInteger(parameters) : parameters;
  const source = row.source ?? of.source ?? '';
  const lines = [
    `${repository}${of.part === undefined ? '' : ', the text part'}.`,
    ...(count === undefined ? [] : [`Published: ${count} parameters (${sources[from] ?? from}).`]),
    ...(source === '' ? [] : [`Sizes: ${sources[source] ?? source}.`]),
  ];
  const head = lines.map((line) => `# ${line}`).join('\n');
  return `${head}\n\n${documentText(publishedDocument(model) as unknown as Record<string, unknown>)}`;
}
