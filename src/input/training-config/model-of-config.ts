/** The model that the config of a training names, or describes by its sizes. */
import fs from 'node:fs';
import path from 'node:path';
import type { Problem } from '../../base/errors.js';
import { allowedFolders, isAllowed } from '../../base/files/linked-files.js';
import { mount, pathExists } from '../../base/files/mounted.js';
import { invalidConfig } from '../../config/document-problems.js';
import { quote } from '../../config/quote.js';
import { isCheckpointPath, locateModel } from '../model-input/locate.js';
import type { TrainingConfig } from './training-config.js';

/** A model as a reference that all commands read. */
export interface ConfigModel {
  readonly reference: string;
  /** Note on the model that was used, where it is not the one in the config. */
  readonly note?: string;
}

/** A config without weights in a folder that is not on the disk. */
const CONFIG_NAME = 'config.json';

/**
 * The model of a config; undefined where it has none. Sizes become a config at the path of the file, for this command.
 * @throws UserError for a model that `modelProblem` names.
 */
export function modelOfConfig(config: TrainingConfig): ConfigModel | undefined {
  const { file, run } = config;
  const problem = modelProblem(config);
  if (problem !== undefined) throw invalidConfig(file, [problem], 1);
  const { model, sizes } = run;
  if (sizes !== undefined) {
    mountText(file, CONFIG_NAME, `${JSON.stringify(sizes, undefined, 1)}\n`);
    return { reference: file };
  }
  if (model === undefined) return undefined;
  const beside = modelPlaces(file, model).find(isHere);
  if (beside !== undefined) return { reference: beside };
  if (locateModel(model).kind === 'preset') return { reference: model };
  const [, owner, name] = /^([\w.-]+)\/([\w.-]+)$/.exec(model) ?? [];
  if (owner === undefined || name === undefined) return { reference: model };
  // Copies of a repository keep its name.
  const original = nameOfOriginal(name);
  if (original !== undefined) {
    return { reference: original, note: `${model}: with the sizes of the published ${original}` };
  }
  return { reference: `hf:${model}` };
}

/**
 * Why the model of a config is not read; undefined for one that may be. The text comes from the file, not from the user: it
 * is neither a flag nor standard input, and a file that it names is regular and in the folder of the config, or in the
 * working folder.
 */
export function modelProblem({ file, run, placeOf }: TrainingConfig): Problem | undefined {
  const { model, sizes } = run;
  if (model === undefined || sizes !== undefined) return undefined;
  const refused = (message: string): Problem => ({
    severity: 'error',
    ...placeOf('model'),
    message,
    suggestion: 'write a repository of the hub, a preset, or a folder with a model',
  });
  if (model.startsWith('-') || model.includes('\0')) {
    return refused(`expected a model, found ${quote(model)}`);
  }
  const folders = ['.', path.dirname(file)].flatMap(allowedFolders);
  for (const place of modelPlaces(file, model)) {
    const status = statusOf(place);
    if (status === undefined || status.isDirectory()) continue;
    if (!status.isFile()) return refused(`expected a regular file at ${quote(model)}`);
    if (isAllowed(fs.realpathSync(place), folders)) continue;
    return refused(
      `expected a model in the folder of the config or in the working folder, found the file ${quote(model)}`,
    );
  }
  return undefined;
}

/** Where a model of a config can be: as for the user, or beside the config. */
const modelPlaces = (file: string, model: string): readonly string[] => [
  model,
  path.join(path.dirname(file), model),
];

/** Undefined where there is nothing that the system can look up. */
function statusOf(place: string): fs.Stats | undefined {
  try {
    return fs.statSync(place);
  } catch {
    return undefined;
  }
}

/** Endings that copies add to the name of a model without another size. */
const COPY = /-(?:unsloth|bnb-4bit|unsloth-bnb-4bit|GPTQ|AWQ|4bit|fp16|bf16)$/i;

function nameOfOriginal(name: string): string | undefined {
  const plain = name.replace(COPY, '').replace(COPY, '');
  const candidates = [plain, plain.replace(/^Meta-/, '')];
  return candidates.find((each) => locateModel(each).kind === 'preset');
}

/** A folder or file with a config or weights; a folder of outputs without any is none. */
const isHere = (place: string): boolean => {
  try {
    return pathExists(place) && (isCheckpointPath(place) || locateModel(place).kind === 'config');
  } catch {
    return false;
  }
};

/** Makes a text readable as the only file of a folder that is not on the disk. */
function mountText(root: string, name: string, text: string): void {
  const bytes = Buffer.from(text, 'utf8');
  const file = {
    size: bytes.length,
    version: 0,
    localPath: undefined,
    contentTag: undefined,
    readInto: (target: Uint8Array, position: number) =>
      void target.set(bytes.subarray(position, position + target.length)),
    readIntoAsync: async (target: Uint8Array, position: number) => {
      target.set(bytes.subarray(position, position + target.length));
    },
    willRead: () => undefined,
  };
  mount(root, {
    names: new Set([name]),
    open: () => file,
    read: async (_, most) => (bytes.length > most ? undefined : bytes),
    willOpen: () => undefined,
  });
}
