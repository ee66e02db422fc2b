import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';

let folder = '';
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

/** Runs `validate` for a file with this text, in its folder. */
async function validate(text: string, ...args: string[]) {
  fs.writeFileSync(path.join(folder, 'model.yaml'), text);
  return await runHere(['validate', 'model.yaml', ...args], { cwd: folder });
}

describe('the error text', () => {
  it('is exact for srte_encoding: factorized', async () => {
    const { code, stdout, stderr } = await validate('model:\n  srte_encoding: factorized\n');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toBe(`error: model.yaml is not valid: 1 error

error: model.yaml:2:18: model.srte_encoding: unknown encoding "factorized": a factorized SRTE is a learnable one with a rank
  2 │   srte_encoding: factorized
    │                  ^
  → write srte_encoding: learnable and srte_factorized_rank: 128
`);
  });

  it('is exact for num_hidden_layers', async () => {
    const { stderr } = await validate('model:\n  num_hidden_layers: 24\n  gate_rank: 8\n');
    expect(stderr).toBe(`error: model.yaml is not valid: 1 error

error: model.yaml:2:3: model.num_hidden_layers: unknown key "num_hidden_layers"
  2 │   num_hidden_layers: 24
    │   ^
  → did you mean "num_layers"?
`);
  });

  it('is exact for three mistakes in one file', async () => {
    const { stderr } = await validate(
      'model:\n  num_heads: 48\n  gate_rnk: 128\n  vocab_size: "50432"\n',
    );
    expect(stderr).toBe(`error: model.yaml is not valid: 3 errors

error: model.yaml:2:14: model.num_heads: 48 heads do not divide hidden_size 4096
  2 │   num_heads: 48
    │              ^
  → write num_heads: 32

error: model.yaml:3:3: model.gate_rnk: unknown key "gate_rnk"
  3 │   gate_rnk: 128
    │   ^
  → did you mean "gate_rank"?

error: model.yaml:4:15: model.vocab_size: must be an integer ≥ 1, but is "50432"
  4 │   vocab_size: "50432"
    │               ^
  → remove the quotes: 50432
`);
  });

  it('is exact for a mistake in --set', async () => {
    const { stderr } = await validate('model: {}\n', '--set', 'model.num_layer=24');
    expect(stderr).toBe(`error: model.yaml is not valid: 1 error

error: --set model.num_layer=24: unknown key "num_layer"
  → did you mean "num_layers"?
`);
  });
});

describe('validate', () => {
  const presets = fs
    .readdirSync(inPackage('configs/hybrid'))
    .map((name) => `configs/hybrid/${name}`);

  it('finds every preset valid, without a warning', async () => {
    const { code, stdout, stderr } = await runHere(['validate', '--strict', '--json', ...presets]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { files } = JSON.parse(stdout);
    expect(files.map(({ file }: { file: string }) => file)).toEqual(presets);
  });

  it.each([
    ['srte_factorized_rank: 4096', 'the full table will be built'],
    ['global_heads: 33', 'all heads will be global'],
    ['gate_rank: 2049', '2048 will be used'],
    ['pad_token_id: 50432', 'outside a vocabulary of 50432'],
  ])('warns of %s, and refuses it with --strict', async (line, message) => {
    const lax = await validate(`model:\n  ${line}\n`);
    expect(lax.code).toBe(0);
    expect(lax.stderr).toContain('warning: model.yaml:2:');
    expect(lax.stderr).toContain(message);
    const strict = await validate(`model:\n  ${line}\n`, '--strict');
    expect(strict.code).toBe(1);
    expect(strict.stderr).toContain('error: model.yaml:2:');
  });

  it('warns of unknown keys outside model', async () => {
    const { code, stderr } = await validate(
      'model: {}\ntraining:\n  cats: 1\nextra: 1\nhidden_size: 8\n',
    );
    expect(code).toBe(0);
    expect(stderr).toContain('warning: model.yaml:3:3: training.cats: unknown key "cats"');
    expect(stderr).toContain('warning: model.yaml:4:1: extra: unknown key "extra"');
    expect(stderr).toContain(
      'warning: model.yaml:5:1: hidden_size: hidden_size is at the top level',
    );
    expect(stderr).toContain('move it under model:');
  });

  it('accepts empty sections and 1e-5 without a warning', async () => {
    const text = 'model:\n  layer_norm_eps: 1e-5\ntraining:\nsystem:\ndata: {anything: 1}\n';
    expect(await validate(text)).toMatchObject({ code: 0, stderr: '' });
  });

  it.each([
    ['training: {max_seq_length: 70000}\nmodel: {}', 'longer than max_position_embeddings 65536'],
    ['model: {hidden_size: 6, num_heads: 2}', 'the width must be even'],
    ['model: {window_size: 0}', 'must be an integer ≥ 1, but is 0'],
    ['model: {family: llama7}', 'unknown family "llama7"'],
    ['hidden_size: 64\nnum_hidden_layers: 2', 'families read its keys'],
    ['model: {num_layers: 1e9}', '1,000,000,000'],
    ['model: {vocab_size: 9007199254740991}', 'more than 2^53 − 1 elements'],
    ['vocab_size: 100', 'model'],
    ['model: 3', 'model'],
    ['[]', 'must be a mapping'],
    ['', 'empty'],
  ])('refuses %s', async (text, message) => {
    const { code, stderr } = await validate(text);
    expect(code).toBe(1);
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it('reports the mistakes of all files', async () => {
    fs.writeFileSync(path.join(folder, 'good.yaml'), 'model: {}\n');
    fs.writeFileSync(path.join(folder, 'bad.yaml'), 'model: {x: 1}\n');
    const run = await runHere(['validate', 'good.yaml', 'bad.yaml', 'none.yaml', '--json'], {
      cwd: folder,
    });
    expect(run.code).toBe(2);
    const { problems, message } = JSON.parse(run.stdout);
    expect(message).toBe('2 of 3 files are not valid');
    expect(problems.map(({ file }: { file: string }) => file)).toEqual(['bad.yaml', 'none.yaml']);
  });

  it('also reports the valid files', async () => {
    fs.writeFileSync(path.join(folder, 'good.yaml'), 'model: {}\n');
    fs.writeFileSync(path.join(folder, 'bad.yaml'), 'model: {x: 1}\n');
    const { stdout, code } = await runHere(['validate', 'good.yaml', 'bad.yaml'], { cwd: folder });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^1 of 2 files is valid$/m);
    expect(stdout).toMatch(/^good\.yaml +valid +hybrid/m);
    const { stdout: all } = await runHere(['validate', 'good.yaml'], { cwd: folder });
    expect(all.split('\n')[0]).toBe('valid: 1 file');
  });

  const BAD = 'model:\n  num_layer: 3\n  gate_rnk: 8\n';
  const put = (name: string, text: string) => fs.writeFileSync(path.join(folder, name), text);
  const ENDINGS = ['html', 'md', 'csv'] as const;

  it.each(ENDINGS)(
    'writes all files with their problems, places and fixes into %s',
    async (ending) => {
      put('good.yaml', 'model:\n  gate_rank: 2049\n');
      put('bad.yaml', BAD);
      const words = ['bad.yaml', 'good.yaml', '-o', `mixed.${ending}`, '--force'];
      const { code, stdout } = await runHere(['validate', ...words], { cwd: folder });
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      const text = plainText(fs.readFileSync(path.join(folder, `mixed.${ending}`), 'utf8'));
      for (const part of ['bad.yaml', 'good.yaml', 'not valid', 'unknown key "num_layer"']) {
        expect(text).toContain(part);
      }
      for (const fix of ['did you mean "num_layers"?', 'did you mean "gate_rank"?']) {
        expect(text).toContain(fix);
      }
      // The text of the warning of the valid file, not only their number.
      expect(text).toContain('2048 will be used');
      if (ending === 'csv') {
        expect(text).toMatch(/^bad\.yaml,not valid,.*bad\.yaml:2:3: model\.num_layer/m);
      }
    },
  );

  it.each(ENDINGS)('writes %s also when no file is valid', async (ending) => {
    put('bad.yaml', BAD);
    const words = ['bad.yaml', '-o', `bad.${ending}`, '--force'];
    const { code } = await runHere(['validate', ...words], { cwd: folder });
    expect(code).toBe(1);
    const text = plainText(fs.readFileSync(path.join(folder, `bad.${ending}`), 'utf8'));
    expect(text).toContain('unknown key "gate_rnk"');
    const piped = await runHere(['validate', 'bad.yaml', `--format=${formats[ending]}`], {
      cwd: folder,
    });
    expect(plainText(piped.stdout)).toContain('unknown key "gate_rnk"');
  });

  const formats = { html: 'html', md: 'markdown', csv: 'csv' } as const;

  it('names a file that cannot be read beside the valid ones', async () => {
    put('good.yaml', 'model: {}\n');
    const words = ['good.yaml', 'none.yaml', '--format', 'markdown'];
    const { code, stdout } = await runHere(['validate', ...words], { cwd: folder });
    expect(code).toBe(2);
    expect(stdout).toMatch(/none\.yaml.*not valid: 1 error/);
    expect(stdout).toContain('found no file "none.yaml"');
  });

  it('reports a mistake in --set once for many files', async () => {
    const { stderr } = await runHere(['validate', ...presets, '--set', 'model.layerz=1']);
    expect(stderr.match(/unknown key/g)).toHaveLength(1);
  });
});

/** A page, Markdown or CSV with its quotes as they were before they were escaped. */
const plainText = (text: string) =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&#34;', '"')
    .replaceAll('""', '"')
    .replaceAll('\\_', '_');
