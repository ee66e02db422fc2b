/** Which of the dicts of a PyTorch file is the model. */

import { type Refusal, refusal } from '../refusal.js';
import type { StoredTensor } from '../stored-tensor.js';
import { listed as listedNames, quoted } from '../wording.js';
import { isKind, nameOf } from './pickle-machine.js';
import { show } from './storages.js';
import type { Dict, Value } from './values.js';

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

interface Candidate {
  readonly path: readonly string[];
  readonly dict: Dict;
  /** How much its tensors look like those of a model. */
  readonly rank: number;
}

/**
 * Finds the dict that holds the model's tensors by name: the one with the tensors of numbered layers, or,
 * when none has any, of modules, or any tensors at all. A training checkpoint also has tensors elsewhere
 * (random states, an optimizer's moments).
 * @param file As the user wrote it.
 * @param choice Dotted keys of the dict to take, when the user says.
 */
export function findStateDict(root: Value, choice: string | undefined, file: string): StateDict {
  const refuse = (rule: Refusal['rule'], message: string, suggestion?: string) =>
    refusal(file, { rule, message, suggestion });
  const candidates = candidatesIn(root);
  if (choice !== undefined) {
    const chosen = candidates.find(({ path }) => dotted(path) === choice);
    if (chosen) return taken(root, chosen);
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
      `choose one: --state-dict ${shellWord(dotted(first.path))}`,
    );
  }
  return taken(root, first);
}

const MOST_LISTED = 10;

function listed(candidates: readonly Candidate[]): string {
  const names = candidates.map(({ path }) => quoted(dotted(path)));
  const more = names.length > MOST_LISTED ? `, … (${names.length})` : '';
  return names.slice(0, MOST_LISTED).join(', ') + more;
}

/** Every dict that holds tensors under texts, each once, however many ways lead to it. */
function candidatesIn(root: Value): Candidate[] {
  const candidates: Candidate[] = [];
  const seen = new Set<Value>();
  const waiting: { path: readonly string[]; value: Value }[] = [{ path: [], value: root }];
  for (const { path, value } of waiting) {
    if (!isKind(value, 'dict') || seen.has(value)) continue;
    seen.add(value);
    const rank = rankOf(value);
    if (rank > 0) candidates.push({ path, dict: value, rank });
    for (const [key, part] of value.entries) {
      if (typeof key === 'string' && isKind(part, 'dict')) {
        waiting.push({ path: [...path, key], value: part });
      }
    }
  }
  return candidates;
}

/** The keys that lead to a dict, as one name. A dot within a key, or a backslash, has a backslash before it. */
const dotted = (path: readonly string[]) =>
  path.map((key) => key.replace(/[\\.]/g, '\\$&')).join('.');

/** As one word of a command line, whatever is in it. */
const shellWord = (text: string) =>
  /^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

const LAYER = /(^|\.)\d+\./;

/** 3 with tensors of numbered layers, 2 with tensors of modules, 1 with tensors, 0 without. */
function rankOf({ entries }: Dict): number {
  let rank = 0;
  for (const [key, value] of entries) {
    if (typeof key !== 'string' || !isKind(value, 'tensor')) continue;
    if (LAYER.test(key)) return 3;
    rank = Math.max(rank, key.includes('.') ? 2 : 1);
  }
  return rank;
}

function taken(root: Value, { path, dict }: Candidate): StateDict {
  const tensors = new Map<string, StoredTensor>();
  const content = new Map<string, Value>();
  const nameless: Value[] = [];
  const alike: string[] = [];
  const keep: Keep = (keys, key, value) => {
    const name = dotted([...keys, keyText(key)]);
    if (content.has(name)) alike.push(name);
    content.set(name, value);
  };
  for (const [key, value] of dict.entries) {
    if (typeof key === 'string' && isKind(value, 'tensor')) tensors.set(key, value);
    else keep(path, key, value);
    if (typeof key !== 'string' && isKind(value, 'tensor')) nameless.push(key);
  }
  const ambiguous = nameless
    .filter(isInteger)
    .map(String)
    .filter((name) => tensors.has(name));
  collectBeside(root, path, keep);
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
  return { path, tensors, ambiguous, content, warnings };
}

/** Notes an entry beside the tensors: the keys that lead to its dict, its own key, its value. */
type Keep = (keys: readonly string[], key: Value, value: Value) => void;

const isInteger = (key: Value) => typeof key === 'number' || typeof key === 'bigint';

/** What the dicts on the way to the state dict hold beside it. */
function collectBeside(root: Value, path: readonly string[], keep: Keep): void {
  let dict = root;
  for (const [depth, step] of path.entries()) {
    if (!isKind(dict, 'dict')) return;
    for (const [key, value] of dict.entries) {
      if (key === step) continue;
      keep(path.slice(0, depth), key, value);
    }
    dict = dict.entries.get(step) ?? null;
  }
}

/** A key of any kind, as text. */
const keyText = (key: Value) => (typeof key === 'string' ? key : `[${show(key)}]`);
