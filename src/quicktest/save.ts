import type { TensorToWrite } from '../checkpoint/safetensors/write.js';
import { writeSafetensors } from '../checkpoint/safetensors/write.js';
import { writeWhole } from '../files/write-whole.js';
import type { RunOutput, Values } from '../runtime/engine.js';

/**
 * Writes `logits` [B, T, V], and every block's output `hidden.{i}` [B, T, H], whole or not at all.
 * @param force Whether to replace a file that exists already.
 * @throws UserError when the file cannot be written.
 */
export async function saveOutput(
  file: string,
  force: boolean,
  { output, blocks }: Pick<RunOutput, 'output' | 'blocks'>,
): Promise<void> {
  const hidden = [...blocks.values()].map((value, index) => toWrite(`hidden.${index}`, value));
  await writeWhole(file, force, (sink) =>
    writeSafetensors(sink, [toWrite('logits', output), ...hidden]),
  );
}

const toWrite = (name: string, { shape, data }: Values): TensorToWrite => ({
  name,
  dtype: 'F32',
  shape,
  chunks: () => [new Uint8Array(data.buffer, data.byteOffset, data.byteLength)],
});
