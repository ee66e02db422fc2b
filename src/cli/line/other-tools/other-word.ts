/** Words of another tool in the place of a model. Loaded only for a line of one. */
import fs from 'node:fs';
import { isHubName } from '../../../base/text/hub-names.js';
import { quote } from '../../../config/quote.js';
import { isPresent } from '../../foreign/unknown-command.js';
import { LineMistake } from '../line-mistake.js';
import { type DeclaredCommand, MODEL_ARGUMENTS } from '../typed-line.js';
import { wordsOfLine } from '../words-of-line.js';
import { linesWithOther, missingModel, typeFlag } from './names-in-path.js';

/** Whether a command reads models of the hub. */
export const isOfHub = (command: object): boolean =>
  (command as { readsHub?: unknown }).readsHub !== undefined;

/**
 * Refuses a word of another tool in the place of a model: `server start`. A name that is not here can be one of the hub,
 * and a path can end with one.
 * @param length Number of words of the command's name.
 */
export async function refuseOtherWord(
  command: DeclaredCommand,
  words: readonly string[],
  length: number,
): Promise<void> {
  const [argument = ''] = Object.keys(command.args);
  if (!MODEL_ARGUMENTS.has(argument) && argument !== 'in') return;
  const parts = wordsOfLine(words.slice(length), command.flags);
  const word = parts.find(({ flag }) => flag === undefined)?.texts[0];
  if (word === undefined) return;
  if (argument === 'in') {
    // A repository has to be downloaded: the sizes of a model are not enough. Files can be those of another machine.
    if (isHubName(word) && !fs.existsSync(word)) throw missingModel(word, [], { hub: false });
    return;
  }
  if (await isPresent(word)) return;
  if (/^[a-z]+$|^\d[\d.]*[kmbt]?$/.test(word)) {
    throw new LineMistake(`${quote(word)} is not a model`, [], {
      otherwise: 'minimind list shows the presets',
    });
  }
  const hub = isOfHub(command);
  const type = typeFlag(command, words);
  const isTyped = words.some((each) => /^--(?:base-)?dtype(?:=|$)/.test(each));
  const others = linesWithOther(words, words.indexOf(word, length), { type, isTyped, hub });
  const isHere = await Promise.all(others.map(({ models: [model] }) => isPresent(model)));
  const lines = others.filter((_, at) => isHere[at]);
  throw missingModel(word, lines, { hub });
}
