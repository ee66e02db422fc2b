/** Where a path leads, by the system's numbers for files: one file has many names, and texts do not tell. */
import fs from 'node:fs';
import path from 'node:path';

/** A file or folder as the system knows it: the same under each of its names. */
export type Identity = string;

/**
 * The identity of an opened file.
 * @param file Its path, which stands in on file systems that do not number their files.
 */
export const identityOf = ({ dev, ino }: fs.BigIntStats, file: string): Identity =>
  ino === 0n ? realPath(file) : `${dev}:${ino}`;

/** The identity of what is at a path, links followed; undefined where nothing is. */
export function identityAt(file: string): Identity | undefined {
  const status = statusOf(file);
  return status && identityOf(status, file);
}

/** Whether two paths lead to the same place, or one of them into the other, whether or not it is there yet. */
export function overlap(a: string, b: string): boolean {
  const [one, other] = [locationOf(a), locationOf(b)];
  return isAround(one, other) || isAround(other, one);
}

/** Whether a path leads to a folder, or to something in it or below. */
export const isIn = (file: string, folder: string): boolean =>
  isAround(locationOf(folder), locationOf(file));

interface Location {
  /** Of what is there, or else of the first folder above that is, and of each folder above that. */
  readonly identities: readonly Identity[];
  /** Names below the first of them that nothing has yet. */
  readonly missing: readonly string[];
}

function isAround(outer: Location, { identities, missing }: Location): boolean {
  const [place] = outer.identities;
  if (place === undefined) return false;
  if (outer.missing.length === 0) return identities.includes(place);
  // What is not there can only be around what is not there either.
  return identities[0] === place && outer.missing.every((name, index) => name === missing[index]);
}

function locationOf(file: string): Location {
  const missing: string[] = [];
  let place = behindLinks(file);
  while (statusOf(place) === undefined && path.dirname(place) !== place) {
    missing.unshift(path.basename(place));
    place = path.dirname(place);
  }
  const identities: Identity[] = [];
  for (let above = realPath(place), below = ''; above !== below; above = path.dirname(above)) {
    const identity = identityAt(above);
    if (identity !== undefined) identities.push(identity);
    below = above;
  }
  return { identities, missing };
}

/** As Linux has it. */
const MAX_LINKS = 40;

/** Links may lead to what does not exist yet, or no more: `realPath` would refuse. */
export function behindLinks(file: string): string {
  let place = file;
  for (let links = 0; links < MAX_LINKS && isLink(place); links++) {
    const target = fs.readlinkSync(place);
    // Not joined: that takes `..` for what the text says, and not for what the system finds.
    place = path.isAbsolute(target) ? target : `${path.dirname(place)}${path.sep}${target}`;
  }
  return place;
}

function isLink(file: string): boolean {
  try {
    return fs.lstatSync(file).isSymbolicLink();
  } catch {
    return false;
  }
}

function statusOf(file: string): fs.BigIntStats | undefined {
  try {
    return fs.statSync(file, { bigint: true });
  } catch {
    // Whoever reads or writes it will say what is wrong.
    return undefined;
  }
}

/** As the system finds it: behind a link, `..` is the folder above where it leads. */
function realPath(file: string): string {
  try {
    return fs.realpathSync.native(file);
  } catch {
    return path.resolve(file);
  }
}
