/** Streams of token ids in binary form, as nanoGPT's prepare.py writes them. */
import { UserError } from '../errors.js';
import { counted } from '../text/words.js';

/** A window of a stream: its last id is the first of the next, so that each id is a target once. */
interface StreamWindow {
  readonly ids: readonly number[];
  /** Number of the window, from 1. */
  readonly line: number;
  readonly fullLength: number;
}

const BYTES = { uint16: 2, uint32: 4 } as const;

/**
 * Windows of `length` ids, the last one shorter.
 * @throws UserError when bytes are left over.
 */
export async function* streamWindows(
  file: string,
  chunks: AsyncIterable<Buffer>,
  kind: keyof typeof BYTES,
  length: number,
): AsyncGenerator<StreamWindow> {
  const size = BYTES[kind];
  let rest: Buffer = Buffer.alloc(0);
  let ids: number[] = [];
  let line = 0;
  for await (const chunk of chunks) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const end = bytes.length - (bytes.length % size);
    for (let at = 0; at < end; at += size) {
      ids.push(size === 2 ? bytes.readUInt16LE(at) : bytes.readUInt32LE(at));
      if (ids.length < length) continue;
      line++;
      yield { ids, line, fullLength: ids.length };
      ids = ids.slice(-1);
    }
    rest = bytes.subarray(end);
  }
  if (rest.length > 0) {
    throw new UserError(
      'refused-file',
      `${file}: expected ids of ${size} bytes, found ${counted(rest.length, 'byte')} left over`,
      {
        suggestion: size === 4 ? 'write --as uint16' : 'copy the file again',
      },
    );
  }
  if (ids.length > (line === 0 ? 0 : 1)) yield { ids, line: line + 1, fullLength: ids.length };
}
