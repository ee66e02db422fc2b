/** Which of the dicts of a PyTorch file is the model. */
import type { ByteFile } from '../../byte-file.js';
import type { Refusal } from '../../rules.js';
import { listed as listedNames, quoted, refusal } from '../../rules.js';
import { bytesOfViews, viewsOf } from '../../sharing.js';
import type { StoredTensor } from '../../stored-tensor.js';
import { isKind, nameOf } from '../pickle/pickle-machine.js';
import type { Dict, Value } from '../pickle/values.js';
import { show } from './storages.js';

export interface StateDict {
  /** Keys that lead to it. */
  readonly path: readonly string[];
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  /** Names of tensors that integer keys beside them read like. */
  readonly ambiguous: readonly string[];
  /** What stands beside it, and beside the dicts on the way to it. */
  readonly content: ReadonlyMap<string, Value>;
  /** What is odd about it. */
  readonly warnings: readonly string[];
}

/** Keys that lead to a state dict, at most. Training checkpoints have it under one key or two. */
const MAX_DEPTH = 8;
/** Characters. */
const MAX_KEY = 2 ** 16;
/** Values beside a state dict. Real files have dozens. */
const MAX_CONTENT = 100_000;
/** Characters of all their names together. */
const MAX_CONTENT_NAMES = 2 ** 24;
/** What tensors may show of a file: views overlap in few files, and twice at most. */
const MAX_SHOWINGS = 8;
/** Bytes that tensors may have besides, as those do that were expanded. */
const MAX_EXTRA_BYTES = 2 ** 26;

/** A dict on a way from the root, which is a chain: a list of the keys for each dict would cost its length. */
interface Place {
  readonly dict: Dict;
  readonly parent: Place | undefined;
  /** The key in the parent. */
  readonly key: string;
  readonly depth: number;
}

interface Candidate extends Place {
  /** How much its tensors look like those of a model. */
  readonly rank: number;
}

/** Makes the error of a rule that is broken here. */
type Refuse = (rule: Refusal['rule'], message: string, suggestion?: string) => Error;

/**
 * Finds the dict that holds the model's tensors by name: the one with the tensors of numbered layers, or,
 * when none has any, of modules, or any tensors at all. A training checkpoint also has tensors elsewhere
 * (random states, an optimizer's moments).
 * @param choice Dotted keys of the dict to take, when the user says.
 */
export function findStateDict(root: Value, choice: string | undefined, file: ByteFile): StateDict {
  const refuse: Refuse = (rule, message, suggestion) =>
    refusal(file.path, { rule, message, suggestion });
  const candidates = candidatesIn(root, refuse);
  if (choice !== undefined) {
    const chosen = candidates.find((candidate) => isNamed(candidate, choice));
    if (chosen) return taken(chosen, file, refuse);
    throw refuse(
      'state-dict-choice',
      `has no dict of tensors under ${JSON.stringify(choice)}`,
      candidates.length > 0 ? `it has: ${listed(candidates)}` : undefined,
    );
  }
  const best = candidates.reduce((highest, { rank }) => Math.max(highest, rank), 0);
  const [first, ...others] = candidates.filter(({ rank }) => rank === best);
  if (first === undefined) {
    throw refuse(
      'state-dict-missing',
      isKind(root, 'dict')
        ? 'holds a dict, but no tensors by name in it'
        : `holds ${nameOf(root)}, not a dict of tensors by name`,
      'save model.state_dict(), or a dict that holds it',
    );
  }
  if (others.length > 0) {
    throw refuse(
      'state-dict-many',
      `holds several state dicts: ${listed([first, ...others])}`,
      `choose one: --state-dict ${shellWord(nameOfPlace(first))}`,
    );
  }
  return taken(first, file, refuse);
}

const MOST_LISTED = 10;

function listed(candidates: readonly Candidate[]): string {
  const names = candidates.slice(0, MOST_LISTED).map((each) => quoted(nameOfPlace(each)));
  const more = candidates.length > MOST_LISTED ? `, … (${candidates.length})` : '';
  return names.join(', ') + more;
}

/** Every dict that holds tensors under texts, each once, however many ways lead to it. */
function candidatesIn(root: Value, refuse: Refuse): Candidate[] {
  const candidates: Candidate[] = [];
  if (!isKind(root, 'dict')) return candidates;
  const ranks = new NameRanks();
  const seen = new Set<Dict>([root]);
  const waiting: Place[] = [{ dict: root, parent: undefined, key: '', depth: 0 }];
  for (const place of waiting) {
    const { dict, depth } = place;
    let rank = 0;
    for (const [key, part] of dict.entries) {
      if (typeof key !== 'string') continue;
      if (key.length > MAX_KEY) {
        throw refuse('state-dict-key', `has a key of ${key.length} characters: ${quoted(key)}`);
      }
      if (isKind(part, 'tensor')) rank = Math.max(rank, ranks.of(key));
      if (!isKind(part, 'dict') || depth === MAX_DEPTH || seen.has(part)) continue;
      seen.add(part);
      waiting.push({ dict: part, parent: place, key, depth: depth + 1 });
    }
    if (rank > 0) candidates.push({ ...place, rank });
  }
  return candidates;
}

const LAYER = /(^|\.)\d+\./;

/** Characters of a name that is looked at again faster than it is found in a table. */
const SHORT_NAME = 100;

/**
 * How much the names of tensors look like those of a model. Looks into each long name once, in however many dicts it
 * is.
 */
class NameRanks {
  readonly #known = new Map<string, number>();

  /** 3 for a tensor of a numbered layer, 2 for one of a module, 1 for any other. */
  of(name: string): number {
    if (name.length <= SHORT_NAME) return rankOf(name);
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const rank = rankOf(name);
    this.#known.set(name, rank);
    return rank;
  }
}

function rankOf(name: string): number {
  if (LAYER.test(name)) return 3;
  return name.includes('.') ? 2 : 1;
}

/** The dicts from the root down to one. */
function wayTo(place: Place): Place[] {
  const way: Place[] = [];
  for (let at: Place | undefined = place; at; at = at.parent) way.unshift(at);
  return way;
}

const pathTo = (place: Place): string[] =>
  wayTo(place)
    .slice(1)
    .map(({ key }) => key);

/** A key within a name of several: a dot in it, or a backslash, has a backslash before it. */
const escaped = (key: string) => key.replace(/[\\.]/g, '\\$&');

/** The keys that lead to a dict, as one name. */
const nameOfPlace = (place: Place) => pathTo(place).map(escaped).join('.');

/** Whether the keys that lead to a dict are these. Names that are longer than the one asked for are not made. */
const isNamed = (place: Place, name: string) =>
  wayTo(place).every(({ key }) => key.length <= name.length) && nameOfPlace(place) === name;

/** As one word of a command line, whatever is in it. */
const shellWord = (text: string) =>
  /^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

function taken(place: Place, file: ByteFile, refuse: Refuse): StateDict {
  const tensors = new Map<string, StoredTensor>();
  const beside = new Content(refuse);
  const way = wayTo(place);
  const nameless: Value[] = [];
  const prefixes = way.map((each) => (each.parent ? `${nameOfPlace(each)}.` : ''));
  for (const [key, value] of place.dict.entries) {
    if (typeof key === 'string' && isKind(value, 'tensor')) tensors.set(key, value);
    else beside.add(prefixes.at(-1) ?? '', key, value);
    if (typeof key !== 'string' && isKind(value, 'tensor')) nameless.push(key);
  }
  for (const [depth, { dict }] of way.slice(0, -1).entries()) {
    for (const [key, value] of dict.entries) {
      if (key !== way[depth + 1]?.key) beside.add(prefixes[depth] ?? '', key, value);
    }
  }
  checkShown(tensors, file, refuse);
  const ambiguous = nameless
    .filter(isInteger)
    .map(String)
    .filter((name) => tensors.has(name));
  const { values: content, alike } = beside;
  const warnings = warningsOf(nameless, ambiguous, alike);
  return { path: pathTo(place), tensors, ambiguous, content, warnings };
}

const isInteger = (key: Value) => typeof key === 'number' || typeof key === 'bigint';

/** What a state dict holds that other programs may read otherwise, or not at all. */
function warningsOf(
  nameless: readonly Value[],
  ambiguous: readonly string[],
  alike: readonly string[],
): string[] {
  const warnings: string[] = [];
  if (nameless.length > 0) {
    warnings.push(
      `tensors of its state dict that have no text for a name are left out: ${nameless.length}`,
    );
  }
  if (ambiguous.length > 0) {
    warnings.push(
      `names of tensors that stand as a text and as an integer: ${listedNames(ambiguous)}; programs that write keys as text keep only one of the two`,
    );
  }
  if (alike.length > 0) {
    warnings.push(`keys that read alike, of which the last is shown: ${listedNames(alike)}`);
  }
  return warnings;
}

/** What stands beside a state dict, by the names of the keys that lead to it. */
class Content {
  readonly values = new Map<string, Value>();
  /** Names that several values have. */
  readonly alike: string[] = [];
  readonly #refuse: Refuse;
  #characters = 0;

  constructor(refuse: Refuse) {
    this.#refuse = refuse;
  }

  /** @param prefix The name of the dict that the value is in, with a dot; empty for the root. */
  add(prefix: string, key: Value, value: Value): void {
    const own = escaped(typeof key === 'string' ? key : `[${show(key)}]`);
    this.#characters += prefix.length + own.length;
    if (this.values.size >= MAX_CONTENT || this.#characters > MAX_CONTENT_NAMES) {
      throw this.#refuse(
        'state-dict-content',
        `holds more than ${MAX_CONTENT} values beside its state dict, or more than ${MAX_CONTENT_NAMES} characters of names`,
        'save model.state_dict() alone',
      );
    }
    const name = prefix + own;
    if (this.values.has(name)) this.alike.push(name);
    this.values.set(name, value);
  }
}

/** Checks how much there would be to read: views of a few bytes can be as many as a file has room to name. */
function checkShown(
  tensors: ReadonlyMap<string, StoredTensor>,
  file: ByteFile,
  refuse: Refuse,
): void {
  const most = MAX_SHOWINGS * file.size + MAX_EXTRA_BYTES;
  let bytes = 0;
  for (const tensor of tensors.values()) bytes += tensor.bytes;
  // Tensors that are tied are read once. They are looked for only where that can matter.
  if (bytes > most) bytes = bytesOfViews(viewsOf(tensors));
  if (bytes <= most) return;
  throw refuse(
    'state-dict-views',
    `makes tensors of ${bytes} bytes out of a file of ${file.size}`,
    'save contiguous copies, or the smaller tensors that they were expanded from',
  );
}
