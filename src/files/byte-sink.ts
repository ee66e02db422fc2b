/** Where a writer puts its bytes, one after the other. */
export interface ByteSink {
  /** Bytes written so far. */
  readonly position: number;
  /** Takes the bytes before it resolves: the caller may reuse their memory then. */
  write(bytes: Uint8Array): Promise<void>;
}

/** The bytes of a tensor, contiguous and little-endian, in pieces that may reuse their memory. */
export type Chunks = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
