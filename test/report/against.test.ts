import { describe, expect, it } from 'vitest';
import type { TwoModelComparison } from '../../src/engine/compare/compare-outputs.js';
import { proofText } from '../../src/report/convert/convert-report.js';
import { againstReport } from '../../src/report/quick-test/against.js';
import { renderTable } from '../../src/report/render/table.js';
import { CPU_CHECK, CPU_ENGINE } from './engine.js';

const PLAIN = { width: Number.POSITIVE_INFINITY, colourLevel: 0 } as const;

const side = (checkpoint: string) => ({
  file: 'model.yaml',
  family: 'hybrid',
  checkpoint,
  parameters: 16_920,
  weights: 'checkpoint' as const,
  mode: 'whole' as const,
  engine: CPU_ENGINE,
  selfCheck: CPU_CHECK,
});

const block = (number: number, relativeDifference: number) => ({
  block: `layers.${number}`,
  other: `layers.${number}`,
  relativeDifference,
  largestDifference: relativeDifference * 2,
});

const against = (given: Partial<TwoModelComparison> = {}): TwoModelComparison => ({
  ids: 'random',
  batch: 1,
  context: 48,
  seed: 7,
  own: side('old.pt'),
  other: side('new.safetensors'),
  logits: {
    largestDifference: 3.125,
    meanDifference: 0.00025,
    relativeDifference: 0.5,
    klDivergence: 0.0727,
    topAgreement: 0.9375,
  },
  blocks: [block(0, 0), block(1, 1e-6), block(2, 0.25)],
  blocksDiffer: null,
  threshold: 5e-5,
  partsAt: 'layers.2',
  ...given,
});

const lines = (given?: Partial<TwoModelComparison>) =>
  renderTable(againstReport(against(given), { flat: false }), { ...PLAIN, details: true }).split(
    '\n',
  );

describe('the report of two models', () => {
  it('shows the models, their difference and the first block that differs', () => {
    expect(lines()).toEqual([
      'model: different from layers.2 on (KL 0.0727 nats, same top token 93.8%)',
      '  model    model.yaml (hybrid, 16,920 parameters), weights of old.pt',
      '  against  model.yaml (hybrid, 16,920 parameters), weights of new.safetensors',
      '  input    1 × 48 random tokens, seed 7, the same for both',
      '  engine   ONNX Runtime 1.30.0 (cpu), 2 threads, self-check error 1.1e-7',
      '',
      'logits                 value',
      '───────────────────  ───────',
      'largest difference      3.13',
      'mean difference      2.50e-4',
      'relative difference    50.0%',
      'KL divergence, nats   0.0727',
      'same top token         93.8%',
      '',
      'Difference by block',
      "Relative difference of each block's output, ‖own − other‖ / ‖own‖. It is above 0.005% from layers.2 on; rounding usually stays below.",
      '',
      'block     relative                    largest',
      '────────  ────────  ────────────────  ───────',
      'layers.0        0%                          0',
      'layers.1   <0.001%                    2.00e-6',
      'layers.2     25.0%  ████████            0.500',
      'logits       50.0%  ████████████████     3.13',
    ]);
  });

  it('draws no bars for rounding', () => {
    const same = { largestDifference: 1e-7, relativeDifference: 1e-7 };
    const logits = { ...against().logits, ...same };
    const text = lines({ partsAt: null, blocks: [block(0, 1e-7)], logits });
    expect(text[0]).toBe('model: equal within rounding (no difference above 0.005%)');
    expect(text.join('')).not.toMatch(/[█▌]/);
  });

  it('shows the reason for missing blocks, and infinite values', () => {
    const infinite = Number.POSITIVE_INFINITY;
    const logits = { ...against().logits, klDivergence: infinite, relativeDifference: infinite };
    const reason = 'one model has 1 block, the other 2';
    const text = lines({ partsAt: 'logits', blocks: null, blocksDiffer: reason, logits });
    expect(text[0]).toBe('model: the logits differ (KL infinite nats, same top token 93.8%)');
    expect(text).toContain(`Only logits are compared: ${reason}.`);
    expect(text.filter((line) => /infinite$/.test(line))).toHaveLength(2);
  });

  it('names both engines if there are two', () => {
    const other = { ...side('old.pt'), engine: { ...side('').engine, name: 'tfjs' as const } };
    const text = lines({ other });
    expect(text[1]).toMatch(/^ {2}model .*weights of old\.pt$/);
    expect(text[2]).toMatch(/^ {2}engine {3}ONNX Runtime /);
    expect(text[3]).toMatch(/^ {2}against {2}TensorFlow\.js /);
    expect(text[4]).toBe('  input    1 × 48 random tokens, seed 7, the same for both');
  });
});

describe('the proof of a conversion', () => {
  const infinite = { ...against().logits, relativeDifference: Number.POSITIVE_INFINITY };
  const difference = 'logits differ by 50.0% (KL divergence 0.0727 nats, same top token 93.8%)';

  it.each([
    ['same', against(), 'logits equal within rounding'],
    ['differs', against(), difference],
    ['failed', against(), `FAILED: no value should change, but ${difference}`],
    [
      'failed',
      against({ logits: infinite }),
      'FAILED: no value should change, but logits are not finite and cannot be compared',
    ],
  ] as const)('has the verdict %s', (verdict, comparison, text) => {
    expect(proofText(verdict, comparison)).toBe(text);
  });
});
