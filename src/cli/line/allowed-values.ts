/** Allowed values of a flag or an argument, as errors list them. */

/** Maximum allowed values that an error lists. */
const MOST_LISTED = 24;

/** Allowed values in words. */
export function choicesText(options: readonly string[]): string {
  if (options.length > MOST_LISTED) return `one of ${options.length} values`;
  return options.length > 1 ? `one of ${options.join(', ')}` : options.join();
}

/** Command in a description that lists the allowed values: `(minimind list --details)`. */
const LISTING = /\((minimind [^)]+)\)/;

/** The command that lists more values than an error does. */
export function listingOf({ description = '', options = [] }: Listed): string | undefined {
  const [, listing] = (options.length > MOST_LISTED && LISTING.exec(description)) || [];
  return listing && `see ${listing}`;
}

interface Listed {
  readonly description?: string;
  readonly options?: readonly string[];
}
