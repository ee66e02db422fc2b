import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { PURPOSES } from '../../src/estimate/fit/purpose.js';
import { onFileEnd } from '../cleanup.js';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';
import { sampled } from '../sampled.js';

// One question to several commands has one answer, and each proposal does what it promises.

/** Models from 14M to 671B parameters: dense, mixtures, hybrids, recurrent, quantized. */
const MODELS = [
  'pythia-70m',
  'qwen3-8b',
  'deepseek-v3-main',
  'gpt-oss-20b',
  'mamba-2.8b',
  'llama-2-7b',
  'qwen3-30b-a3b',
  'falcon-mamba-7b',
  'llama-3.1-405b',
  'jamba-v0.1',
  'gemma-2-9b',
  'qwen2.5-72b',
  'mixtral-8x7b',
  'lfm2-1.2b',
  'nemotron-h-8b',
  'bamba-9b',
  'bloom-7b1',
  'ernie-4.5-21b-a3b',
  'glm-4.5-air',
  'gpt-neox-20b',
  'gpt-oss-120b',
  'gpt2-xl',
  'granite-4.0-h-small',
  'lfm2-8b-a1b',
  'llama-3.1-8b',
  'mamba2-1.3b',
  'minimax-m2',
  'mistral-7b-v0.1',
  'phi-3-mini',
  'qwen3-14b',
] as const;

const MACHINES = [
  'rtx-3060-12gb',
  't4',
  'l4',
  'rtx-4090',
  'rtx-5090',
  'l40s',
  'a100-80gb',
  'h100-80gb',
  'm4-max-128gb',
  'h200',
  'mi300x',
  'dgx-h100',
] as const;

type Machine = (typeof MACHINES)[number];

const configOf = (model: string) => inPackage('fixtures', 'hf-configs', model, 'config.json');

/** Every pair; the models of one machine after the other, so that a sample has all machines. */
const PAIRS = MODELS.flatMap((model, at) =>
  MACHINES.map((_, index) => ({
    model,
    machine: MACHINES[(index + at) % MACHINES.length] as Machine,
  })),
);

/** Words on stderr that a proposal must not cause. */
const COMPLAINTS = /warning|error|not used|is not counted/;

async function answerOf(words: readonly string[]) {
  const { code, stdout, stderr } = await runHere([...words, '--json']);
  expect(
    { code, complaint: COMPLAINTS.exec(stderr)?.[0] },
    `${words.join(' ')}\n${stderr}`,
  ).toEqual({
    code: 0,
    complaint: undefined,
  });
  return JSON.parse(stdout);
}

/** Answers to questions that several tests ask. */
const known = new Map<string, Promise<Answer>>();

// biome-ignore lint/suspicious/noExplicitAny: the answers are JSON of several commands
type Answer = any;

function once(...words: readonly string[]): Promise<Answer> {
  const key = words.join(' ');
  const found = known.get(key) ?? answerOf(words);
  known.set(key, found);
  return found;
}

const bytes = ({ value }: { readonly value: number | string }): number => Number(value);
const boundsOf = ({ lower, expected, upper }: Answer) => [lower, expected, upper].map(bytes);

describe('one question to several commands', () => {
  for (const { model, machine } of sampled(PAIRS, 59)) {
    it(`has one answer: ${model} on ${machine}`, async () => {
      const config = configOf(model);
      const fit = await once('fit', config, '--gpu', machine);
      await hasAnswerOfTable(fit, config, machine);
      await hasExactBytesOfProfile(fit, config);
      await hasMemoryOfTrainPlan(fit, config, machine);
      await hasAnswerOfEachQuestion(fit, config, machine);
      if (machine === 'h100-80gb') await hasMemoryOnGpuOfProfile(fit, config);
    });

    it(`has proposals that do what they promise: ${model} on ${machine}`, async () => {
      const config = configOf(model);
      const fit = await once('fit', config, '--gpu', machine);
      await keepsPromises(fit, [config, '--gpu', machine]);
    });
  }
});

async function hasAnswerOfTable(fit: Answer, config: string, machine: string): Promise<void> {
  const { rows } = await once('fit', config);
  const { cells, unit } = rows.find(({ name }: Answer) => name === machine);
  const { weights } = fit.serving.setting;
  const cellFor = (use: string) =>
    cells.find(
      (cell: Answer) => cell.use === use && (use !== 'serve' || cell.dtype === weights.dtype),
    );
  expect(fit.cluster.gpus).toBe(unit);
  const verdicts = ['serve', 'lora', 'qlora', 'train'].map((use) => cellFor(use).verdict);
  const { training, serving } = fit;
  expect(verdicts).toEqual([
    ...[serving.fit, training.lora, training.qlora, training.fit].map(({ verdict }) => verdict),
  ]);
  expect(cellFor('qlora').gpus, 'GPUs of QLoRA').toBe(training.qlora.gpus);
  expect(cellFor('lora').gpus, 'GPUs of LoRA').toBe(fit.training.lora.gpus);
  expect(cellFor('train').gpus, 'GPUs of a training').toBe(fewestGpus(fit.training.fit, unit));
}

/** Fewest GPUs by the answer for one machine: without changes, or by one of the proposals that keep the training. */
function fewestGpus({ verdict, remedies }: Answer, unit: number): number | null {
  if (verdict === 'fits') return unit;
  const same = remedies.filter(
    ({ flags: { optimizer, context } }: Answer) => optimizer === undefined && context === undefined,
  );
  const gpus = same.map(({ flags }: Answer) => flags.cluster?.gpus ?? unit);
  return gpus.length > 0 ? Math.min(...gpus) : null;
}

async function hasExactBytesOfProfile(fit: Answer, config: string): Promise<void> {
  const profile = await once('profile', config);
  const { rows } = await once('compare', config);
  const [{ figures }] = rows;
  const { training, serving } = fit;
  const [stage] = training.fit.stages;
  expect(bytes(profile.training.total)).toBe(bytes(stage.exactBytes));
  expect(Number(figures['training-memory'])).toBe(bytes(stage.exactBytes));
  expect(profile.weights.dtype).toBe(serving.setting.weights.dtype);
  const { tensorParallel, dataParallelAttention = 1 } = serving.setting;
  const one = tensorParallel * dataParallelAttention === 1;
  const parts = [serving.fit.wholeWeights, serving.fit.cachePerSequence, serving.fit.state].map(
    bytes,
  );
  const served = parts.reduce((sum, each) => sum + each, 0);
  if (one) expect(bytes(profile.inference.total)).toBe(served);
  expect(Number(figures['inference-memory'])).toBe(bytes(profile.inference.total));
  expect(Number(figures.weights)).toBe(bytes(profile.inference.weights));
}

/** A question alone has the same answer as together with the others. */
async function hasAnswerOfEachQuestion(fit: Answer, config: string, machine: string) {
  const alone = (purpose: string) => once('fit', config, '--gpu', machine, '--for', purpose);
  const { training, serving } = fit;
  expect((await alone('serving')).serving.fit).toEqual(serving.fit);
  expect((await alone('training')).training).toEqual(training);
  expect((await alone('lora')).adapters.fit).toEqual(training.lora);
  expect((await alone('qlora')).adapters.fit).toEqual(training.qlora);
}

/** The estimates of a profile are those of one H100. */
async function hasMemoryOnGpuOfProfile({ training, serving }: Answer, config: string) {
  const { onGpu } = await once('profile', config);
  expect(boundsOf(onGpu.training)).toEqual(boundsOf(training.fit.total));
  if (serving.setting.tensorParallel > 1) return;
  expect(boundsOf(onGpu.serving)).toEqual(boundsOf(serving.fit.total));
}

async function hasMemoryOfTrainPlan(fit: Answer, config: string, machine: string): Promise<void> {
  const { hardware } = await answerOf([
    ...['train-plan', config, '--gpu', machine, '--steps', '1000'],
    ...['--batch', '1', '--accumulation', '1'],
  ]);
  const { total, verdict, step } = fit.training.fit;
  expect(hardware).toMatchObject({
    verdict,
    memory: { lower: total.lower.value, expected: total.expected.value, upper: total.upper.value },
    tokensPerSecond: step?.tokensPerSecond.value ?? null,
  });
}

/** Names of flags whose settings are called otherwise. */
const FLAGS: Readonly<Record<string, string>> = { globalBatchTokens: 'global-batch' };

/** Words of a proposal. */
function wordsOf(flags: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(flags).flatMap(([name, value]) => {
    if (name === 'cluster') {
      const { gpus, machine } = value as { gpus: number; machine?: string };
      return [...(machine === undefined ? [] : ['--gpu', machine]), '--gpus', String(gpus)];
    }
    if (name === 'offload') return ['--offload', (value as { part: string }).part];
    const flag = `--${FLAGS[name] ?? name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    return value === true ? [flag] : [flag, String(value)];
  });
}

/** The line with the flags of a proposal in the place of its own. */
const changed = (line: readonly string[], flags: readonly string[]): string[] => [
  ...(flags.includes('--gpu') ? line.slice(0, line.indexOf('--gpu')) : line),
  ...flags,
];

async function keepsPromises(
  { training, serving }: Answer,
  line: readonly string[],
): Promise<void> {
  for (const { flags, total, tokensPerSecond } of training.fit.remedies) {
    const words = ['fit', ...changed(line, wordsOf(flags)), '--for', 'training', '--check'];
    const { fit } = (await answerOf(words)).training;
    expect(
      {
        verdict: fit.verdict,
        upper: fit.total.upper.value,
        speed: fit.step?.tokensPerSecond.value,
      },
      words.join(' '),
    ).toEqual({ verdict: 'fits', upper: total.upper.value, speed: tokensPerSecond?.value });
  }
  for (const { flags, total } of serving.remedies) {
    const words = ['fit', ...changed(line, wordsOf(flags)), '--for', 'serving', '--check'];
    const { fit } = (await answerOf(words)).serving;
    expect({ verdict: fit.verdict, upper: fit.total.upper.value }, words.join(' ')).toEqual({
      verdict: 'fits',
      upper: total.upper.value,
    });
  }
  for (const purpose of ['lora', 'qlora'] as const) {
    const { remedies } = (await once('fit', ...line, '--for', purpose)).adapters;
    for (const { flags, total } of remedies) {
      const words = ['fit', ...changed(line, wordsOf(flags)), '--for', purpose, '--check'];
      const { fit } = (await answerOf(words)).adapters;
      expect({ verdict: fit.verdict, upper: fit.total.upper.value }, words.join(' ')).toEqual({
        verdict: 'fits',
        upper: total.upper.value,
      });
    }
  }
  for (const question of [[], ...PURPOSES.map((purpose) => ['--for', purpose])]) {
    await runsNext(['fit', ...line, ...question]);
    await runsNext(['fit', line[0] as string, ...question]);
  }
}

/** Next commands that ran. */
const ran = new Map<string, Promise<void>>();

/**
 * Runs the next command of an answer: it has no warning, and fits what it was proposed for. Without any hardware that
 * is enough, the table proposes a detail, which says what is missing.
 */
function runsNext(words: readonly string[]): Promise<void> {
  const key = words.join(' ');
  const known = ran.get(key) ?? runNext(words);
  ran.set(key, known);
  return known;
}

async function runNext(words: readonly string[]): Promise<void> {
  const { stdout } = await runHere(words);
  const next = /^Next: minimind (.*?)(?: {2,}Details: .*)?$/m.exec(stdout)?.[1];
  if (next === undefined) return;
  const answer = await answerOf(next.split(' '));
  const { fit, places } = answer.adapters ?? answer[answer.purpose];
  const { verdict } = places?.isAsked ? places : fit;
  if (/^[^:]*: no listed GPU/.test(stdout)) expect(verdict, next).not.toBe('fits');
  else expect(verdict, next).toBe('fits');
}

describe('the plan of a model', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  onFileEnd(() => fs.rmSync(folder, { recursive: true }));

  for (const machine of sampled(
    MACHINES.filter((each) => each !== 'dgx-h100'),
    11,
  )) {
    it(`has the speed and memory of fit and profile on ${machine}`, async () => {
      const file = path.join(folder, `${machine}.yaml`);
      const plan = ['plan', '--max-params', '30M', '--gpu', machine, '--top', '1'];
      const { rows } = await answerOf([...plan, '--save', file, '--row', '1']);
      const [{ memory, decode }] = rows;
      const { serving } = await answerOf(['fit', file, '--gpu', machine, '--for', 'serving']);
      expect(boundsOf(decode)).toEqual(boundsOf(serving.fit.decode.tokensPerSecond));
      expect(bytes(memory)).toBe(bytes((await answerOf(['profile', file])).inference.total));
    });
  }
});

it('lists models that are there', () => {
  for (const model of MODELS) expect(fs.existsSync(configOf(model)), model).toBe(true);
});
