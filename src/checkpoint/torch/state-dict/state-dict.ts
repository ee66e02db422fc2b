/** Finds the dict with the model's tensors in a PyTorch file. */

import { setting } from '../../../base/text/setting.js';
import type { ByteFile } from '../../byte-file.js';
import type { FileIndex } from '../../checkpoint.js';
import type { Refuse } from '../../checkpoint-rules.js';
import { mostTensorBytes, quoted, quotedNames, refuseAt } from '../../checkpoint-rules.js';
import { bytesOfViews, viewsOf } from '../../sharing.js';
import type { StoredTensor } from '../../stored-tensor.js';
import type { Dict, PickleValue } from '../pickle/values.js';
import { globalName, isKind } from '../pickle/values.js';
import { pickleValueText } from './storages.js';

/** Path and bytes of the file, or of all files of a checkpoint. */
type SearchedFile = Pick<ByteFile, 'path' | 'size'>;

/** The dict with the model's tensors, and the other entries of the file. */
export type StateDict = Omit<FileIndex, 'format' | 'aliases' | 'metadata'>;

/** Maximum depth of a state dict. Training checkpoints have it at depth one or two. */
const MAX_DEPTH = 8;
const MAX_KEY = 2 ** 16;
/** Maximum other values. Real files have dozens. */
const MAX_CONTENT = 100_000;
/** Maximum characters of all their names together. */
const MAX_CONTENT_NAMES = 2 ** 24;

/** A dict on a path from the root, as a linked list: a key list per dict would take quadratic memory. */
interface DictPath {
  readonly dict: Dict;
  readonly parent: DictPath | undefined;
  readonly key: string;
  readonly depth: number;
}

interface StateDictCandidate extends DictPath {
  /** Similarity of its tensor names to those of a model. */
  readonly rank: number;
}

/**
 * Finds the dict with the model's tensors: one with numbered layers, else one with modules, else any with
 * tensors. A training checkpoint has other tensors too (random states, optimizer moments).
 * @param choice Dotted keys of the dict, if the user gives them.
 */
export function findStateDict(
  root: PickleValue,
  choice: string | undefined,
  file: SearchedFile,
): StateDict {
  const refuse = refuseAt(file.path);
  const candidates = candidatesIn(root, refuse);
  if (choice !== undefined) {
    const chosen = candidates.find((candidate) => isNamed(candidate, choice));
    if (chosen) return taken(chosen, file, refuse);
    throw refuse(
      'state-dict-choice',
      `has no dict of tensors under ${JSON.stringify(choice)}`,
      candidates.length > 0 ? `it has: ${candidateList(candidates)}` : undefined,
    );
  }
  const best = candidates.reduce((highest, { rank }) => Math.max(highest, rank), 0);
  const [first, ...others] = withoutOptimizers(candidates.filter(({ rank }) => rank === best));
  if (first === undefined) {
    throw refuse(
      'state-dict-missing',
      isKind(root, 'dict')
        ? 'holds a dict, but no tensors by name in it'
        : `holds ${globalName(root)}, not a dict of tensors by name`,
      'save model.state_dict(), or a dict that holds it',
    );
  }
  if (others.length > 0) {
    throw refuse(
      'state-dict-many',
      `holds several state dicts: ${candidateList([first, ...others])}`,
      `choose one: ${setting('stateDict', nameOfPlace(first))}`,
    );
  }
  return taken(first, file, refuse);
}

/** Candidates that are not under the key of an optimizer, whose states can have the names of parameters; else all. */
function withoutOptimizers(
  candidates: readonly StateDictCandidate[],
): readonly StateDictCandidate[] {
  const others = candidates.filter((place) => !wayTo(place).some(({ key }) => /^optim/i.test(key)));
  return others.length > 0 ? others : candidates;
}

const MOST_LISTED = 10;

function candidateList(candidates: readonly StateDictCandidate[]): string {
  const names = candidates.slice(0, MOST_LISTED).map((each) => quoted(nameOfPlace(each)));
  const more = candidates.length > MOST_LISTED ? `, … (${candidates.length})` : '';
  return names.join(', ') + more;
}

/** Every dict with tensors under text keys, each once. */
function candidatesIn(root: PickleValue, refuse: Refuse): StateDictCandidate[] {
  const candidates: StateDictCandidate[] = [];
  if (!isKind(root, 'dict')) return candidates;
  const ranks = new NameRanks();
  const seen = new Set<Dict>([root]);
  const waiting: DictPath[] = [{ dict: root, parent: undefined, key: '', depth: 0 }];
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

/** Maximum characters of a name that is faster to rank again than to look up. */
const SHORT_NAME = 100;

/** Ranks names by how closely they resemble those of a model. Each long name is ranked once. */
class NameRanks {
  readonly #known = new Map<string, number>();

  /** Rank: 3 for a tensor of a numbered layer, 2 for one of a module, 1 for any other. */
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

/** The dicts from the root to a place. */
function wayTo(place: DictPath): DictPath[] {
  const way: DictPath[] = [];
  for (let at: DictPath | undefined = place; at; at = at.parent) way.unshift(at);
  return way;
}

const pathTo = (place: DictPath): string[] =>
  wayTo(place)
    .slice(1)
    .map(({ key }) => key);

/** A key in a dotted name: dots and backslashes are escaped with a backslash. */
const escaped = (key: string) => key.replace(/[\\.]/g, '\\$&');

const nameOfPlace = (place: DictPath) => pathTo(place).map(escaped).join('.');

/** Whether a place has this dotted name. Stops at keys that are longer than the name, without building theirs. */
const isNamed = (place: DictPath, name: string) =>
  wayTo(place).every(({ key }) => key.length <= name.length) && nameOfPlace(place) === name;

function taken(place: DictPath, file: SearchedFile, refuse: Refuse): StateDict {
  const tensors = new Map<string, StoredTensor>();
  const otherContent = new Content(refuse);
  const refuseKey = (message: string) =>
    refuse('state-dict-names', message, 'save the state dict with texts as keys, each once');
  const way = wayTo(place);
  const prefixes = way.map((each) => (each.parent ? `${nameOfPlace(each)}.` : ''));
  for (const [key, value] of place.dict.entries) {
    if (!isKind(value, 'tensor')) otherContent.add(prefixes.at(-1) ?? '', key, value);
    else if (typeof key === 'string') tensors.set(key, value);
    else {
      throw refuseKey(
        `holds a tensor under ${pickleValueText(key)}, where a text should name it; programs that write keys as texts can take it for another tensor`,
      );
    }
  }
  for (const [depth, { dict }] of way.slice(0, -1).entries()) {
    const name = way[depth + 1]?.key ?? '';
    for (const [key, value] of dict.entries) {
      if (key !== name) otherContent.add(prefixes[depth] ?? '', key, value);
      if (typeof key !== 'string' && isKind(value, 'dict') && pickleValueText(key) === name) {
        throw refuseKey(
          `holds a dict under the text ${quoted(name)}, and another under a key that is written the same`,
        );
      }
    }
  }
  checkShown(tensors, file, refuse);
  const { values: content, alike } = otherContent;
  const warnings =
    alike.length > 0
      ? [`keys that read alike, of which the last is shown: ${quotedNames(alike)}`]
      : [];
  return { stateDict: pathTo(place), tensors, content, warnings };
}

/** Other entries of a file, by dotted name. */
class Content {
  readonly values = new Map<string, PickleValue>();
  /** Names that several values have. */
  readonly alike: string[] = [];
  readonly #refuse: Refuse;
  #characters = 0;

  constructor(refuse: Refuse) {
    this.#refuse = refuse;
  }

  /** @param prefix Name of the dict with the value, with a dot at the end; empty for the root. */
  add(prefix: string, key: PickleValue, value: PickleValue): void {
    const own = escaped(typeof key === 'string' ? key : `[${pickleValueText(key)}]`);
    this.#characters += prefix.length + own.length;
    if (this.values.size >= MAX_CONTENT || this.#characters > MAX_CONTENT_NAMES) {
      throw this.#refuse(
        'state-dict-content',
        `holds more than ${MAX_CONTENT} values outside its state dict, or more than ${MAX_CONTENT_NAMES} characters of names`,
        'save model.state_dict() alone',
      );
    }
    const name = prefix + own;
    if (this.values.has(name)) this.alike.push(name);
    this.values.set(name, value);
  }
}

/** Limits the total bytes of all tensors: a small file can contain many large views of a few bytes. */
function checkShown(
  tensors: ReadonlyMap<string, StoredTensor>,
  file: SearchedFile,
  refuse: Refuse,
): void {
  const most = mostTensorBytes(file.size);
  let bytes = 0;
  for (const tensor of tensors.values()) bytes += tensor.bytes;
  // Tied tensors are read once. Finding them is only needed above the limit.
  if (bytes > most) bytes = bytesOfViews(viewsOf(tensors));
  if (bytes <= most) return;
  throw refuse(
    'state-dict-views',
    `makes tensors of ${bytes} bytes out of a file of ${file.size}`,
    'save contiguous copies, or the smaller tensors that they were expanded from',
  );
}
