import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Staging } from '../../src/files/staging.js';
import { inFolder, options, putTexts, STAGING, textsIn, writeAll } from './outputs.js';

const MODEL = { 'model.safetensors': 'new weights', 'config.yaml': 'new config' };
const OLD = { 'model.safetensors': 'old weights', 'tokenizer.json': '{}' };
const AS_FILE = { 'config.yaml': 'new config', out: 'new weights' };

const out = () => inFolder('out');

async function build(
  texts = MODEL,
  changed: Parameters<typeof options>[0] = {},
): Promise<string[]> {
  const staging = await Staging.open(out(), options(changed));
  const written = await writeAll(staging, texts);
  await staging.commit();
  return written;
}

describe('a folder', () => {
  it('is there at the end, at once, and nothing beside it', async () => {
    const staging = await Staging.open(out(), options());
    await writeAll(staging, MODEL);
    expect(fs.readdirSync(inFolder())).toEqual([STAGING]);
    await staging.commit();
    expect(fs.readdirSync(inFolder())).toEqual(['out']);
    expect(textsIn('out')).toEqual(MODEL);
  });

  it('takes the place of an empty one', async () => {
    fs.mkdirSync(out());
    await build();
    expect(textsIn()).toEqual({
      'out/config.yaml': 'new config',
      'out/model.safetensors': 'new weights',
    });
  });
});
