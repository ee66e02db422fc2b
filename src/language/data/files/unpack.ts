/** Unpacks gzip and Zstandard as streams, within limits. */
import { PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { Decompress } from 'fzstd';
import { UserError } from '../../../base/errors.js';
import { refuseTooMuch } from './packing.js';
import { ZstdFrames } from './zstd-frames.js';

/** @throws UserError for broken data, and for those that unpack to too much. */
export async function* gunzipped(
  name: string,
  packed: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  const output = new PassThrough();
  const unzip = createGunzip();
  const done = pipeline(Readable.from(packed), unzip, output);
  done.catch(() => {});
  let bytes = 0;
  try {
    for await (const chunk of output) {
      bytes += chunk.length;
      refuseTooMuch(name, 'gzip', unzip.bytesWritten, bytes);
      yield chunk;
    }
    await done;
  } catch (cause) {
    throw brokenData(name, 'gzip', cause);
  }
}

/** @throws UserError for broken data, and for those that unpack to too much. */
export async function* unzstd(name: string, packed: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const frames = new ZstdFrames(name);
  let [packedBytes, bytes] = [0, 0];
  let pieces: Uint8Array[] = [];
  const stream = new Decompress((piece) => {
    bytes += piece.length;
    refuseTooMuch(name, 'zstd', packedBytes, bytes);
    pieces.push(piece);
  });
  const takePieces = () => {
    const taken = pieces;
    pieces = [];
    return taken.filter(({ length }) => length > 0);
  };
  try {
    for await (const chunk of packed) {
      packedBytes += chunk.length;
      frames.check(chunk);
      stream.push(chunk);
      for (const piece of takePieces())
        yield Buffer.from(piece.buffer, piece.byteOffset, piece.length);
    }
    frames.end();
  } catch (cause) {
    throw brokenData(name, 'zstd', cause);
  }
}

function brokenData(name: string, packing: string, cause: unknown): unknown {
  if (cause instanceof UserError) return cause;
  return new UserError('refused-file', `${name}: the ${packing} data is broken or cut short`, {
    cause,
    suggestion: 'copy the file again, or give the unpacked one',
  });
}
