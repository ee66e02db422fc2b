/** The models of fixtures/hf, fixtures/minimind and fixtures/minigpt, with the results of the original code. */
import fs from 'node:fs';
import path from 'node:path';
import type { Shape } from '../../src/base/tensor/dtype.js';
import { storedNames } from '../../src/checkpoint/names.js';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import { shapesOf } from '../../src/checkpoint/reconcile/faults.js';
import type { TokenIds, Values } from '../../src/engine/engine.js';
import type { WeightSource } from '../../src/engine/weights/weights.js';
import { checkpointWeights } from '../../src/engine/weights/weights.js';
import { isFamilyName, loadFamily } from '../../src/model/architecture/families.js';
import type { LanguageModel } from '../../src/model/architecture/layer.js';
import { inPackage } from '../fixtures.js';
import { idsOf, valuesOf } from './fixture-models.js';

export interface FamilyCase {
  readonly model: LanguageModel;
  readonly weights: WeightSource;
  readonly ids: TokenIds;
  /** Expected values by name: `logits`, `hidden.0`, … */
  readonly expected: ReadonlyMap<string, Values>;
  /** Number of parameters, without buffers, tied ones once. */
  readonly parameters: number;
  /** Shapes of all stored tensors, by name. */
  readonly shapes: Readonly<Record<string, Shape>>;
  /** Bytes of the original's cache after these ids, by the type of the model. */
  readonly cache: Readonly<Record<string, CacheBytes>>;
  /** Total of the original's cache after these ids, in float32. */
  readonly cacheBytes: number | undefined;
}

interface CacheBytes {
  readonly keys_values: number;
  readonly convolutions: number;
  readonly states: number;
}

interface CaseFile {
  readonly input_ids: number[][];
  readonly parameters: number;
  /** Config of the model; for Hugging Face models it is in a separate file. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly tensors?: Readonly<Record<string, Shape>>;
  readonly cache?: FamilyCase['cache'];
  readonly cache_bytes?: number;
}

const GROUPS = ['hf', 'minimind', 'minigpt'] as const;

const foldersIn = (folder: string) =>
  fs
    .readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);

/** Another folder, made by `fixtures/hf/random_cases.py`, whose cases replace those below. */
const OTHERS = process.env.MINIMIND_FAMILY_CASES;

/** All folders: `hf/llama`, … */
export const FAMILY_CASES = OTHERS
  ? foldersIn(OTHERS).map((name) => path.join(OTHERS, name))
  : GROUPS.flatMap((group) =>
      foldersIn(inPackage('fixtures', group)).map((name) => `${group}/${name}`),
    );

const fileIn = (place: string, file: string) =>
  path.isAbsolute(place) ? path.join(place, file) : inPackage('fixtures', place, file);

const jsonIn = <Content>(place: string, file: string) =>
  JSON.parse(fs.readFileSync(fileIn(place, file), 'utf8')) as Content;

/** Files of Hugging Face name their family themselves. */
export const familyOf = (place: string): string =>
  place.startsWith('hf/') || path.isAbsolute(place)
    ? jsonIn<{ model_type: string }>(place, 'config.json').model_type
    : (place.split('/')[0] ?? '');

/** The checkpoints stay open until the process ends. */
export async function familyCase(place: string): Promise<FamilyCase> {
  const given = jsonIn<CaseFile>(place, 'case.json');
  const config = given.config ?? jsonIn<CaseFile['config'] & object>(place, 'config.json');
  const name = familyOf(place);
  if (!isFamilyName(name)) throw new Error(`no family ${name}`);
  const family = await loadFamily(name);
  const settings = family.fromHuggingFace?.read(config).settings ?? config;
  const ids = idsOf(given.input_ids);
  const checkpoint = openCheckpoint(fileIn(place, 'model.safetensors'));
  const asStored = family.storedSettings?.(shapesOf(storedNames(checkpoint), Object.is)) ?? [];
  const stored = Object.fromEntries(
    asStored.map(({ path: dotted, value }) => [dotted.replace('model.', ''), value]),
  );
  const document = { model: { ...settings, ...stored, family: name } };
  const model = family.build(family.schema.parse(document));
  const expected = openCheckpoint(fileIn(place, 'expected.safetensors'));
  const shapes = [...checkpoint.tensors].map(([key, { shape }]) => [key, shape] as const);
  return {
    model,
    weights: checkpointWeights(model, checkpoint),
    ids,
    expected: new Map([...expected.tensors].map(([key, tensor]) => [key, valuesOf(tensor)])),
    parameters: given.parameters,
    cacheBytes: given.cache_bytes,
    shapes: given.tensors ?? Object.fromEntries(shapes),
    cache: given.cache ?? {},
  };
}

/** The first case of each family, for tests that depend only on the kinds of layers. */
export const ONE_OF_EACH_FAMILY: readonly string[] = [
  ...new Map([...FAMILY_CASES].reverse().map((place) => [familyOf(place), place])).values(),
].reverse();

/** A model for each kind of layer. */
const FEW = [
  'hf/bloom',
  'hf/deepseek-v3',
  'hf/gemma2-window',
  'hf/gpt2',
  'hf/phi3-longrope-beyond',
  'hf/qwen2-moe',
  'minimind/v3-moe',
  'minigpt/tiny-gqa',
  'hybrid/shared-lowrank-tied',
  'hybrid/per-layer-sincos',
  'hybrid/pyramidal-windowed',
];

/** Every fixture with expected logits, including the hybrid family. */
export const ALL_CASES = [
  ...FAMILY_CASES,
  ...fs.readdirSync(inPackage('fixtures/hybrid')).map((name) => `hybrid/${name}`),
];

/** A few cases for slow tests, or all where MINIMIND_TEST_WEBGPU is `all`. */
export const casesToRun = (): readonly string[] =>
  process.env.MINIMIND_TEST_WEBGPU === 'all' ? ALL_CASES : FEW;
