/** Weights on their way into ONNX Runtime, which reads them from files only. */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Param } from '../../architecture/param.js';
import { UserError } from '../../errors.js';
import { TemporaryFolder } from '../../files/temporary.js';
import type { WeightSource } from '../weights.js';
import { aligned, weightBytes } from './weight-bytes.js';

const FLOAT_BYTES = Float32Array.BYTES_PER_ELEMENT;

/** A private file of float32 tensors, which only the user may read, until it is removed. */
export class Spool {
  readonly #tensors: { readonly tensor: Param; readonly position: number }[] = [];
  readonly #folder = temporaryFolder();
  #end = 0;

  /** The file, in a folder of its own. */
  readonly file = path.join(this.#folder.path, randomUUID());

  /** Where in the file a tensor will begin. */
  add(tensor: Param): number {
    const position = aligned(this.#end);
    this.#tensors.push({ tensor, position });
    this.#end = position + tensor.elements * FLOAT_BYTES;
    return position;
  }

  /** Writes all tensors. @throws UserError when the system refuses; and what the source throws. */
  async write(source: WeightSource): Promise<void> {
    try {
      const handle = await open(this.file, 'wx', 0o600);
      try {
        for (const { tensor, position } of this.#tensors) {
          await writeTensor(handle, source, tensor, position);
        }
      } finally {
        await handle.close();
      }
    } catch (error) {
      throw cannotSpool(path.dirname(this.file), this.#end, error);
    }
  }

  /** May be called again, when the system did not let go of the file the time before. */
  remove(): void {
    this.#folder.remove();
  }
}

/** @throws UserError when there is no folder for weights. */
function temporaryFolder(): TemporaryFolder {
  try {
    return new TemporaryFolder();
  } catch (error) {
    const cause = error instanceof UserError && error.cause !== undefined ? error.cause : error;
    throw cannotSpool(os.tmpdir(), 0, cause);
  }
}

async function writeTensor(
  handle: FileHandle,
  source: WeightSource,
  tensor: Param,
  position: number,
): Promise<void> {
  let end = position;
  for (const bytes of weightBytes(source, tensor, 0, tensor.elements)) {
    await writeFully(handle, bytes, end);
    end += bytes.length;
  }
}

async function writeFully(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

function cannotSpool(folder: string, bytes: number, error: unknown): unknown {
  if (!(error instanceof Error && 'syscall' in error)) return error;
  return new UserError('system', `cannot keep weights in ${folder}: ${error.message}`, {
    suggestion:
      bytes === 0
        ? 'set TMPDIR to a folder that can be written to'
        : `set TMPDIR to a folder that has ${Math.ceil(bytes / 1e6)} MB to spare`,
    cause: error,
  });
}
