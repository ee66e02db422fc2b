import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { runHere } from '../../run-here.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** More than small shards may have together. */
const TENSORS = 50_001;

it('fills up small shards of many tensors, which are read only from larger ones', async () => {
  const entries = Array.from(
    { length: TENSORS },
    (_, at) =>
      `"layer.${at}.weight":{"dtype":"F32","shape":[1],"data_offsets":[${4 * at},${4 * at + 4}]}`,
  );
  const header = Buffer.from(`{${entries.join()}}`);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const input = path.join(folder, 'in.safetensors');
  fs.writeFileSync(input, Buffer.concat([length, header, Buffer.alloc(4 * TENSORS)]));
  const out = path.join(folder, 'out');
  const flags = ['--dtype', 'bf16', '--shard-size', '60KB'];
  const { code, stderr } = await runHere(['convert-checkpoint', input, out, ...flags]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const shards = fs.readdirSync(out).filter((name) => name.endsWith('.safetensors'));
  expect(shards).toHaveLength(2);
  const inspected = await runHere(['inspect', out, '--json=totals']);
  expect(JSON.parse(inspected.stdout)).toMatchObject({ totals: { tensors: TENSORS } });
});
