import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { progressDisplay } from '../../src/cli/progress.js';
import { writeExport } from '../../src/engine/export-files.js';
import type { OnnxExport } from '../../src/engine/onnx-export.js';
import { withFault } from '../base/files/faults.js';
import { inFolder } from '../base/files/outputs.js';

const file = (name: string, text: string) => ({
  name,
  length: text.length,
  pieces: () => [...text].map((letter) => Buffer.from(letter)),
});

const plan = (name: string): OnnxExport => ({
  files: [file(name, 'the graph'), file(`${name}.data`, 'the weights')],
  irVersion: 9,
  operatorSets: [],
  inputs: [],
  outputs: [],
  operators: [],
  weights: { tensors: 0, elements: 0, bytes: 0, dtype: 'F32', quantized: null },
});

const display = progressDisplay({ quiet: true });

const FILES = ['out', 'out.data'];

describe('a full disk at any operation', () => {
  it.each([
    ['leaves no files', [undefined, undefined]],
    ['leaves the old files', ['old graph', 'old weights']],
  ])('%s', async (_, old) => {
    let failures = 0;
    for (let after = 0; ; after++) {
      const place = inFolder(String(after));
      fs.mkdirSync(place);
      for (const [index, name] of FILES.entries()) {
        const text = old[index];
        if (text !== undefined) fs.writeFileSync(path.join(place, name), text);
      }
      const flags = { save: path.join(place, 'out'), force: true, display };
      const fault = { after, lasts: false, code: 'ENOSPC' };
      const { operations, error } = await withFault(fault, () => writeExport(flags, plan));
      const texts = FILES.map((name) => path.join(place, name)).map((file) =>
        fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : undefined,
      );
      expect(texts).toEqual(error === undefined ? ['the graph', 'the weights'] : old);
      if (error !== undefined) failures++;
      if (operations <= after) break;
    }
    expect(failures).toBeGreaterThan(5);
  });

  it('is reported before writing', async () => {
    const huge = { ...file('out', ''), length: Number.MAX_SAFE_INTEGER };
    const given = { save: inFolder('out'), force: false, display };
    await expect(writeExport(given, (name) => ({ ...plan(name), files: [huge] }))).rejects.toThrow(
      /it takes .* and the disk has .* free/,
    );
    expect(fs.readdirSync(inFolder())).toEqual([]);
  });
});
