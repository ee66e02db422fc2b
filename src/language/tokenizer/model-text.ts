/**
 * The files next to a model that define how it reads and writes text: tokenizer, chat template, generation defaults.
 */
import fs from 'node:fs';
import path from 'node:path';
import { UserError, usageError } from '../../base/errors.js';
import { readText } from '../../base/files/read-file.js';
import { parseJson } from '../../base/text/json.js';
import { setting } from '../../base/text/setting.js';
import { isRecord } from '../../base/values.js';
import type { ChatTemplate } from './chat-template.js';
import { TextTokenizer, tokenizerFile } from './tokenizer.js';

/** Maximum bytes of a config. Some tokenizer_config.json files list thousands of added tokens. */
const MAX_CONFIG_BYTES = 20_000_000;

type Config = Readonly<Record<string, unknown>>;

export interface ModelText {
  /** Undefined when the folder has no tokenizer.json. */
  readonly tokenizer: TextTokenizer | undefined;
  readonly template: ChatTemplate | undefined;
  /** Texts of special tokens, as templates name them: `bos_token`, `eos_token`, …. */
  readonly specialTokens: Readonly<Record<string, string>>;
  /** Tokens that end an answer. */
  readonly endIds: readonly number[];
  /** Contents of generation_config.json, and its path. */
  readonly generation: { readonly file: string; readonly config: Config } | undefined;
}

/**
 * Reads the files of a model's text.
 * @param folders Folders of the model; the first file of each name is read. Empty for a model without a folder.
 * @param named Path of a tokenizer.json, instead of the one in the folders.
 * @throws UserError when a file is not valid.
 */
export async function openModelText(
  folders: readonly string[],
  asked?: string,
): Promise<ModelText> {
  const named = asked === undefined ? undefined : tokenizerFile(asked);
  const searched = named === undefined ? folders : [path.dirname(named), ...folders];
  const find = (name: string) => existingFile(searched, name);
  const [tokenizerConfig, generation, config] = await Promise.all([
    configAt(find('tokenizer_config.json')),
    configAt(find('generation_config.json')),
    configAt(find('config.json')),
  ]);
  const own = tokenizerConfig?.config ?? {};
  const file = named ?? find('tokenizer.json');
  const tokenizer =
    file === undefined
      ? undefined
      : await TextTokenizer.open(file, { config: own, isFound: file !== asked });
  const specialTokens = specialTokensOf(own, tokenizer, config?.config ?? {});
  return {
    tokenizer,
    template: await templateOf(tokenizerConfig, find('chat_template.jinja')),
    specialTokens,
    endIds: endIdsOf(generation?.config ?? config?.config ?? {}, tokenizer, specialTokens),
    generation,
  };
}

/** Whether a tokenizer is in one of the folders of a model. */
export const hasTokenizer = (folders: readonly string[]): boolean =>
  existingFile(folders, 'tokenizer.json') !== undefined;

/**
 * The tokenizer of a model.
 * @param folders Folders that were searched.
 * @throws UserError when there is none.
 */
export function requireTokenizer(
  { tokenizer }: Pick<ModelText, 'tokenizer'>,
  folders: readonly string[],
): TextTokenizer {
  if (tokenizer) return tokenizer;
  const [folder] = folders;
  const model = existingFile(folders, 'tokenizer.model');
  throw usageError(
    model === undefined
      ? `expected a tokenizer.json${folder === undefined ? '' : ` in ${folder}`}, found none`
      : `expected a tokenizer.json, found only ${model}, a SentencePiece model, which is not supported`,
    model === undefined
      ? `name one with ${setting('tokenizer', 'FILE')}, or write token ids: ${setting('ids', '1,2,3')}`
      : 'write a tokenizer.json: AutoTokenizer.from_pretrained(…).save_pretrained(…) in transformers does',
  );
}

const existingFile = (folders: readonly string[], name: string): string | undefined =>
  folders.map((folder) => path.join(folder, name)).find((file) => fs.existsSync(file));

async function configAt(
  file: string | undefined,
): Promise<{ readonly file: string; readonly config: Config } | undefined> {
  if (file === undefined) return undefined;
  const text = await readText(file, {
    most: MAX_CONFIG_BYTES,
    isFound: true,
    suggestion: 'check that it is the file of the model',
  });
  let config: unknown;
  try {
    config = parseJson(text);
  } catch (cause) {
    throw notMapping(file, cause);
  }
  if (!isRecord(config)) throw notMapping(file);
  return { file, config };
}

const notMapping = (file: string, cause?: unknown) =>
  new UserError('refused-file', `${file}: expected a JSON mapping`, {
    cause,
    suggestion: 'give the file as the model was published with it, or remove it',
  });

async function templateOf(
  tokenizerConfig: { readonly file: string; readonly config: Config } | undefined,
  file: string | undefined,
): Promise<ChatTemplate | undefined> {
  if (file !== undefined) {
    const text = await readText(file, {
      most: MAX_CONFIG_BYTES,
      isFound: true,
      suggestion: 'check that it is the file of the model',
    });
    return { text, file };
  }
  const text = defaultTemplate(tokenizerConfig?.config.chat_template);
  return text === undefined ? undefined : { text, file: tokenizerConfig?.file ?? '' };
}

/** A template, or the default of a list of named templates. */
function defaultTemplate(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return undefined;
  const named = value.filter(isRecord).find(({ name }) => name === 'default');
  return typeof named?.template === 'string' ? named.template : undefined;
}

const NAMES = [
  'bos_token',
  'eos_token',
  'pad_token',
  'unk_token',
  'sep_token',
  'cls_token',
] as const;

/**
 * Special tokens. A token is a text, or a mapping with its content. Without a tokenizer_config.json its id is in
 * config.json.
 */
function specialTokensOf(
  own: Config,
  tokenizer: TextTokenizer | undefined,
  config: Config,
): Record<string, string> {
  const tokens: Record<string, string> = {};
  for (const name of NAMES) {
    const value = own[name];
    const content = isRecord(value) ? value.content : value;
    const id = config[`${name}_id`];
    const byId = typeof id === 'number' ? tokenizer?.tokenOf(id) : undefined;
    const text = typeof content === 'string' ? content : byId;
    if (text !== undefined) tokens[name] = text;
  }
  return tokens;
}

function endIdsOf(
  { eos_token_id: ids }: Config,
  tokenizer: TextTokenizer | undefined,
  { eos_token: token }: Readonly<Record<string, string>>,
): number[] {
  const listed = (Array.isArray(ids) ? ids : [ids]).filter((id) => Number.isInteger(id));
  const own = token === undefined ? undefined : tokenizer?.idOf(token);
  return [...new Set<number>(own === undefined ? listed : [...listed, own])];
}
