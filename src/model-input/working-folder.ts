/** The model of the working folder, for commands that are given none. */
import fs from 'node:fs';
import path from 'node:path';
import { hasWeightsExtension } from '../checkpoint/formats.js';
import { UserError } from '../errors.js';
import { configIn } from '../files/config-names.js';
import { hasWeights } from './locate.js';

/** Names that win over any other. */
const OWN_NAMES = ['minimind.yaml', 'minimind.yml', 'model.yaml', 'model.yml'];

/** Size up to which a file can be a config. */
const CONFIG_BYTES = 1 << 20;

/**
 * Model files of a folder: the one of a usual name; the folder itself if it has weights and their config; else all
 * configs and checkpoints in it.
 */
function modelsIn(folder: string): string[] {
  const names = fs.readdirSync(folder).sort();
  const own = OWN_NAMES.find((name) => names.includes(name));
  if (own !== undefined) return [own];
  if (hasWeights(folder) && configIn(folder) !== undefined) return ['.'];
  return names.filter((name) => isConfigFile(path.join(folder, name)));
}

/** Checkpoint files of a folder; the folder itself if it is a checkpoint. */
function checkpointsIn(folder: string): string[] {
  if (configIn(folder) !== undefined && hasWeights(folder)) return ['.'];
  return fs.readdirSync(folder).filter(hasWeightsExtension).sort();
}

/** Whether a file has the top-level keys of a config of minimind, or of Hugging Face. */
function isConfigFile(file: string): boolean {
  const isJson = path.basename(file) === 'config.json';
  if (!isJson && !/\.ya?ml$/i.test(file)) return false;
  const status = fs.statSync(file, { throwIfNoEntry: false });
  if (!status?.isFile() || status.size > CONFIG_BYTES) return false;
  const text = fs.readFileSync(file, 'utf8');
  return isJson ? /"model_type"|"model"/.test(text) : /^model:/m.test(text);
}

/**
 * The only model or checkpoint of the working folder.
 * @param command The words before it, for the error.
 * @throws UserError when there is none, or several.
 */
export function onlyOneInFolder(
  what: 'model' | 'checkpoint',
  command: string,
  example: string,
): string {
  const found = what === 'model' ? modelsIn('.') : checkpointsIn('.');
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  throw new UserError(
    'usage',
    only === undefined
      ? `expected a ${what}, found none on the command line or in this folder`
      : `expected one ${what}, found ${found.length} in this folder: ${found.join(', ')}`,
    { suggestion: `write minimind ${command} ${only ?? example}` },
  );
}
