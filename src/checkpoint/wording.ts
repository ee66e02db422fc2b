/** Words that the refusals of all formats share. */

/** What helps when bytes are missing. */
export const FETCH_AGAIN = 'copy or download the file again';

/** What helps when the bytes of a safetensors file are wrong. */
export const SAVE_SAFETENSORS_AGAIN =
  'download the file again, or save it again with the safetensors library';

const MAX_SHOWN_CHARACTERS = 200;

/** Text out of a file, within a message. It can be as long as the file: a long one loses its end. */
export function quoted(text: string): string {
  const isLong = text.length > MAX_SHOWN_CHARACTERS;
  return JSON.stringify(isLong ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text);
}

export const bytesText = (count: number | bigint) =>
  `${count} ${Number(count) === 1 ? 'byte' : 'bytes'}`;

/** A tensor as the place of a problem. */
export const tensorPlace = (name: string) => `tensor ${quoted(name)}`;

const MAX_LISTED = 10;

/** Names out of a file or a folder, within a message: the first of them, and how many more there are. */
export function listed(names: readonly string[]): string {
  const shown = names.slice(0, MAX_LISTED).map(quoted).join(', ');
  const more = names.length - MAX_LISTED;
  return more > 0 ? `${shown} and ${more} more` : shown;
}

/** What helps with nearly everything that can be wrong with a file of torch.save. */
export const SAVE_TORCH_AGAIN = 'copy or download the file again, or save it again with torch.save';
