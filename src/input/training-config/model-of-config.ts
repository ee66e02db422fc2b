/** The model that the config of a training names, or describes by its sizes. */
import path from 'node:path';
import { mount, pathExists } from '../../base/files/mounted.js';
import { isCheckpointPath, locateModel } from '../model-input/locate.js';
import type { TrainingConfig } from './training-config.js';

/** A model as a reference that all commands read. */
export interface ConfigModel {
  readonly reference: string;
  /** What was taken for it, where it is not what the config says. */
  readonly note?: string;
}

/** A config without weights in a folder that is not on the disk. */
const CONFIG_NAME = 'config.json';

/**
 * The model of a config; undefined where it has none. Sizes become a config at the path of the file, for this command.
 */
export function modelOfConfig({ file, run }: TrainingConfig): ConfigModel | undefined {
  const { model, sizes } = run;
  if (sizes !== undefined) {
    mountText(file, CONFIG_NAME, `${JSON.stringify(sizes, undefined, 1)}\n`);
    return { reference: file };
  }
  if (model === undefined) return undefined;
  const beside = [model, path.join(path.dirname(file), model)].find(isHere);
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
