import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { spellAsFlags } from '../../src/cli/flag-spelling.js';
import { fitLine, profileLine, validateLine } from '../../src/explorer/command-lines.js';
import type { ExploredModel, ExplorerSetting } from '../../src/explorer/explorer-state.js';
import { onTestEnd } from '../cleanup.js';
import { runHere } from '../run-here.js';
import { isWhole, sampled } from '../sampled.js';
import { NO_BROWSER, NO_LONG_TESTS, NO_LONG_TESTS_NOTE } from './chromium.js';
import { presetsOfPage, stateOf, TINY, withExplorer } from './explorer-page.js';

/** Settings that the presets are combined with, in turn. */
const SETTINGS: readonly ExplorerSetting[] = [
  {},
  { gpu: 'rtx-4090', dtype: 'int4' },
  { gpu: 'h100-80gb', gpus: 8, context: 512, batch: 4 },
  { gpu: 'dgx-h100', users: 3, cacheDtype: 'f8_e4m3' },
  { gpu: 'l4', dtype: 'q4_k_m', microBatch: 2 },
  { gpu: 'mi300x', gpus: 2, dtype: 'f16', trainTokens: 1_000_000_000 },
  { gpu: 'm4-max-128gb', context: 1_000_000_000 },
];

const INVALID = [
  'model:\n  num_layers: 3\n  num_heads: 7\n  hiden_size: 64\n',
  'model: [1, 2\n',
  'model:\n  family: lama\n  hidden_size: many\n',
  'model:\n  num_layers: 2\ntraining:\n  learning_rate: 5\n  max_steps: 10\n',
  '{"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}',
  '',
];

/** As src/explorer/page/answer-texts.ts, whose types are those of a browser. */
type AnswerTexts = Readonly<Record<'validate' | 'profile' | 'fit', string | undefined>>;

interface Case {
  readonly model: ExploredModel;
  readonly setting: ExplorerSetting;
}

function firstDifference(own: string, printed: string): string {
  const lines = printed.split('\n');
  const at = own.split('\n').findIndex((line, index) => line !== lines[index]);
  return `${own.split('\n')[at]} | ${lines[at]}`;
}

function casesOfAll(): Case[] {
  const presets = presetsOfPage().map((model, index) => ({
    model: { ...model, name: `${index}.yaml` },
    setting: SETTINGS[index % SETTINGS.length] ?? {},
  }));
  const invalid = INVALID.map((text, index) => ({
    model: { name: `invalid-${index}.yaml`, text },
    setting: {},
  }));
  return [...presets, ...invalid];
}

/** A sample in the tests of pages, and all in the sweeps. */
const isSkipped = isWhole ? NO_BROWSER : NO_LONG_TESTS;

describe.skipIf(isSkipped)(`answers of the explorer${isSkipped ? NO_LONG_TESTS_NOTE : ''}`, () => {
  test('are the JSON of the commands, for more than 200 configs and settings', {
    timeout: 600_000,
  }, async () => {
    const all = casesOfAll();
    expect(all.length).toBeGreaterThan(200);
    const cases = sampled(all, 14, ({ model }) => /^invalid.*/.exec(model.name)?.[0]);
    const folder = mkdtempSync(path.join(tmpdir(), 'minimind-explorer-'));
    onTestEnd(() => rmSync(folder, { recursive: true, force: true }));
    const found = await withExplorer(stateOf(TINY), async ({ page, messages }) => {
      const answers: AnswerTexts[] = [];
      for (const { model, setting } of cases) {
        answers.push(
          await page.evaluate<AnswerTexts>(
            `explorer.answers(${JSON.stringify(model)}, ${JSON.stringify(setting)})`,
          ),
        );
      }
      expect(messages).toEqual([]);
      return answers;
    });
    spellAsFlags();
    const lines = cases.map(({ model, setting }) => ({
      validate: validateLine(model),
      profile: profileLine(model, setting),
      fit: fitLine(model, setting),
    }));
    const wrong: string[] = [];
    for (const [index, { model }] of cases.entries()) {
      writeFileSync(path.join(folder, model.name), model.text);
      for (const name of ['validate', 'profile', 'fit'] as const) {
        const json = found[index]?.[name];
        if (json === undefined) continue;
        const line = lines[index]?.[name] ?? '';
        const words = line.split(' ').slice(1);
        const { stdout } = await runHere([...words, '--json'], { cwd: folder });
        if (json !== stdout) wrong.push(`${line}: ${firstDifference(json, stdout)}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(found.filter(({ fit }) => fit !== undefined).length).toBeGreaterThan(10);
    expect(found.filter(({ fit }) => fit === undefined).length).toBeGreaterThan(3);
  });
});
