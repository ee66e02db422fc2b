/** What helps when bytes are missing. */
export const FETCH_AGAIN = 'copy or download the file again';

/** What helps when bytes are wrong. */
export const SAVE_AGAIN = 'download the file again, or save it again with the safetensors library';

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
