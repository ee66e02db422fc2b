/** Putting several things in their places, so that it can be finished or taken back whenever it stops. */

import fs from 'node:fs';
import path from 'node:path';
import { UserError } from '../errors.js';
import { exists, isSameFile, NO_LINKS, syncFolder } from './config-names.js';
import { codeOf } from './refusals.js';

/** All three are on one file system. */
export interface Move {
  readonly from: string;
  readonly to: string;
  /** Where to keep what stood there. */
  readonly aside: string;
}

/** Nothing is left to move: the last move is done, and with it all before. */
export const areDone = (moves: readonly Move[]) => !exists(lastOf(moves).from);

/** Replaces what stands in the places, and leaves it aside, with its permissions for what comes instead. */
export function moveAll(moves: readonly Move[]): void {
  for (const { from, to, aside } of moves) {
    if (exists(to)) {
      const mode = fs.statSync(to, { throwIfNoEntry: false })?.mode;
      if (mode !== undefined) fs.chmodSync(from, mode & 0o777);
      keepAside(to, aside);
    }
    fs.renameSync(from, to);
    syncFolder(path.dirname(to));
  }
}

/** A file keeps its place until it is replaced in one step, a folder cannot. */
function keepAside(file: string, aside: string): void {
  try {
    fs.linkSync(file, aside);
  } catch (error) {
    if (!NO_LINKS.has(codeOf(error) ?? '')) throw error;
    fs.renameSync(file, aside);
  }
  syncFolder(path.dirname(aside));
  syncFolder(path.dirname(file));
}

/**
 * Takes back moves that have begun and are not all done.
 * @throws UserError when something new stands where something has been moved away.
 */
export function takeBack(moves: readonly Move[]): void {
  for (const { from, to, aside } of [...moves].reverse()) {
    if (!exists(from) && exists(to)) fs.renameSync(to, from);
    if (!exists(aside)) continue;
    if (!exists(to)) fs.renameSync(aside, to);
    else if (!isSameFile(aside, to)) throw twoOf(to, aside);
    syncFolder(path.dirname(to));
  }
  syncFolder(path.dirname(lastOf(moves).from));
}

const twoOf = (to: string, aside: string) =>
  new UserError(
    'usage',
    `a run that was cut short has moved ${to} to ${aside}, and now there is another ${to}`,
    {
      suggestion: 'move one of the two elsewhere',
    },
  );

function lastOf(moves: readonly Move[]): Move {
  const last = moves.at(-1);
  if (last === undefined) throw new RangeError('no moves');
  return last;
}
