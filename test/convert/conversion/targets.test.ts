/** Conversions to a config, and the written configs. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { fileIn, folderOf } from '../../checkpoint/temp-folder.js';
import { inPackage } from '../../fixtures.js';
import { convert, convertTo, digestOf, digests, refused, textOf } from './convert.js';

const FOLDER = inPackage('fixtures/old-checkpoint/trained-same-start');
const INPUT = path.join(FOLDER, 'checkpoint_step_30.pt');
const CONFIG = fs.readFileSync(path.join(FOLDER, 'config.yaml'), 'utf8');
/** Config of the input, with more keys of the model. */
const target = (more: string) =>
  fileIn('target.yaml', CONFIG.replace('model:\n', `model:\n${more}`));
const TIED = target('  tie_word_embeddings: true\n');
const UNTIED = target('');
const [EMBEDDING, HEAD] = ['embed_tokens.weight', 'lm_head.weight'];

describe('a target', () => {
  it('requires --tie if it ties untied weights', async () => {
    const text = textOf(await refused(INPUT, { target: TIED }));
    expect(text).toMatch(/"lm_head\.weight"[^\0]*--tie embed, --tie head or --tie mean/);
  });

  it.each(['embed', 'head'] as const)('ties to the %s, and unties again', async (tie) => {
    const tied = await convertTo('out.pt', INPUT, { target: TIED, tie });
    const expected = digestOf(INPUT, tie === 'head' ? HEAD : EMBEDDING);
    expect(digestOf(tied.file, EMBEDDING)).toBe(expected);
    expect(digestOf(tied.file, HEAD)).toBe(expected);
    const untied = await convertTo('out.pt', tied.file, { target: UNTIED });
    expect(digestOf(untied.file, HEAD)).toBe(expected);
    expect(untied.output.parameters - tied.output.parameters).toBe(53 * 8);
    const { [EMBEDDING]: _, [HEAD]: __, ...others } = digests(INPUT);
    expect(digests(untied.file)).toMatchObject(others);
  });

  it('is refused with every tensor of another size', async () => {
    const wider = fileIn('wider.yaml', CONFIG.replace('vocab_size: 53', 'vocab_size: 64'));
    const text = textOf(await refused(INPUT, { target: wider }));
    expect(text).toContain('tensor "embed_tokens.weight"');
    expect(text).toContain('tensor "lm_head.weight"');
    expect(text).toContain('has the shape [53, 8], expected [64, 8] in the output');
  });

  it('with one pair for all layers gives that pair', async () => {
    const lowRank = target('  srte_factorized_rank: 3\n');
    const shared = fileIn(
      'shared.yaml',
      fs.readFileSync(lowRank, 'utf8').replace('layers: false', 'layers: true'),
    );
    const { file } = await convertTo('out.pt', INPUT, { target: shared });
    const requested = await convertTo('out.pt', INPUT, { layout: 'low-rank', rank: 3 });
    expect(digests(file)).toEqual(digests(requested.file));
  });
});

describe('the config next to an output', () => {
  it('never replaces the config of another checkpoint', async () => {
    const folder = folderOf({ 'config.yaml': 'mine', 'other.safetensors': 'other' });
    const read = (name: string) => fs.readFileSync(path.join(folder, name), 'utf8');
    const out = path.join(folder, 'out.safetensors');
    await convert(INPUT, out, { layout: 'shared', force: true });
    expect([read('config.yaml'), read('other.safetensors')]).toEqual(['mine', 'other']);
    const own = fs
      .readdirSync(folder)
      .filter((name) => name.startsWith('out') && name !== 'out.safetensors');
    expect(own).toHaveLength(1);
    expect(read(own[0] ?? '')).toContain('srte_share_across_layers: true');
    // The next conversion finds it.
    const back = await convertTo('back.pt', out, { layout: 'per-layer' });
    expect(back.input.config?.origin).toBe('beside');
  });
});
