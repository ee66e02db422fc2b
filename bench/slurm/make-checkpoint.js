// Makes a sharded checkpoint of random values: layers with an SRTE table and weights, named as a hybrid model's.
// node bench/slurm/make-checkpoint.js FOLDER [gibibytes=4] [shards=8] [layers=16] [weights of a layer=4]
import { randomFillSync } from 'node:crypto';
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import path from 'node:path';

const [folder, gibibytes = 4, shards = 8, layers = 16, weights = 4] = process.argv
  .slice(2)
  .map((word, index) => (index === 0 ? word : Number(word)));
const COLUMNS = 1024;
/** Share of the tables in the checkpoint's bytes. */
const TABLE_SHARE = 1 / 3;

const numbers = (gibibytes * 2 ** 30) / 4 / layers;
const rowsOf = (share) => Math.max(4, Math.floor((numbers * share) / COLUMNS / 4) * 4);
const tableRows = rowsOf(TABLE_SHARE);
const weightRows = Math.max(1, Math.floor((numbers * (1 - TABLE_SHARE)) / COLUMNS / weights));
const width = (rows) => rows * COLUMNS * 4;

const tensors = Array.from({ length: layers }, (_, layer) => [
  { name: `layers.${layer}.srte.freqs`, shape: [1, tableRows, COLUMNS], bytes: width(tableRows) },
  ...Array.from({ length: weights }, (_, number) => ({
    name: `layers.${layer}.w${number}.weight`,
    shape: [weightRows, COLUMNS],
    bytes: width(weightRows),
  })),
]).flat();

/** Random once: values need not differ between pieces to show an error in their order. */
const piece = new Float32Array(2 ** 20);
const random = new Uint32Array(piece.length);
randomFillSync(random);
for (const [index, value] of random.entries()) piece[index] = value / 2 ** 32 - 0.5;
const bytes = new Uint8Array(piece.buffer);

mkdirSync(folder, { recursive: true });
const weight_map = {};
const perShard = Math.ceil(tensors.length / shards);
const names = Array.from(
  { length: Math.ceil(tensors.length / perShard) },
  (_, index) =>
    `model-${String(index + 1).padStart(5, '0')}-of-${String(Math.ceil(tensors.length / perShard)).padStart(5, '0')}.safetensors`,
);
for (const [index, name] of names.entries()) {
  const own = tensors.slice(index * perShard, (index + 1) * perShard);
  let at = 0;
  const header = Object.fromEntries(
    own.map(({ name: tensor, shape, bytes: size }) => {
      weight_map[tensor] = name;
      at += size;
      return [tensor, { dtype: 'F32', shape, data_offsets: [at - size, at] }];
    }),
  );
  const text = JSON.stringify({ __metadata__: { format: 'pt' }, ...header });
  const padded = Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  const file = openSync(path.join(folder, name), 'w');
  writeSync(file, length);
  writeSync(file, padded);
  let from = 4 * ((index * 7919) % 1000);
  for (let left = at; left > 0; ) {
    const some = bytes.subarray(from, Math.min(bytes.length, from + left));
    writeSync(file, some);
    left -= some.length;
    // Another beginning each time, so that no two tensors are alike.
    from = 4 * ((from / 4 + 104_729) % 500_000);
  }
  closeSync(file);
}
const total_size = tensors.reduce((sum, { bytes: size }) => sum + size, 0);
const index = { metadata: { total_size }, weight_map };
writeFileSync(path.join(folder, 'model.safetensors.index.json'), JSON.stringify(index));
