import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import {
  blockNames,
  rmsNormLayer,
  sequence,
  stack,
} from '../../../src/model/architecture/constructors/basic-layers.js';
import { FAMILY_NAMES, loadFamily } from '../../../src/model/architecture/families.js';
import { LimitError, MAX_LAYERS, MAX_TENSORS } from '../../../src/model/architecture/param.js';
import { presetsOf } from '../../../src/model/architecture/presets.js';
import { DECODER_DIMENSIONS } from '../../../src/model/architecture/transformer/settings.js';
import { runHere } from '../../run-here.js';

/** Limit that `make` exceeds. */
function limitOf(make: () => unknown): LimitError {
  try {
    make();
  } catch (error) {
    if (error instanceof LimitError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

/** Keys of the depth in families without dimensions; one of a part has its name before a dot. */
const DEPTHS: Readonly<Record<string, string>> = {
  blt: 'global_config.num_hidden_layers',
  xlm: 'n_layers',
  xlnet: 'n_layer',
  prophetnet: 'num_decoder_layers',
  distilbert: 'n_layers',
  t5: 'num_layers',
  mt5: 'num_layers',
  umt5: 'num_layers',
  clip: 'text.num_hidden_layers',
  siglip: 'text.num_hidden_layers',
  siglip2: 'text.num_hidden_layers',
};

const depthOf = (name: string): string | undefined =>
  name.endsWith('-seq2seq') ? 'encoder_layers' : DEPTHS[name];

/** Families that have as many layers as a list has entries. */
const LISTS: Readonly<Record<string, readonly [key: string, kind: string]>> = {
  nemotron_h: ['layers_block_type', 'mlp'],
  reformer: ['attn_layers', 'local'],
};

describe('every family', () => {
  it.each(FAMILY_NAMES)('refuses 2,001 layers: %s', async (name) => {
    const {
      schema,
      build,
      dimensions = DECODER_DIMENSIONS,
    } = {
      // CodeGen has the keys of GPT-J, and no dimensions of its own.
      ...(name === 'codegen' && { dimensions: (await loadFamily('gptj')).dimensions }),
      // A block of LongCat-Flash has two attentions, which its num_hidden_layers counts.
      ...((name === 'longcat_flash' || name === 'chatglm') && {
        dimensions: { ...DECODER_DIMENSIONS, depth: 'num_layers' },
      }),
      ...(depthOf(name) && { dimensions: { ...DECODER_DIMENSIONS, depth: depthOf(name) ?? '' } }),
      ...(await loadFamily(name)),
    };
    const listed = LISTS[name];
    const key = listed?.[0] ?? dimensions.depth ?? '';
    const layers = listed ? new Array(MAX_LAYERS + 1).fill(listed[1]) : MAX_LAYERS + 1;
    const model = presetsOf(name)[0]?.document.model;
    const [outer = '', inner] = key.split('.');
    const deep = inner ? { [outer]: { [inner]: layers } } : { [key]: layers };
    const document = schema.parse({ model: { family: name, ...model, ...deep } });
    const { path, message } = limitOf(() => build(document));
    expect({ path, message }).toEqual({
      path: `model.${key}`,
      message: 'describes 2,001 layers; the limit is 2,000',
    });
  });
});

describe('blocks', () => {
  const block = (name: string, tensors: number) =>
    sequence(
      name,
      Array.from({ length: tensors }, (_, index) => rmsNormLayer(`${name}.${index}`, 2, 1e-5)),
    );

  it('are refused at the first one if all together would have too many tensors', () => {
    const make = vi.fn((name: string) => block(name, 1000));
    const names = blockNames('layers', 401, 'model.depth');
    const { path, message } = limitOf(() => stack(names, 'model.depth', make));
    expect(path).toBe('model.depth');
    expect(message).toBe(
      'describes at least 401,000 tensor names, 1,000 in each of 401 layers; the limit is 200,000',
    );
    expect(make).toHaveBeenCalledTimes(1);
  });

  it('of growing size are refused at the first one beyond the limit', () => {
    const make = vi.fn((name: string, index: number) => block(name, index === 0 ? 1 : 50_000));
    const { message } = limitOf(() => stack(blockNames('layers', 100, 'model.n'), 'model.n', make));
    expect(message).toBe('describes at least 200,001 tensor names; the limit is 200,000');
    expect(make.mock.calls.length).toBeLessThanOrEqual(2 + MAX_TENSORS / 50_000);
  });
});

describe('a config of four lines', () => {
  it('is refused for too many layers, with their line', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
    try {
      const file = path.join(folder, 'deep.yaml');
      fs.writeFileSync(
        file,
        'model:\n  family: llama\n  hidden_size: 64\n  num_hidden_layers: 65537\n',
      );
      const { code, stderr } = await runHere(['profile', file]);
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr: expect.stringContaining(
          'deep.yaml:4:22: model.num_hidden_layers: describes 65,537 layers; the limit is 2,000',
        ),
      });
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  });
});
