import { describe, expect, it } from 'vitest';
import { bandwidthOf, peakFor } from '../../../src/estimate/hardware/gpu.js';
import { gpuOfProfile } from '../../../src/estimate/hardware/machine-gpu.js';
import {
  type MachineProfile,
  type MeasurementSpread,
  machineProfileSchema,
  mergedProfile,
  stalenessOf,
} from '../../../src/estimate/hardware/machine-profile.js';
import { PROFILE } from './profiles.js';

const { circumstances } = PROFILE;
const DAY_LATER = new Date('2026-01-16T12:00:00Z');

describe('the GPU of a profile', () => {
  const gpu = gpuOfProfile(PROFILE, 3e9);

  it('has the best measured rates and the current memory', () => {
    expect(gpu).toMatchObject({ name: 'this-machine', memoryBytes: 3e9, links: [] });
    expect(bandwidthOf(gpu)).toMatchObject({ value: 17e9, unit: 'bytes/s' });
    expect(peakFor(gpu, 'bf16')).toMatchObject({ value: 120e9 });
    expect(peakFor(gpu, 'bf16').source).toMatch(/^measured on 2026-01-15 with ONNX .*: f32$/);
  });

  it('has the memory of the graphics card where that computes', () => {
    const engine = { ...PROFILE.engine, isOnCpu: false, memoryBytes: 8e9 };
    expect(gpuOfProfile({ ...PROFILE, engine }, 3e9).memoryBytes).toBe(8e9);
  });

  it('has the kind of its device: processor, NVIDIA or other', () => {
    const kind = (title: string, isOnCpu = false) =>
      gpuOfProfile({ ...PROFILE, engine: { ...PROFILE.engine, isOnCpu, title } }, 3e9).kind;
    expect(kind(PROFILE.engine.title, true)).toBe('processor');
    expect(kind('ONNX Runtime 1.30.0 (cuda, Tesla T4)')).toBe('nvidia');
    expect(kind('ONNX Runtime 1.30.0 (webgpu, NVIDIA GeForce RTX 3060)')).toBe('nvidia');
    expect(kind('ONNX Runtime 1.30.0 (webgpu, Apple M2)')).toBe('other');
  });

  it('has a peak for the measured type', () => {
    const engine = { ...PROFILE.engine, compute: 'f16' as const };
    expect(gpuOfProfile({ ...PROFILE, engine }, 3e9).peakFlops).toEqual({ f16: 120e9 });
  });
});

describe('a profile', () => {
  it('is valid where nothing has changed', () => {
    expect(stalenessOf(PROFILE, circumstances, DAY_LATER)).toBeNull();
  });

  it.each([
    [{ hostname: 'there' }, 'another machine'],
    [{ cpu: 'Another' }, 'another processor'],
    [{ node: '22.0.0' }, 'another version of Node.js'],
    [{ threads: 1 }, 'another number of threads'],
    [{ asked: { ...circumstances.asked, device: 'cpu' } }, 'another engine or device'],
    [{ libraries: { 'onnxruntime-node': '1.31.0' } }, 'other versions of the libraries'],
  ])('is stale after the change %j', (change, why) => {
    const staleness = stalenessOf(PROFILE, { ...circumstances, ...change }, DAY_LATER);
    expect(staleness).toBe(`the stored measurements are of ${why}`);
  });

  it('is stale after a month, and before its date', () => {
    const on = (date: string) => stalenessOf(PROFILE, circumstances, new Date(date));
    expect(on('2026-02-14T11:00:00Z')).toBeNull();
    expect(on('2026-02-15T13:00:00Z')).toBe('the stored measurements are 31 days old');
    expect(on('2026-01-01T00:00:00Z')).toBe('the stored measurements have a future date');
  });

  it.each<[string, number | null]>([
    ['unknown size', null],
    ['zero', 0],
    ['many programs', 40],
  ])('accepts a load of %s', (_, load) => {
    expect(machineProfileSchema.safeParse({ ...PROFILE, load })).toMatchObject({ success: true });
  });

  it.each<[string, unknown]>([
    ['unordered rounds', { ...PROFILE.speed, callSeconds: { least: 2, median: 1, most: 3 } }],
    ['no measurements', { ...PROFILE.speed, products: [] }],
    ['a rate of zero', { ...PROFILE.speed, weightBandwidth: { least: 0, median: 1, most: 3 } }],
    ['an unknown key', { ...PROFILE.speed, more: 1 }],
  ])('is invalid with %s', (_, speed) => {
    expect(machineProfileSchema.safeParse(PROFILE).success).toBe(true);
    const other = { ...PROFILE, speed } as MachineProfile;
    expect(machineProfileSchema.safeParse(other).success).toBe(false);
  });
});

/** A profile with all rates multiplied by the factor, and all times divided by it. */
const timesAsFast = (factor: number, change: Partial<MachineProfile> = {}): MachineProfile => {
  const times = ({ least, median, most }: MeasurementSpread, by: number): MeasurementSpread => ({
    least: least * by,
    median: median * by,
    most: most * by,
  });
  const { weightBandwidth, products, valueBandwidth, callSeconds, layerSeconds } = PROFILE.speed;
  return {
    ...PROFILE,
    ...change,
    speed: {
      weightBandwidth: times(weightBandwidth, factor),
      products: products.map((each) => ({ ...each, flops: times(each.flops, factor) })),
      valueBandwidth: times(valueBandwidth, factor),
      callSeconds: times(callSeconds, 1 / factor),
      layerSeconds: times(layerSeconds, 1 / factor),
    },
  };
};

describe('a repeated measurement', () => {
  const busy = timesAsFast(1 / 4, {
    measured: '2026-02-01T00:00:00.000Z',
    load: 3,
    history: { measurements: 1, since: '2026-02-01T00:00:00.000Z', leastLoad: 3 },
  });

  it.each([
    ['idle, then busy', PROFILE, busy],
    ['busy, then idle', busy, PROFILE],
  ])('%s, keeps the best and the worst of both, and the newest median', (_, older, newer) => {
    const { speed, history, load, measured } = mergedProfile(older, newer);
    expect(speed.weightBandwidth).toEqual({
      least: 12e9 / 4,
      median: newer.speed.weightBandwidth.median,
      most: 17e9,
    });
    expect(speed.products.map(({ flops }) => [flops.least, flops.most])).toEqual([
      [2e9, 10e9],
      [15e9, 120e9],
    ]);
    expect(speed.valueBandwidth).toMatchObject({ least: 13e9 / 4, most: 29e9 });
    expect(speed.callSeconds).toMatchObject({ least: 16e-6, most: 4 * 23e-6 });
    expect(speed.layerSeconds).toMatchObject({ least: 2e-7, most: 4 * 4e-7 });
    expect(speed.layerSeconds.median).toBe(newer.speed.layerSeconds.median);
    expect(history).toEqual({ measurements: 2, since: older.measured, leastLoad: 0.25 });
    expect({ load, measured }).toEqual({ load: newer.load, measured: newer.measured });
  });

  it('gives a valid profile', () => {
    expect(machineProfileSchema.parse(mergedProfile(PROFILE, busy))).toEqual(
      mergedProfile(PROFILE, busy),
    );
  });

  it.each<[string, Partial<MachineProfile>]>([
    ['another machine', { circumstances: { ...circumstances, hostname: 'there' } }],
    ['other libraries', { circumstances: { ...circumstances, libraries: {} } }],
    ['other threads', { circumstances: { ...circumstances, threads: 1 } }],
    ['another engine', { engine: { ...PROFILE.engine, name: 'tfjs' } }],
  ])('ignores the profile of %s', (_, change) => {
    expect(mergedProfile({ ...PROFILE, ...change }, busy)).toEqual(busy);
  });

  it('has the least of the known loads', () => {
    const withoutLoad = { ...PROFILE, history: { ...PROFILE.history, leastLoad: null } };
    expect(mergedProfile(withoutLoad, busy).history.leastLoad).toBe(3);
    expect(mergedProfile(withoutLoad, withoutLoad).history.leastLoad).toBeNull();
  });
});
