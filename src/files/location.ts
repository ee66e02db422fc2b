/** Where a path leads, by what the system says of files: one file has many names, and texts do not tell. */
import fs from 'node:fs';
import path from 'node:path';

/** What a file or folder is known by: the same under each of its names. */
export type Identity = string;

/**
 * The identities of a file: two paths that share one lead to the same file. Device and inode are one. The path is
 * another, for network and FUSE file systems without case may number the names that are asked for, and not files.
 * @param file A path of it.
 */
export const identitiesOf = (
  { dev, ino }: Pick<fs.BigIntStats, 'dev' | 'ino'>,
  file: string,
): readonly Identity[] => [...(ino === 0n ? [] : [`${dev}:${ino}`]), listedPath(realPath(file))];

/** A path with the names as their folders list them, where they are found in any case. */
function listedPath(file: string): string {
  const folder = path.dirname(file);
  if (folder === file) return file;
  return path.join(listedPath(folder), listedName(folder, path.basename(file)));
}

function listedName(folder: string, name: string): string {
  const upper = name.toUpperCase();
  const otherCase = upper === name ? name.toLowerCase() : upper;
  if (otherCase === name || statusOf(path.join(folder, otherCase)) === undefined) return name;
  try {
    const names = fs.readdirSync(folder);
    if (names.includes(name)) return name;
    return names.find((each) => each.toUpperCase() === upper) ?? name;
  } catch {
    return name;
  }
}

/** The identities of what is at a path, links followed; none where nothing is. */
export function identitiesAt(file: string): readonly Identity[] {
  const status = statusOf(file);
  return status ? identitiesOf(status, file) : [];
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
  /** Of what is there, or else of the first folder above that is. */
  readonly found: readonly Identity[];
  /** The same, and those of each folder above. */
  readonly above: ReadonlySet<Identity>;
  /** Names below what was found. */
  readonly missing: readonly string[];
}

function isAround(outer: Location, inner: Location): boolean {
  if (outer.missing.length === 0) return outer.found.some((each) => inner.above.has(each));
  // What is not there can only be around what is not there either.
  return (
    outer.found.some((each) => inner.found.includes(each)) &&
    outer.missing.every((name, index) => name === inner.missing[index])
  );
}

function locationOf(file: string): Location {
  const missing: string[] = [];
  let place = behindLinks(file);
  while (statusOf(place) === undefined && path.dirname(place) !== place) {
    missing.unshift(path.basename(place));
    place = path.dirname(place);
  }
  const above = new Set<Identity>();
  for (let each = realPath(place), last = ''; each !== last; each = path.dirname(each)) {
    for (const identity of identitiesAt(each)) above.add(identity);
    last = each;
  }
  return { found: identitiesAt(place), above, missing };
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
