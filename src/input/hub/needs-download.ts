/** The error for a model of the hub whose weights have to be on disk. */
import { type UserError, usageError } from '../../base/errors.js';
import { downloadLine } from '../../base/text/hub-names.js';
import { shellWord } from '../../base/text/shell-words.js';
import { type HubReference, parseHubReference } from './reference.js';

/** @param what What reads the model: a command or a function. */
export function needsDownload(
  what: string,
  { repository, revision, file }: HubReference,
): UserError {
  const folder = repository.slice(repository.indexOf('/') + 1);
  const at = revision === undefined ? '' : ` --revision ${shellWord(revision)}`;
  return usageError(
    `${what} needs local files, and downloads none from the hub`,
    `write ${downloadLine(repository)}${at}, then name ./${folder}${file === undefined ? '' : `/${file}`}`,
  );
}

/** @throws UserError for a reference to the hub. */
export function refuseHub(what: string, reference: string | undefined): void {
  if (reference?.startsWith('hf:')) throw needsDownload(what, parseHubReference(reference));
}
