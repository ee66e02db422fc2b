/** Moves several files into place, so that an interrupted move can be finished or reverted. */

import fs from 'node:fs';
import path from 'node:path';
import { UserError } from '../errors.js';
import { exists, isSameFile, NO_LINKS, syncFolder } from './config-names.js';
import { codeOf } from './refusals.js';

/** All three paths are on one file system. */
export interface Move {
  readonly from: string;
  readonly to: string;
  /** Backup path of the file that is replaced. */
  readonly aside: string;
}

/** Whether all moves are done: the source of the last one is gone. */
export const areDone = (moves: readonly Move[]) => !exists(lastOf(moves).from);

/** Replaces the files at the targets. Keeps the old ones aside, and applies their permissions to the new ones. */
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

/** A file stays until it is replaced in one step; a folder cannot be. */
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
 * Reverts moves that have begun and are not all done.
 * @throws UserError if a new file exists where an old one was moved away.
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
