/** References to models of the Hugging Face hub: `hf:org/name`, with a revision and a file. */

import { usageError } from '../../base/errors.js';
import { quote } from '../../config/quote.js';

const HUB_SCHEME = 'hf:';

export interface HubReference {
  /** `org/name`, or `name` for the oldest models. */
  readonly repository: string;
  /** Branch, tag or commit; undefined for the default branch. */
  readonly revision: string | undefined;
  /** Path of one file in the repository. */
  readonly file: string | undefined;
  /** Path under which the commands know the repository: the reference without its file. */
  readonly root: string;
  /** Path under which the commands know the model: the repository, or the file in it. */
  readonly path: string;
}

/** huggingface_hub/utils/_validators.py, validate_repo_id: letters, digits, `-`, `_` and `.`. */
const NAME = /^[A-Za-z0-9_](?:[\w.-]{0,94}[A-Za-z0-9_])?$/;

const MAX_REVISION = 255;

const EXPECTED = 'hf:ORG/NAME[@REVISION][:FILE]';

/**
 * Parses `hf:org/name[@revision][:file]`. A file can also follow after a slash where there is no revision.
 * @throws UserError for another form, or a name that no repository can have.
 */
export function parseHubReference(text: string): HubReference {
  const invalid = (found: string, suggestion: string) =>
    usageError(`expected ${EXPECTED}, found ${found}`, suggestion);
  const [, names = '', revision, file] = /^hf:([^@:]*)(?:@([^:]*))?(?::(.*))?$/s.exec(text) ?? [];
  const parts = names.split('/');
  if (parts[0] === 'datasets' || parts[0] === 'spaces') {
    throw invalid(quote(text, 200), 'name a model: data sets and spaces are not models');
  }
  const inside = parts.slice(2).join('/');
  if (parts.length > 2 && (revision !== undefined || file !== undefined)) {
    throw invalid(quote(text, 200), `write ${HUB_SCHEME}${parts.slice(0, 2).join('/')}@main:FILE`);
  }
  const repository = parts.slice(0, 2).join('/');
  const wrong = parts.slice(0, 2).find((part) => !isName(part));
  if (wrong !== undefined || names === '') {
    throw invalid(quote(text, 200), 'write it as in hf:Qwen/Qwen3-8B or hf:Qwen/Qwen3-8B@main');
  }
  if (revision !== undefined && !isRevision(revision)) {
    throw invalid(`the revision ${quote(revision, 100)}`, 'name a branch, a tag or a commit');
  }
  const named = (file ?? inside).replace(/^\/+/, '');
  if ((file !== undefined || parts.length > 2) && !isRepositoryPath(named)) {
    throw invalid(`the file ${quote(named, 100)}`, 'write its path in the repository');
  }
  const root = `${HUB_SCHEME}${repository}${revision === undefined ? '' : `@${revision}`}`;
  return {
    repository,
    revision,
    file: named === '' ? undefined : named,
    root,
    // With the slash, paths of the files next to it are found as on a disk.
    path: named === '' ? root : `${root}:/${named}`,
  };
}

/** The path of a reference at a commit, which stays the same when its branch moves. */
export function pinnedPath({ repository, file }: HubReference, commit: string): string {
  const root = `${HUB_SCHEME}${repository}@${commit}`;
  return file === undefined ? root : `${root}:/${file}`;
}

const isName = (part: string) => NAME.test(part) && !part.includes('..') && !part.includes('--');

/** git-check-ref-format: no control characters, spaces, `..`, nor any of `~^:?*[\`. */
const isRevision = (text: string) =>
  text !== '' &&
  text.length <= MAX_REVISION &&
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  !/[\x00-\x20\x7f~^:?*[\\]|\.\.|^\/|\/$|\/\//.test(text);

/** Longest path of a file in a repository, in characters. */
const MAX_PATH = 1024;

/**
 * Whether a path stays in the repository on every system: relative, without `.`, `..`, drives, backslashes and control
 * characters.
 */
export const isRepositoryPath = (name: string): boolean =>
  name !== '' &&
  name.length <= MAX_PATH &&
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  !/[\x00-\x1f\x7f\\:]/.test(name) &&
  name.split('/').every((part) => part !== '' && part !== '.' && part !== '..');

/** Whether a revision is a whole commit, which never changes. */
export const isCommit = (revision: string): boolean => /^[0-9a-f]{40}$/.test(revision);
