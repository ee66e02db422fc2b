/** Config files with `Infinity`, as Mamba-2 and Nemotron-H are published, through the commands. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import { folderOf } from '../../checkpoint/temp-folder.js';
import { inPackage } from '../../fixtures.js';
import { runHere } from '../../run-here.js';

/** A folder with a `config.json` as Python's json writes it: `Infinity`, `0.0`, `1e-05`. */
function published(name: string): { folder: string; text: string } {
  const folder = folderOf({});
  fs.copyFileSync(
    inPackage('fixtures/hf', name, 'model.safetensors'),
    path.join(folder, 'model.safetensors'),
  );
  const stored = fs.readFileSync(inPackage('fixtures/hf', name, 'config.json'), 'utf8');
  const text = stored
    .replaceAll(/\{\s*"__float__": "(-?Infinity)"\s*\}/g, '$1')
    .replace(/"dtype": (?:null|"float32")/, '"dtype": "float32"');
  expect(text).toMatch(/0\.0,\s+Infinity/);
  fs.writeFileSync(path.join(folder, 'config.json'), text);
  fs.writeFileSync(
    path.join(folder, 'generation_config.json'),
    '{"temperature": 1.0, "bounds": [NaN, -Infinity]}',
  );
  return { folder, text };
}

const configOf = (folder: string) => fs.readFileSync(path.join(folder, 'config.json'), 'utf8');

describe.each(['mamba2', 'nemotron-h-saved'])('%s with Infinity in its config', (name) => {
  it('is converted with every byte of the config that does not change', async () => {
    const { folder, text } = published(name);
    const out = `${folder}-bf16`;
    await runHere(['convert-checkpoint', folder, out, '--dtype', 'bf16']);
    expect(configOf(out)).toBe(text.replace('"dtype": "float32"', '"dtype": "bfloat16"'));
    const same = `${folder}-shards`;
    await runHere(['convert-checkpoint', folder, same, '--shard-size', '20kB']);
    expect(configOf(same)).toBe(text);
    fs.rmSync(out, { recursive: true });
    fs.rmSync(same, { recursive: true });
  });

  it('keeps floats as floats inside a PyTorch file', async () => {
    const { folder } = published(name);
    const out = `${folder}.pt`;
    await runHere(['convert-checkpoint', folder, out, '--dtype', 'f16']);
    const checkpoint = openCheckpoint(out);
    const config = checkpoint.content.get('config') as unknown as { entries: Map<string, unknown> };
    expect(config.entries.get('time_step_limit')).toMatchObject({
      items: [
        { kind: 'float', value: 0 },
        { kind: 'float', value: Number.POSITIVE_INFINITY },
      ],
    });
    fs.rmSync(out);
  });

  it.each([
    ['generate', '--ids', '1,2,3', '--max-tokens', '2'],
    ['quick-test', '--only', 'forward'],
    ['profile'],
    ['verify'],
  ])('is read by %s', async (command, ...flags) => {
    const { folder } = published(name);
    const { code, stdout } = await runHere([command, folder, ...flags, '--json']);
    expect(code).toBe(0);
    expect(() => JSON.parse(stdout)).not.toThrow();
  });
});
