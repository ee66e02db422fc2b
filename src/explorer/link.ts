/** Links that hold a state: JSON, compressed, in the fragment, which browsers send to no server. */
import { type ExplorerState, readState } from './explorer-state.js';

/** Version of the form, for links of later versions. */
const VERSION = '1.';

/** Most bytes of a state: two texts of the largest size. */
const MOST_BYTES = 4_500_000;

/** Fragment of a state, without its `#`. */
export async function linkFragment(state: ExplorerState): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  const packed = await collected(through(bytes, new CompressionStream('deflate-raw')), MOST_BYTES);
  return VERSION + base64Url(packed ?? new Uint8Array());
}

/** State of a fragment, with or without its `#`. Undefined where it has none. */
export async function linkedState(fragment: string): Promise<ExplorerState | undefined> {
  const text = fragment.replace(/^#/, '');
  if (!text.startsWith(VERSION)) return undefined;
  try {
    const packed = bytesOf(text.slice(VERSION.length));
    const stream = through(packed, new DecompressionStream('deflate-raw'));
    const bytes = await collected(stream, MOST_BYTES);
    return bytes && readState(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)));
  } catch {
    return undefined;
  }
}

type Bytes = Uint8Array<ArrayBuffer>;

const through = (bytes: Bytes, transform: CompressionStream | DecompressionStream) =>
  new Blob([bytes]).stream().pipeThrough(transform);

/** All bytes of a stream; undefined for more than the limit, which a short text can unpack to. */
async function collected(stream: ReadableStream<Bytes>, limit: number): Promise<Bytes | undefined> {
  const pieces: Bytes[] = [];
  let size = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size > limit) {
      await reader.cancel();
      return undefined;
    }
    pieces.push(value);
  }
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}

/** Bytes of a piece of `String.fromCharCode`, whose number of arguments is limited. */
const PIECE = 8192;

function base64Url(bytes: Bytes): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += PIECE) {
    text += String.fromCharCode(...bytes.subarray(at, at + PIECE));
  }
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

function bytesOf(text: string): Bytes {
  const decoded = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(decoded, (character) => character.charCodeAt(0));
}
