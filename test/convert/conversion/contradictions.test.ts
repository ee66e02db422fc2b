/** Requests that contradict themselves or the files around them lose no data and write no wrong config. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { folderOf } from '../../checkpoint/temp-folder.js';
import { inPackage } from '../../fixtures.js';
import { convert, convertTo, type Flags, look, refused, textOf } from './convert.js';

const TRAINED = inPackage('fixtures/old-checkpoint/trained-same-start/checkpoint_step_30.pt');
const CONFIG = fs.readFileSync(path.join(path.dirname(TRAINED), 'config.yaml'), 'utf8');
const SHARED = { layout: 'shared' } as const;
const LOW_RANK = { layout: 'low-rank', rank: 2 } as const;

describe('a report', () => {
  it.each(['in.pt', 'config.yaml', 'out.safetensors', 'out.config.yaml'])(
    'cannot replace a file of the conversion: %s',
    async (name) => {
      const folder = folderOf({ 'in.pt': fs.readFileSync(TRAINED), 'config.yaml': CONFIG });
      const before = fs.readdirSync(folder);
      const at = (file: string) => path.join(folder, file);
      const flags = { ...SHARED, config: at('config.yaml'), force: true, output: at(name) };
      const attempt = convert(at('in.pt'), at('out.safetensors'), flags);
      await expect(attempt).rejects.toThrow(/^the report would replace /);
      expect(fs.readdirSync(folder)).toEqual(before);
    },
  );
});

describe('the folder OUT', () => {
  it.each(['checkpoint_step_1.pt', 'train.bin', 'tokenizer.json'])(
    'is not replaced if it has %s',
    async (name) => {
      const folder = folderOf({ 'out/model.safetensors': 'old', [`out/${name}`]: 'mine' });
      const attempt = convert(TRAINED, path.join(folder, 'out'), { ...SHARED, force: true });
      await expect(attempt).rejects.toThrow(new RegExp(`it (?:has|holds) ${name}`));
      expect(fs.readFileSync(path.join(folder, 'out', name), 'utf8')).toBe('mine');
    },
  );

  it('is not replaced if it has a config that is an input', async () => {
    const folder = folderOf({ 'out/config.yaml': CONFIG });
    const config = path.join(folder, 'out/config.yaml');
    const attempt = convert(TRAINED, path.join(folder, 'out'), { ...SHARED, config, force: true });
    await expect(attempt).rejects.toThrow(/ would replace the input /);
  });

  it('is mentioned in a dry run if it exists', async () => {
    const folder = folderOf({ 'out/config.yaml': CONFIG });
    const { notes } = await convert(TRAINED, path.join(folder, 'out'), {
      ...SHARED,
      dryRun: true,
    });
    expect(notes.at(-1)).toContain('exists already');
  });
});

describe('settings that contradict the requested SRTE', () => {
  it.each<[Flags, string, string]>([
    [SHARED, 'srte_share_across_layers=false', 'sharing would be per-layer, not shared'],
    [SHARED, 'max_position_embeddings=128', 'positions would be 128, not 48'],
    [SHARED, 'srte_factorized_rank=3', 'form would be low-rank, not table'],
    [LOW_RANK, 'srte_factorized_rank=3', 'rank would be 3, not 2'],
    [LOW_RANK, 'srte_encoding=sincos', 'form would be sincos, not low-rank'],
    [{ dtype: 'BF16' }, 'srte_encoding=sincos', 'form would be sincos, not table'],
  ])('are refused: %j with %s', async (flags, setting, message) => {
    const error = await refused(TRAINED, { ...flags, set: [`model.${setting}`] });
    expect(error.message).toContain(message);
  });

  it('are refused without a config', async () => {
    const flags = { ...SHARED, noConfig: true, set: ['model.dropout=0'] };
    expect(textOf(await refused(TRAINED, flags))).toMatch(
      /--set requires a config, found none[^\0]*--config/,
    );
  });
});

describe('additional rows of a target', () => {
  const target = () =>
    path.join(
      folderOf({ 'target.yaml': CONFIG.replace('embeddings: 48', 'embeddings: 128') }),
      'target.yaml',
    );

  it('repeat the table from its first row', async () => {
    const { file, srte } = await convertTo('out', TRAINED, { target: target(), extend: 'repeat' });
    expect(srte?.extension).toBe('repeat');
    const shape = look(file, ({ tensors }) => tensors.get('layers.2.srte.freqs')?.shape);
    expect(shape).toEqual([1, 128, 8]);
  });

  it('are refused if no flag describes their content', async () => {
    expect(textOf(await refused(TRAINED, { target: target() }))).toContain('--extend');
  });

  it('are refused without their number', async () => {
    await expect(refused(TRAINED, { ...SHARED, extend: 'zero' })).resolves.toBeInstanceOf(
      UserError,
    );
  });
});

describe('a config that is not changed', () => {
  const flags = { noConfig: true } as const;
  const hasConfig = (file: string) => look(file, ({ content }) => content.has('config'));

  it('is left out if it would become wrong, and kept otherwise', async () => {
    const changed = await convertTo('out.pt', TRAINED, { ...flags, ...SHARED });
    expect(hasConfig(changed.file)).toBe(false);
    expect(changed.leftOut.map(({ pattern }) => pattern)).toContain('config');
    const moved = await convertTo('out.pt', TRAINED, { ...flags, dtype: 'BF16' });
    expect(hasConfig(moved.file)).toBe(true);
  });
});

it('a cast does not change buffers', async () => {
  const input = inPackage('fixtures/hybrid/shared-sincos/model.safetensors');
  const { file } = await convertTo('out.safetensors', input, { dtype: 'BF16' });
  look(file, ({ tensors }) => {
    expect(tensors.get('shared_srte.inv_freq')?.dtype).toBe('F32');
    expect(tensors.get('norm.weight')?.dtype).toBe('BF16');
  });
});
