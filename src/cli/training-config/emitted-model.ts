/** A model as other programs name it: a repository of the hub, or a folder with its weights. */
import path from 'node:path';
import type { EmittedModel } from '../../estimate/emit/emitted.js';
import { isCheckpointPath, locateModel } from '../../input/model-input/locate.js';
import { ownRepository } from '../../input/published/published-models.js';

/** Word for weights that the user has to name. */
const PLACEHOLDER = 'MODEL';

/** @param file Model as the user wrote it: a preset, `hf:OWNER/NAME`, or a path. */
export function emittedModel(file: string): EmittedModel {
  if (file.startsWith('hf:')) return { name: file.slice(3) };
  const { kind } = locateModel(file);
  if (kind === 'checkpoint' || kind === 'config') return named(weightsAt(file), file);
  const own = ownRepository(file);
  if (own === undefined || own.isVersion) return named(own?.name, file);
  return {
    name: own.name,
    note: `${own.name} has the sizes of ${file}: write the repository of that model in its place`,
  };
}

/** A repository or a folder; a placeholder where there is none. @param file Model as the user wrote it. */
const named = (name: string | undefined, file: string): EmittedModel =>
  name === undefined
    ? { name: PLACEHOLDER, note: `${PLACEHOLDER}: a folder with the weights of ${file}` }
    : { name };

/** The place of weights as programs name it; undefined for a config that only this program reads. */
function weightsAt(file: string): string | undefined {
  const isPart = /^config\.json$|\.safetensors(?:\.index\.json)?$/.test(path.basename(file));
  if (!isPart && !isCheckpointPath(file) && path.extname(file) !== '') return undefined;
  const place = isPart ? path.dirname(file) : file;
  return place.startsWith('-') ? `./${place}` : place;
}
