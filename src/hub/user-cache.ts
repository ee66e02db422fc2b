/**
 * The user's cache of huggingface_hub, which is read and never written.
 * https://huggingface.co/docs/huggingface_hub/guides/manage-cache
 */
import fs from 'node:fs';
import path from 'node:path';
import { isCommit, isRepositoryPath } from './reference.js';

/** Tag of a file in the cache: blobs are named after it. Undefined where the cache has copies instead of links. */
export const blobNameOf = (file: string): string | undefined =>
  path.basename(path.dirname(file)) === 'blobs' ? path.basename(file) : undefined;

export class UserCache {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Commit of a branch or tag when the user last downloaded from it; undefined if nothing of that commit is here. */
  commitOf(repository: string, revision: string): string | undefined {
    try {
      const refs = path.join(this.#repository(repository), 'refs');
      const commit = fs.readFileSync(path.join(refs, ...revision.split('/')), 'utf8').trim();
      return isCommit(commit) && this.names(repository, commit).length > 0 ? commit : undefined;
    } catch {
      return undefined;
    }
  }

  /** Paths of the files of a commit that are here. */
  names(repository: string, commit: string): string[] {
    try {
      const folder = this.#snapshot(repository, commit);
      return fs
        .readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .map((name) => name.replaceAll(path.sep, '/'))
        .filter((name) => isRepositoryPath(name) && this.pathOf(repository, commit, name));
    } catch {
      return [];
    }
  }

  /** Place of a file; undefined if it is not here, or is a link that leaves the folder of the repository. */
  pathOf(repository: string, commit: string, name: string): string | undefined {
    try {
      const file = fs.realpathSync(
        path.join(this.#snapshot(repository, commit), ...name.split('/')),
      );
      const home = fs.realpathSync(this.#repository(repository));
      const isInside = file.startsWith(home + path.sep);
      return isInside && fs.statSync(file).isFile() ? file : undefined;
    } catch {
      return undefined;
    }
  }

  #repository = (repository: string) =>
    path.join(this.#folder, `models--${repository.replaceAll('/', '--')}`);

  #snapshot = (repository: string, commit: string) =>
    path.join(this.#repository(repository), 'snapshots', commit);
}
