/** A LoRA adapter of PEFT: a folder of adapter_config.json and adapter_model.safetensors or .bin. */
import path from 'node:path';
import { ADAPTER_CONFIG } from '../../base/files/config-names.js';
import { isInside } from '../../base/files/linked-files.js';
import { mountedPath, pathExists } from '../../base/files/mounted.js';
import { fileNamesAt } from '../byte-file.js';
import type { Checkpoint } from '../checkpoint.js';
import { quoted, quotedNames, refusal, tensorPlace } from '../checkpoint-rules.js';
import { openFile } from '../open-file.js';
import { bytesOfViews, viewsOf } from '../sharing.js';
import type { StoredTensor } from '../stored-tensor.js';
import type { AdapterConfig } from './adapter-config.js';
import { readAdapterConfig } from './adapter-config.js';
import type { AdapterModules } from './adapter-modules.js';

/** peft/utils/constants.py: SAFETENSORS_WEIGHTS_NAME, WEIGHTS_NAME. */
const WEIGHTS = ['adapter_model.safetensors', 'adapter_model.bin'] as const;

/** Factors of one module: its weight changes by scale · B · A. */
export interface LoraModule {
  /** Path of the module in the model: `model.layers.0.self_attn.q_proj`. */
  readonly path: string;
  readonly rank: number;
  readonly scale: number;
  /** [rank, inputs]; of an embedding [rank, vocabulary]. */
  readonly a: StoredTensor;
  /** [outputs, rank]; of an embedding [width, rank]. */
  readonly b: StoredTensor;
  readonly isEmbedding: boolean;
  /** [outputs]: the bias changes by scale · this. */
  readonly bias: StoredTensor | undefined;
}

/** Settings and weights; the names of the weights are not checked. */
export interface AdapterFiles {
  readonly config: AdapterConfig;
  readonly checkpoint: Omit<Checkpoint, 'packed'>;
}

export interface LoraAdapter extends AdapterFiles {
  readonly modules: readonly LoraModule[];
  /** Whole tensors that replace those of the model, by their names in the model. */
  readonly replaced: ReadonlyMap<string, StoredTensor>;
}

/**
 * Opens the folder of an adapter.
 * @throws UserError that names the violated rule. No file stays open then.
 */
export async function openAdapter(folder: string): Promise<LoraAdapter> {
  const files = openAdapterFiles(folder);
  try {
    const { config, checkpoint } = files;
    const { factors, replaced } = sorted(checkpoint);
    const { AdapterModules } = await import('./adapter-modules.js');
    const rules = await AdapterModules.of(config, [...factors.keys()]);
    const modules = [...factors].map(([module, own]) =>
      adapterModule(config, rules, folder, module, own),
    );
    const warnings = [...checkpoint.warnings, ...warningsOf(config, rules, modules)];
    return { config, checkpoint: { ...checkpoint, warnings }, modules, replaced };
  } catch (error) {
    files.checkpoint.close();
    throw error;
  }
}

/** Opens the files of an adapter of any kind of LoRA, as `openAdapter`. */
export function openAdapterFiles(folder: string): AdapterFiles {
  const config = readAdapterConfig(path.join(folder, ADAPTER_CONFIG));
  const name = WEIGHTS.find((each) => pathExists(path.join(folder, each)));
  if (name === undefined) {
    throw refusal(folder, {
      rule: 'adapter-weights',
      message: `holds ${ADAPTER_CONFIG}, but neither ${WEIGHTS.join(' nor ')}`,
      suggestion: 'copy the weights of the adapter too',
    });
  }
  const { files, index } = openFile(path.join(folder, name), {});
  const close = () => {
    for (const file of files) file.close();
  };
  const listing = fileNamesAt(folder) ?? [];
  return { config, checkpoint: { ...index, path: folder, listing, files, close } };
}

/** Names begin with the path of the model in PEFT's wrapper. */
const PREFIX = 'base_model.model.';

/** Parts of a module's factors, by the ending of the tensor's name. */
const FACTORS = {
  '.lora_A.weight': 'a',
  '.lora_B.weight': 'b',
  '.lora_B.bias': 'bias',
  '.lora_embedding_A': 'embeddingA',
  '.lora_embedding_B': 'embeddingB',
} as const;

type Factor = (typeof FACTORS)[keyof typeof FACTORS];

/** Other tensors of LoRA: magnitudes of DoRA, trained tokens, gates. */
const OTHER_LORA = /\.lora_|\.token_adapter\.|\.trainable_tokens_/;

type Factors = Partial<Record<Factor, StoredTensor>>;

/** Factors by their modules, and all other tensors by their names in the model. */
function sorted({ tensors, path: folder }: Pick<Checkpoint, 'tensors' | 'path'>): {
  readonly factors: ReadonlyMap<string, Factors>;
  readonly replaced: ReadonlyMap<string, StoredTensor>;
} {
  const modules = new Map<string, Factors>();
  const replaced = new Map<string, StoredTensor>();
  for (const [full, tensor] of tensors) {
    const name = full.startsWith(PREFIX) ? full.slice(PREFIX.length) : full;
    const ending = (Object.keys(FACTORS) as (keyof typeof FACTORS)[]).find((each) =>
      name.endsWith(each),
    );
    if (ending) {
      const module = name.slice(0, -ending.length);
      const factors = modules.get(module) ?? {};
      modules.set(module, factors);
      factors[FACTORS[ending]] = tensor;
    } else if (OTHER_LORA.test(name)) {
      throw refusal(folder, {
        rule: 'adapter-tensor',
        place: tensorPlace(full),
        message: 'expected factors A and B of LoRA, or a weight of the model',
        suggestion: 'merge it with PEFT: model.merge_and_unload()',
      });
    } else
      replaced.set(
        name.replace(/\.base_layer(?=\.)/g, '').replace(/\.modules_to_save(?=\.)/g, ''),
        tensor,
      );
  }
  return { factors: modules, replaced };
}

/** Names of the settings that choose modules, if they are set. */
function adapterSettings({ excluded, layers, replaced }: AdapterConfig): string {
  const names = [
    'target_modules',
    ...(layers.length > 0 ? ['layers_to_transform'] : []),
    ...(excluded.length > 0 ? ['exclude_modules'] : []),
    ...(replaced.length > 0 ? ['modules_to_save'] : []),
  ];
  return names.length === 1 ? `the ${names[0]}` : quotedNames(names);
}

/** Differences between the settings and the tensors that change no value, but show that tensors are missing. */
function warningsOf(
  config: AdapterConfig,
  rules: AdapterModules,
  modules: readonly LoraModule[],
): string[] {
  const { targets, layers, file } = config;
  const unread = modules.filter(({ path: module }) => rules.isTarget(module) === undefined);
  const warnings: string[] = [];
  if (targets !== null && unread.length > 0) {
    const settings = adapterSettings(config);
    warnings.push(
      `${file}: the modules of ${settings} could not be checked, as PEFT chooses them, or a pattern is only known to Python`,
    );
  }
  const without = (typeof targets === 'string' ? [] : (targets ?? [])).filter(
    (name) => !rules.names.has(name),
  );
  if (without.length > 0) {
    warnings.push(
      `${file}: target_modules names ${quotedNames(without)}, for which there are no tensors`,
    );
  }
  const parts = new Set(modules.flatMap(({ path: module }) => module.split('.')));
  const absent = layers.filter((layer) => !parts.has(String(layer)));
  if (absent.length > 0) {
    warnings.push(
      `${file}: layers_to_transform names layers ${quotedNames(absent.map(String))}, for which there are no tensors`,
    );
  }
  return warnings;
}

function adapterModule(
  config: AdapterConfig,
  rules: AdapterModules,
  folder: string,
  module: string,
  factors: Factors,
): LoraModule {
  const isEmbedding = factors.embeddingA !== undefined;
  const [a, b] = isEmbedding ? [factors.embeddingA, factors.embeddingB] : [factors.a, factors.b];
  const [rank, alpha] = [rules.rankOf(module), rules.alphaOf(module)];
  const isRight =
    a?.shape.length === 2 && b?.shape.length === 2 && a.shape[0] === rank && b.shape[1] === rank;
  if (!a || !b || !isRight) {
    const shapeOf = (tensor: StoredTensor | undefined) =>
      tensor ? `[${tensor.shape.join(', ')}]` : 'none';
    throw refusal(folder, {
      rule: 'adapter-factors',
      place: `module ${quoted(module)}`,
      message: `expected factors [${rank}, inputs] and [outputs, ${rank}], found ${shapeOf(a)} and ${shapeOf(b)}`,
      suggestion:
        'check r and rank_pattern of adapter_config.json; factors of convolutions are not read',
    });
  }
  if (rules.isTarget(module) === false) {
    throw refusal(folder, {
      rule: 'adapter-target',
      place: `module ${quoted(module)}`,
      message: `has factors, but ${adapterSettings(config)} of adapter_config.json leave it out, and PEFT would ignore them`,
      suggestion: 'correct these settings, or remove its tensors',
    });
  }
  const divisor = config.isRankStabilised ? Math.sqrt(rank) : rank;
  return { path: module, rank, scale: alpha / divisor, a, b, isEmbedding, bias: factors.bias };
}

/** A LoRA adapter: its settings and sizes. @closed */
export interface AdapterDescription {
  /** Folder of the adapter. */
  readonly file: string;
  /** Rank of modules without one of their own. */
  readonly rank: number;
  /** Numerator of the scale: alpha ÷ rank. */
  readonly alpha: number;
  /** Whether alpha / √rank scales the products, not alpha / rank. */
  readonly rankStabilised: boolean;
  /** Names of modules, or a pattern; null when the settings leave them to PEFT. */
  readonly targets: readonly string[] | string | null;
  /** Modules whose weights it replaces. */
  readonly replaced: readonly string[];
  /** Parameters that it adds, or replaces others with. @integer */
  readonly parameters: number;
  /** Bytes of the tensors. @integer */
  readonly bytes: number;
  /** Model that it was trained on, as its settings name it. */
  readonly base: string | null;
  /** Settings that change the weights, and that a merge does not support. */
  readonly unread: readonly string[];
}

export function describeAdapter({ config, checkpoint }: AdapterFiles): AdapterDescription {
  const views = viewsOf(checkpoint.tensors);
  const { rank, alpha, isRankStabilised, targets, replaced, base, unread } = config;
  return {
    file: checkpoint.path,
    rank,
    alpha,
    rankStabilised: isRankStabilised,
    targets,
    replaced,
    parameters: views.reduce((sum, { tensor }) => sum + tensor.elements, 0),
    bytes: bytesOfViews(views),
    base,
    unread,
  };
}

/**
 * Paths where the model of an adapter can be: as its settings name it, below the working folder or its own folder on the
 * disk. Other paths in an untrusted file are not opened.
 */
export function basePathsOf({ config, checkpoint }: AdapterFiles): readonly string[] {
  if (config.base === null) return [];
  const own = checkpoint.path;
  const found = mountedPath(own) ? [config.base] : [config.base, path.join(own, config.base)];
  return found.filter((base) => [process.cwd(), own].some((folder) => isInside(folder, base)));
}
