import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadModelFile } from '../../src/input/model-input/read-model-file.js';
import { analyseRope } from '../../src/model/budget/analyse-rope.js';
import type { Format } from '../../src/report/kit/report.js';
import { render } from '../../src/report/render/render.js';
import { ropeReport } from '../../src/report/rope-report.js';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';

const LLAMA = 'fixtures/hf-configs/llama-3.1-8b/config.json';
const rope = (...args: string[]) => runHere(['rope', ...args]);

/** Output of the command, computed in this process. */
async function shown(format: Exclude<Format, 'json'>, width = Number.POSITIVE_INFINITY) {
  const report = ropeReport({
    schema: 'minimind/rope@1',
    family: 'llama',
    ...(await analysisOf(LLAMA, 32768)),
    settings: null,
  });
  return render(report, format, { width, colourLevel: 0, details: true });
}

async function analysisOf(path: string, context: number) {
  const { file, model } = await loadModelFile(path);
  return { file, ...analyseRope(model, { name: file, context }) };
}

describe('minimind rope', () => {
  it('marks the setting of the model, and waves beyond the training length', async () => {
    const { code, stdout } = await rope(LLAMA, '--context', '32768', '--details');
    expect(code).toBe(0);
    expect(stdout).toContain(
      'Trained: 8,192 (original positions of its scaling). Context: 32,768. Factor: 4.',
    );
    expect(stdout).toMatch(/^● own: llama3 +÷ 8, turns 1–4 +29 +5 +30 +0 +1\.0000$/m);
    expect(stdout).toMatch(/^ {2}YaRN +÷ 4, turns 1–32 +19 +16 +29 +0 +1\.1386$/m);
    // The first wave longer than the training length.
    expect(stdout).toMatch(/^34 +6,695 +1\.224 /m);
    expect(stdout).toMatch(/^35 +!8,219 +0\.997 /m);
    expect(stdout).toContain(
      'p plain   l linear   n NTK-aware   y YaRN   3 llama3   * own: llama3 (current)\n',
    );
    expect(stdout).toContain('# several   - trained 8,192   = context 32,768');
  });

  it('has a row for each frequency and method in CSV', async () => {
    const lines = (await shown('csv')).trim().split('\n');
    expect(lines).toHaveLength(1 + 6 * 64);
    expect(lines[0]).toBe(
      'rotary,layers,method,current,frequency,radians_per_position,wavelength_positions,turns_within_training,stretch,change,extrapolated',
    );
    expect(lines[1]).toBe(
      `0,32,plain,false,0,1,${2 * Math.PI},${8192 / (2 * Math.PI)},1,kept,false`,
    );
    expect(lines.at(-1)).toMatch(/^0,32,own,true,63,.*,8,fully,false$/);
  });

  it.each([
    [80, ['own: llama3', '×4.00']],
    [130, ['10,236,782  ×4.00']],
    [200, ['10,236,782  ×4.00']],
  ])('fits %d columns', async (width, parts) => {
    const text = await shown('table', width);
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(width);
    for (const part of parts) expect(text).toContain(part);
    // No table is split into lines of `title: value`.
    expect(text).not.toMatch(/^j: /m);
  });

  it('is Markdown with the plot as code', async () => {
    const text = await shown('markdown');
    expect(text).toContain('```text\nWavelength in positions');
    expect(text).toMatch(/^\| +35 \| +!8,219 \|/m);
  });

  it.each([
    [['--context', '0'], 'expected a positive whole number'],
    [['--context', '9', '--factor', '0.5'], 'expected a factor'],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await rope(LLAMA, ...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it.each([
    ['configs/minimind/minimind2-small.yaml', 'Context: 131,072 (default: 4 × the training)'],
    [LLAMA, 'Context: 131,072 (positions of the config)'],
  ])('has a default context for %s', async (file, text) => {
    expect((await rope(file)).stdout).toContain(text);
  });

  it.each([
    'configs/minimind/minimind2-small.yaml',
    'fixtures/hf-configs/qwen3-8b/config.json',
    'fixtures/hf-configs/pythia-70m/config.json',
  ])('shows settings of %s that work when pasted', async (file) => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-rope-'));
    const { settings, context } = JSON.parse((await rope(file, '--json')).stdout);
    const text = fs.readFileSync(inPackage(file), 'utf8');
    const isJson = settings.format === 'json';
    const pasted = path.join(folder, isJson ? 'config.json' : 'pasted.yaml');
    const { model } = isJson ? { model: undefined } : parse(settings.text);
    const whole = isJson
      ? { ...JSON.parse(text), ...JSON.parse(`{${settings.text}}`) }
      : { ...parse(text), model: { ...parse(text).model, ...model } };
    fs.writeFileSync(pasted, JSON.stringify(whole));
    const after = JSON.parse((await rope(pasted, '--context', String(context), '--json')).stdout);
    fs.rmSync(folder, { recursive: true });
    const own = after.rotaries[0].methods.find((method: { current: boolean }) => method.current);
    expect(own.scaling.kind).toBe('yarn');
    expect(own.counts.extrapolated).toBe(0);
    expect(after.settings).toBeNull();
  });

  it('uses the singular for one position', async () => {
    const { stdout } = await rope('minimind2-small', '--context', '1');
    expect(stdout).toMatch(/^1 position is within the trained 32,768\n/);
  });

  it('reports a family without settings for scaling', async () => {
    const { stdout } = await rope('configs/minigpt/minigpt-small.yaml', '--context', '8192');
    expect(stdout).toContain('The config of this family has no settings for YaRN.');
  });

  it('accepts the largest safe integer as context', async () => {
    const { rotaries, factor } = await analysisOf(LLAMA, Number.MAX_SAFE_INTEGER);
    expect(factor).toBe(Number.MAX_SAFE_INTEGER / 8192);
    expect(rotaries[0]?.methods.find(({ id }) => id === 'linear')?.counts.extrapolated).toBe(0);
  });

  it('names the positions of a model without RoPE', async () => {
    const { code, stderr } = await rope('fixtures/hf/bloom/config.json', '--context', '99');
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /^error: fixtures\/hf\/bloom\/config\.json has no rotary positions: it has ALiBi/,
    );
  });
});
