import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { memoryNeed } from '../../../src/engine/memory.js';
import { onnxVersion } from '../../../src/engine/onnx/library.js';
import {
  forwardBytesOf,
  forwardSecondsOf,
} from '../../../src/estimate/fit/serving/this-machine-forward.js';
import type { MeasurementSpread } from '../../../src/estimate/hardware/machine-profile.js';
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import { presetDocument } from '../../../src/model/architecture/presets.js';
import { modelOfConfig } from '../../engine/fixture-models.js';
import { inPackage } from '../../fixtures.js';
import { runCli } from '../../run-cli.js';
import { sampled } from '../../sampled.js';
import { PROFILE } from '../hardware/profiles.js';

describe('seconds of a forward pass', () => {
  const model = modelOfConfig(presetDocument('hybrid', 'tiny').model);
  const secondsOf = (batch: number, tokens: number) =>
    forwardSecondsOf(model, { batch, tokens }, PROFILE);

  it('are bounded in order', () => {
    const { lower, expected, upper } = secondsOf(1, 128);
    expect(lower.value).toBeGreaterThan(0);
    expect(lower.value).toBeLessThan(expected.value);
    expect(expected.value).toBeLessThan(upper.value);
  });

  it('are at least those of the matmuls at the best rate', () => {
    // Projections 64,749,568 and scores 8,388,608 operations, at 120 GFLOP/s; reading the weights takes less.
    const seconds = (64_749_568 + 8_388_608) / 120e9;
    expect(secondsOf(1, 128).lower.value).toBeCloseTo(seconds / (1 + 0.1 + 0.25), 9);
  });

  it('are at least the time to read the weights for one token', () => {
    const { lower } = secondsOf(1, 1);
    expect(lower.value).toBe(Number(lower.inputs.weights) / 17e9 / 1.35);
  });

  it.each([
    ['an idle machine', 0, 0.1],
    ['a machine with half of each core in use', 0.5, 0.6],
    ['a busy machine', 7, 1.1],
    ['a machine of unknown load', null, 1.1],
  ])('are at least those at the best rates of %s, less a margin', (_, leastLoad, margin) => {
    const history = { ...PROFILE.history, leastLoad };
    const profile = { ...PROFILE, history };
    const { lower } = forwardSecondsOf(model, { batch: 1, tokens: 1 }, profile);
    expect(lower.inputs.margin).toBe(margin);
    expect(lower.value * (1 + margin)).toBeCloseTo(Number(lower.inputs.weights) / 17e9, 12);
  });

  it('have a lower bound that holds on an idle machine measured while busy', () => {
    // Two programs for each core: the measured rates are down to half of the possible ones.
    const best = { ...PROFILE, history: { ...PROFILE.history, leastLoad: 1 } };
    const halved = (rate: MeasurementSpread): MeasurementSpread => ({
      least: rate.least / 2,
      median: rate.median / 2,
      most: rate.most / 2,
    });
    const { products, weightBandwidth } = PROFILE.speed;
    const busy = {
      ...best,
      speed: {
        ...PROFILE.speed,
        weightBandwidth: halved(weightBandwidth),
        products: products.map((each) => ({ ...each, flops: halved(each.flops) })),
      },
    };
    const size = { batch: 1, tokens: 512 };
    const flops = Number(forwardSecondsOf(model, size, PROFILE).lower.inputs.flops);
    expect(forwardSecondsOf(model, size, busy).lower.value).toBeLessThan(flops / 120e9);
  });

  it('are estimated at the rate of matmuls of similar size', () => {
    expect(secondsOf(1, 1).expected.inputs.rate).toBe(9e9);
    expect(secondsOf(4, 128).expected.inputs.rate).toBe(80e9);
  });
});

describe('the upper bound of the memory of a forward pass', () => {
  const { models } = JSON.parse(
    fs.readFileSync(inPackage('bench/results/2026-11-22-fit-this-machine-node20.json'), 'utf8'),
  );
  const measured: { most: number; median: { expected: number } }[] = Object.values<{
    bytes: { most: number; median: { expected: number } };
  }>(models).map(({ bytes }) => bytes);

  it('reports how far the stored measurements were above the estimate', () => {
    const { source } = forwardBytesOf({ weightBytes: 1, totalBytes: 1 }).upper;
    const most = Math.max(...measured.map((each) => each.most));
    const more = Math.max(...measured.map((each) => (each.most - 1) * each.median.expected));
    expect(source).toContain(`up to ${most} times what is expected`);
    expect(source).toContain(`and ${Math.round(more / 1e6)} MB more`);
  });

  it('covers the worst measurement, even without the stored results', () => {
    for (const { most, median } of measured) {
      const need = { weightBytes: 1, totalBytes: median.expected };
      expect(forwardBytesOf(need).upper.value).toBeGreaterThan(most * median.expected);
    }
  });
});

describe.skipIf(onnxVersion() === undefined)('the memory that quick-test takes', () => {
  const sizes = [
    ['configs/minimind/minimind2-small.yaml', 512],
    ['configs/hybrid/bench-60m.yaml', 256],
  ] as const;
  it.each(sampled(sizes, 2))(
    'for %s, 1 × %i tokens, exceeds a lower bound of at least a third of the upper one',
    async (file, tokens) => {
      const { model } = await loadModelFile(inPackage(file));
      const { lower, upper } = forwardBytesOf(
        memoryNeed(model, { batch: 1, tokens }, { name: 'onnx' }),
      );
      const size = ['--context', String(tokens), '--only', 'forward'];
      const engine = ['--engine', 'onnx', '--device', 'cpu', '--json'];
      const { memory } = JSON.parse(runCli(['quick-test', file, ...size, ...engine]).stdout);
      // The peak depends on the load of the machine, so only the benchmark compares it with the upper bound.
      expect(memory.peakBytes - memory.startBytes).toBeGreaterThan(lower.value);
      expect(upper.value / lower.value).toBeLessThan(3);
    },
  );
});
