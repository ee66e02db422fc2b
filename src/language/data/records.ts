/** Records of training data: the kinds, how a file's kind is found, and how a line is read. */
import { isUtf8 } from 'node:buffer';
import { UserError } from '../../base/errors.js';
import { jsonOrUndefined, parseJson } from '../../base/text/json.js';
import { commandText, setting } from '../../base/text/setting.js';
import { joined, shortened } from '../../base/text/words.js';
import { asText, isRecord } from '../../base/values.js';
import type { Line } from './lines.js';
import { MOST_LINE_BYTES } from './lines.js';
import { CHAT_KEYS, ID_KEYS } from './record-keys.js';

/** Kinds of files, in words. */
export const RECORD_KINDS = {
  text: 'JSON lines with a text, for pre-training',
  chat: 'JSON lines with messages',
  preference: 'JSON lines with a chosen and a rejected answer',
  plain: 'plain text, one sample per line',
  ids: 'token ids, one sample per line',
  uint16: 'token ids of 16 bits in one stream',
  uint32: 'token ids of 32 bits in one stream',
} as const;

export type RecordKind = keyof typeof RECORD_KINDS;

/** Kinds whose files have lines. */
export type LineKind = Exclude<RecordKind, 'uint16' | 'uint32'>;

/** Whether ids are read from bytes instead of lines. */
export const isStream = (kind: RecordKind): kind is 'uint16' | 'uint32' =>
  kind === 'uint16' || kind === 'uint32';

/** A message, with the keys that MiniMind's dataset classes read. */
export interface DataMessage {
  readonly role: string;
  readonly content: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: unknown;
}

export interface DataChat {
  readonly messages: readonly DataMessage[];
  readonly tools?: unknown;
}

export type DataRecord =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'chat'; readonly chat: DataChat }
  | { readonly kind: 'preference'; readonly chosen: DataChat; readonly rejected: DataChat }
  | { readonly kind: 'ids'; readonly ids: readonly number[] };

/** Reasons for which a line is not read. */
export const LINE_FAULTS = {
  'too-long': 'longer than 8 MB',
  'invalid-utf8': 'not UTF-8',
  'invalid-json': 'not JSON',
  'too-deep': 'nested too deeply',
  'missing-key': 'without the expected key',
  'wrong-shape': 'with values of another type',
  'not-rendered': 'refused by the chat template',
} as const;

export type LineFault = keyof typeof LINE_FAULTS;

/** A line without a record. */
export interface InvalidLine {
  readonly fault: LineFault;
  readonly message: string;
}

export const isInvalid = (record: DataRecord | InvalidLine): record is InvalidLine =>
  'fault' in record;

const invalid = (fault: LineFault, message: string): InvalidLine => ({ fault, message });

/** Maximum lines by which the kind of a file is detected. */
const MOST_PROBES = 20;

/** Share of control characters in binary data. */
const BINARY = 0.1;

/** Advice for an archive that this program unpacks. */
const unpackedBy = (program: string) =>
  `unpack it first: ${program} -dc FILE | ${commandText('data', ['-'])}`;

/** First bytes of files that are not training data. */
const otherFormats = (): readonly (readonly [start: string, name: string, advice: string])[] => [
  ['PK\x03\x04', 'a ZIP archive', 'unpack it first'],
  ['\xfd7zXZ', 'an XZ archive', unpackedBy('xz')],
  ['BZh', 'a bzip2 archive', unpackedBy('bzip2')],
  ['ARROW1', 'an Arrow file', 'write it as JSON lines: Dataset.to_json(…) in datasets'],
  ['\xff\xfe', 'UTF-16 text', 'save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE'],
  ['\xfe\xff', 'UTF-16 text', 'save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE'],
  ['\x89PNG', 'a PNG picture', 'give a text file'],
  [
    '\x93NUMPY',
    'a NumPy array',
    'write its values with ndarray.astype("uint16").tofile("ids.bin")',
  ],
  ['%PDF', 'a PDF document', 'extract its text first'],
];

/** Kind of a binary file by its first bytes; undefined for text. @throws UserError for a format that cannot be read. */
export function detectBinaryKind(file: string, head: Uint8Array): 'uint16' | undefined {
  refuseOtherFormat(file, head);
  return isBinary(head) ? binaryKind(file) : undefined;
}

/**
 * Kind of a text file by its first lines.
 * @param key Key of the text, if the user named one.
 * @throws UserError for a format that cannot be read.
 */
export function detectKind(
  file: string,
  lines: readonly Line[],
  key: string | undefined,
): LineKind {
  const probes = lines
    .flatMap(({ bytes }) => (bytes === undefined ? [] : [bytes.toString('utf8').trim()]))
    .filter((line) => line !== '')
    .slice(0, MOST_PROBES);
  const [start = ''] = probes;
  if (/^(?:[[{]|\[\s*\{.*)$/.test(start)) throw notOneRecordALine(file, start);
  const looksLikeJson = probes.filter((line) => /^[{[]/.test(line)).length * 2 > probes.length;
  const votes = new Map<LineKind, number>();
  let keys: readonly string[] | undefined;
  for (const line of probes) {
    const value = parsedOrUndefined(line);
    const kind = kindOfValue(line, value, key);
    if (kind !== undefined && !(kind === 'plain' && looksLikeJson))
      votes.set(kind, (votes.get(kind) ?? 0) + 1);
    else if (isRecord(value)) keys ??= Object.keys(value);
  }
  const [best] = [...votes].sort((a, b) => b[1] - a[1]);
  if (best?.[0] === 'plain') refuseBareValues(file, probes, isNamedJson(file));
  if (best) return best[0];
  if (keys !== undefined) throw unknownKeys(file, keys, probes[0] ?? '', key);
  if (looksLikeJson) throw notOneRecordALine(file, probes[0] ?? '');
  // For a file with only empty or too long lines, the error of each line explains it.
  return lines.some(({ bytes }) => bytes === undefined) && probes.length === 0 ? 'text' : 'plain';
}

/** Whether a file's name implies one JSON record per line. */
const isNamedJson = (file: string): boolean =>
  /\.(?:jsonl|ndjson|jsonlines|json)(?:\.(?:gz|zst))?$/i.test(file);

/**
 * @throws UserError for JSON values in lines that would be read as plain text, and for plain text in a file with the
 * name of JSON records.
 */
function refuseBareValues(file: string, lines: readonly string[], isJson: boolean): void {
  const values = lines.map((line) => bareValue(line));
  const first = values.find((value) => value !== undefined);
  const areValues = values.length > 0 && values.every((value) => value !== undefined);
  if (!areValues && !isJson) return;
  const found = areValues ? `${fieldText(first)}` : `the text ${shortened(lines[0] ?? '', 30)}`;
  const record = areValues && typeof first !== 'string' ? '[1, 2, 3]' : '{"text": "…"}';
  const convert =
    typeof first === 'string' && areValues
      ? `jq -c '{text: .}' FILE > texts.jsonl`
      : `one record per line, as in ${record}`;
  throw new UserError(
    'refused-file',
    `${file}: expected one JSON record per line, found ${found}`,
    {
      suggestion: `write ${convert}; for plain text as it is write ${setting('recordKind', 'plain')}`,
    },
  );
}

/** A JSON value other than a list or an object; undefined for another text. */
function bareValue(line: string): string | number | boolean | null | undefined {
  if (!/^(?:"|-?\d|true$|false$|null$)/.test(line)) return undefined;
  return jsonOrUndefined(line) as string | number | boolean | null | undefined;
}

function refuseOtherFormat(file: string, head: Uint8Array): void {
  const start = Buffer.from(head.subarray(0, 8)).toString('latin1');
  const found = otherFormats().find(([magic]) => start.startsWith(magic));
  if (found === undefined) return;
  throw new UserError('refused-file', `${file}: expected text or token ids, found ${found[1]}`, {
    suggestion: found[2],
  });
}

/** Whether bytes are binary data rather than damaged text. */
function isBinary(head: Uint8Array): boolean {
  if (head.length === 0) return false;
  let control = 0;
  for (const byte of head) {
    if (byte < 0x20 && byte !== 9 && byte !== 10 && byte !== 12 && byte !== 13) control++;
  }
  return control > BINARY * head.length;
}

function binaryKind(file: string): 'uint16' {
  if (/\.bin(\.gz|\.zst)?$/i.test(file)) return 'uint16';
  throw new UserError('refused-file', `${file}: expected text or token ids, found binary data`, {
    suggestion: `for token ids in binary form write ${setting('recordKind', 'uint16')} or ${setting('recordKind', 'uint32')}`,
  });
}

function parsedOrUndefined(line: string): unknown {
  if (!/^[{["\d]/.test(line) || nestingOf(line) > MOST_NESTING) return undefined;
  return jsonOrUndefined(line);
}

function kindOfValue(line: string, value: unknown, key: string | undefined): LineKind | undefined {
  if (isRecord(value)) {
    if (key !== undefined) return Object.hasOwn(value, key) ? 'text' : undefined;
    if ('chosen' in value && 'rejected' in value) return 'preference';
    if (CHAT_KEYS.some((each) => each in value)) return 'chat';
    if ('text' in value) return 'text';
    if (ID_KEYS.some((each) => Array.isArray(value[each]))) return 'ids';
    return undefined;
  }
  if (/^[{[]/.test(line)) return isNumbers(value) ? 'ids' : undefined;
  return /^\d+([\s,;]+\d+)+$/.test(line) ? 'ids' : 'plain';
}

const isNumbers = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.length > 0 &&
  (value.every((each) => typeof each === 'number') || value.every((each) => isNumbers(each)));

function unknownKeys(
  file: string,
  keys: readonly string[],
  line: string,
  key: string | undefined,
): UserError {
  const record = parsedOrUndefined(line);
  const texts = keys.filter((each) => isRecord(record) && typeof record[each] === 'string');
  const shown = keys.slice(0, 6).map((each) => shortened(each, 40));
  const wanted = key ?? 'text, conversations, messages, chosen and rejected, or input_ids';
  return new UserError(
    'refused-file',
    `${file}: expected records with the key ${wanted}, found ${shown.length === 0 ? 'an empty object' : joined(shown)}`,
    texts[0] === undefined
      ? { suggestion: 'write one record per line, as in {"text": "…"}' }
      : {
          suggestion: `if ${shortened(texts[0], 40)} is the text, write ${setting('key', shortened(texts[0], 40))}`,
        },
  );
}

const notOneRecordALine = (file: string, line: string) =>
  new UserError(
    'refused-file',
    line.startsWith('[')
      ? `${file}: expected one JSON record per line, found a JSON list`
      : `${file}: expected one JSON record per line, found none in the first lines`,
    {
      suggestion: `write one record per line: jq -c '${line.startsWith('[') ? '.[]' : '.'}' FILE > lines.jsonl; for plain text write ${setting('recordKind', 'plain')}`,
    },
  );

/** Maximum nesting of JSON that is read. */
const MOST_NESTING = 128;

/** Depth of the brackets of a JSON text, up to one more than `MOST_NESTING`. */
function nestingOf(text: string): number {
  // A shorter text cannot exceed the limit.
  if (text.length <= 2 * MOST_NESTING) return 0;
  let [depth, deepest] = [0, 0];
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x22) {
      // Skips to the end of the string.
      for (at++; at < text.length && text.charCodeAt(at) !== 0x22; at++) {
        if (text.charCodeAt(at) === 0x5c) at++;
      }
    } else if (unit === 0x5b || unit === 0x7b) {
      depth++;
      if (depth > deepest) deepest = depth;
      if (deepest > MOST_NESTING) return deepest;
    } else if (unit === 0x5d || unit === 0x7d) depth--;
  }
  return deepest;
}

/** The record of a line; undefined for a blank line. */
export function readRecord(
  { bytes, length }: Line,
  kind: LineKind,
  key: string | undefined,
): DataRecord | readonly DataRecord[] | InvalidLine | undefined {
  if (bytes === undefined) {
    const limit = MOST_LINE_BYTES / 1e6;
    return invalid(
      'too-long',
      `has ${(length / 1e6).toFixed(1)} MB, more than the ${limit} MB that are read`,
    );
  }
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes))
    return invalid('invalid-utf8', `byte ${firstInvalidByte(bytes)} is not UTF-8`);
  const text = bytes.toString('utf8');
  if (kind === 'plain') return text.trim() === '' ? undefined : { kind: 'text', text };
  if (text.trim() === '') return undefined;
  if (kind === 'ids' && !/^\s*[[{]/.test(text)) return idsOfText(text);
  if (text.length > MOST_NESTING && nestingOf(text) > MOST_NESTING) {
    return invalid('too-deep', `is nested deeper than ${MOST_NESTING} levels`);
  }
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    return invalid('invalid-json', shortened((error as Error).message, 100));
  }
  switch (kind) {
    case 'text':
      return recordText(value, key ?? 'text');
    case 'chat':
      return chatRecord(value);
    case 'preference':
      return preferenceOf(value);
    case 'ids':
      return idsOf(value);
  }
}

/** 1-based position of the first byte that UTF-8 does not allow. */
function firstInvalidByte(bytes: Buffer): number {
  let [low, high] = [0, bytes.length];
  // A prefix can end within a character. It is valid if it is valid without its last few bytes.
  const isValid = (end: number) =>
    [0, 1, 2, 3].some((less) => less <= end && isUtf8(bytes.subarray(0, end - less)));
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (isValid(middle)) low = middle;
    else high = middle - 1;
  }
  while (low > 0 && !isUtf8(bytes.subarray(0, low))) low--;
  return low + 1;
}

/** `the number 12`, `a list`: a value for a message. */
function fieldText(value: unknown): string {
  if (value === null) return 'null';
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  return `the ${typeof value} ${shortened(asText(value), 30)}`;
}

const notRecord = (value: unknown) =>
  invalid('wrong-shape', `expected an object, found ${fieldText(value)}`);

const missing = (wanted: string, value: Readonly<Record<string, unknown>>) => {
  const keys = Object.keys(value)
    .slice(0, 4)
    .map((key) => shortened(key, 30));
  const found = keys.length === 0 ? 'no keys' : joined(keys);
  return invalid('missing-key', `expected the key ${wanted}, found ${found}`);
};

function recordText(value: unknown, key: string): DataRecord | InvalidLine {
  if (!isRecord(value)) return notRecord(value);
  if (!Object.hasOwn(value, key)) return missing(key, value);
  const text = value[key];
  if (typeof text === 'string') return { kind: 'text', text };
  return invalid('wrong-shape', `${key}: expected a text, found ${fieldText(text)}`);
}

const ROLES: ReadonlySet<string> = new Set(['system', 'user', 'assistant', 'tool']);

/** Roles of ShareGPT, whose messages have `from` and `value`. */
const SHARED_ROLES: Readonly<Record<string, string>> = {
  human: 'user',
  user: 'user',
  gpt: 'assistant',
  assistant: 'assistant',
  system: 'system',
  tool: 'tool',
};

/** Error for a value that is not a list of messages. It is only thrown inside this file. */
class ShapeError extends Error {}

function chatRecord(value: unknown): DataRecord | InvalidLine {
  if (!isRecord(value)) return notRecord(value);
  const key = CHAT_KEYS.find((each) => Object.hasOwn(value, each));
  if (key === undefined) return missing('conversations or messages', value);
  return shaped(() => {
    const chat = chatOf(value[key], key);
    const own = key === 'messages' && Array.isArray(value.tools) ? value.tools : undefined;
    return { kind: 'chat', chat: chat.tools === undefined && own ? { ...chat, tools: own } : chat };
  });
}

function preferenceOf(value: unknown): DataRecord | InvalidLine {
  if (!isRecord(value)) return notRecord(value);
  for (const key of ['chosen', 'rejected']) {
    if (!Object.hasOwn(value, key)) return missing(key, value);
  }
  const side = (key: 'chosen' | 'rejected'): DataChat => {
    const given = value[key];
    if (typeof given !== 'string') return chatOf(given, key);
    const { prompt } = value;
    if (typeof prompt !== 'string') {
      throw new ShapeError(
        `prompt: expected a text next to the text ${key}, found ${fieldText(prompt)}`,
      );
    }
    return {
      messages: [
        { role: 'user', content: prompt },
        { role: 'assistant', content: given },
      ],
    };
  };
  return shaped(() => ({ kind: 'preference', chosen: side('chosen'), rejected: side('rejected') }));
}

function shaped(make: () => DataRecord): DataRecord | InvalidLine {
  try {
    return make();
  } catch (error) {
    if (error instanceof ShapeError) return invalid('wrong-shape', error.message);
    throw error;
  }
}

function chatOf(value: unknown, key: string): DataChat {
  if (!Array.isArray(value)) {
    throw new ShapeError(`${key}: expected a list of messages, found ${fieldText(value)}`);
  }
  if (value.length === 0) throw new ShapeError(`${key}: expected at least one message, found none`);
  const messages = value.map((each, index) => messageOf(each, `${key}[${index}]`));
  const tools = value.map((each, index) =>
    isRecord(each) && each.role === 'system'
      ? parsedText(each.tools, `${key}[${index}].tools`)
      : undefined,
  );
  const found = tools.findLast((each) => each !== undefined && each !== null && each !== '');
  return found === undefined ? { messages } : { messages, tools: found };
}

function messageOf(value: unknown, place: string): DataMessage {
  if (!isRecord(value))
    throw new ShapeError(`${place}: expected a message, found ${fieldText(value)}`);
  const isShared = value.role === undefined && value.from !== undefined;
  const [role, content] = isShared ? [value.from, value.value] : [value.role, value.content];
  const names = isShared ? ['from', 'value'] : ['role', 'content'];
  if (typeof role !== 'string') {
    throw new ShapeError(`${place}.${names[0]}: expected a role, found ${fieldText(role)}`);
  }
  const known = isShared && Object.hasOwn(SHARED_ROLES, role) ? SHARED_ROLES[role] : role;
  if (known === undefined || !ROLES.has(known)) {
    const roles = isShared ? 'human, gpt, system or tool' : 'system, user, assistant or tool';
    throw new ShapeError(`${place}.${names[0]}: expected ${roles}, found ${shortened(role, 30)}`);
  }
  const calls = parsedText(value.tool_calls, `${place}.tool_calls`);
  const hasCalls = Array.isArray(calls) && calls.length > 0;
  if (typeof content !== 'string' && !(hasCalls && (content === null || content === undefined))) {
    throw new ShapeError(`${place}.${names[1]}: expected a text, found ${fieldText(content)}`);
  }
  const { reasoning_content: reasoning } = value;
  return {
    role: known,
    content: typeof content === 'string' ? content : '',
    ...(typeof reasoning === 'string' && { reasoning_content: reasoning }),
    ...(hasCalls && { tool_calls: calls }),
  };
}

/** A value that may be a text with JSON in it. */
function parsedText(value: unknown, place: string): unknown {
  if (typeof value !== 'string' || value === '') return value === '' ? undefined : value;
  try {
    if (nestingOf(value) <= MOST_NESTING) return parseJson(value);
  } catch {
    // The caller reports it.
  }
  throw new ShapeError(`${place}: expected JSON in the text, found ${shortened(value, 30)}`);
}

function idsOf(value: unknown): DataRecord | readonly DataRecord[] | InvalidLine {
  const key = isRecord(value) ? ID_KEYS.find((each) => Object.hasOwn(value, each)) : undefined;
  if (isRecord(value) && key === undefined) return missing('input_ids', value);
  const list = isRecord(value) && key !== undefined ? value[key] : value;
  if (!Array.isArray(list)) {
    return invalid('wrong-shape', `expected a list of token ids, found ${fieldText(list)}`);
  }
  if (list.length > 0 && list.every(Array.isArray)) {
    const rows = list.map((row) => checkedIds(row));
    return rows.find(isInvalid) ?? (rows as readonly DataRecord[]);
  }
  return checkedIds(list);
}

/** Largest id of 32 bits. */
const MOST_ID = 2 ** 32 - 1;

function checkedIds(list: readonly unknown[]): DataRecord | InvalidLine {
  const at = list.findIndex(
    (id) => !Number.isInteger(id) || (id as number) < 0 || (id as number) > MOST_ID,
  );
  if (at < 0) return { kind: 'ids', ids: list as readonly number[] };
  return invalid('wrong-shape', `id ${at + 1}: expected a token id, found ${fieldText(list[at])}`);
}

function idsOfText(text: string): DataRecord | InvalidLine {
  const words = text
    .trim()
    .split(/[\s,;]+/)
    .filter((word) => word !== '');
  const wrong = words.findIndex((word) => !/^\d{1,10}$/.test(word) || Number(word) > MOST_ID);
  if (wrong < 0) return { kind: 'ids', ids: words.map(Number) };
  return invalid(
    'wrong-shape',
    `id ${wrong + 1}: expected a token id, found ${shortened(words[wrong] ?? '', 30)}`,
  );
}
