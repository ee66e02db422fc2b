import { describe, expect, it } from 'vitest';
import {
  gpuOfProfile,
  type MachineProfile,
  machineProfileSchema,
  stalenessOf,
} from '../../src/hardware/machine-profile.js';
import { bandwidthOf, peakFor } from '../../src/hardware/peak.js';
import { PROFILE } from './profiles.js';

const { circumstances } = PROFILE;
const DAY_LATER = new Date('2026-01-16T12:00:00Z');

describe('a machine as a GPU', () => {
  const gpu = gpuOfProfile(PROFILE, 3e9);

  it('has the best that was measured, and the memory that there is now', () => {
    expect(gpu).toMatchObject({ name: 'this-machine', memoryBytes: 3e9, links: [] });
    expect(bandwidthOf(gpu)).toMatchObject({ value: 17e9, unit: 'bytes/s' });
    expect(peakFor(gpu, 'bf16')).toMatchObject({ value: 120e9 });
    expect(peakFor(gpu, 'bf16').source).toMatch(/^measured on 2026-01-15 with ONNX .*: f32$/);
  });

  it('has the memory of its graphics card, where that is what computes', () => {
    const engine = { ...PROFILE.engine, isOnCpu: false, memoryBytes: 8e9 };
    expect(gpuOfProfile({ ...PROFILE, engine }, 3e9).memoryBytes).toBe(8e9);
  });

  it('is a processor, or a card of NVIDIA or of others', () => {
    const kind = (title: string, isOnCpu = false) =>
      gpuOfProfile({ ...PROFILE, engine: { ...PROFILE.engine, isOnCpu, title } }, 3e9).kind;
    expect(kind(PROFILE.engine.title, true)).toBe('processor');
    expect(kind('ONNX Runtime 1.30.0 (cuda, Tesla T4)')).toBe('nvidia');
    expect(kind('ONNX Runtime 1.30.0 (webgpu, NVIDIA GeForce RTX 3060)')).toBe('nvidia');
    expect(kind('ONNX Runtime 1.30.0 (webgpu, Apple M2)')).toBe('other');
  });

  it('has the peak of what was computed in', () => {
    const engine = { ...PROFILE.engine, compute: 'f16' as const };
    expect(gpuOfProfile({ ...PROFILE, engine }, 3e9).peakFlops).toEqual({ f16: 120e9 });
  });
});

describe('a profile', () => {
  it('holds where nothing has changed', () => {
    expect(stalenessOf(PROFILE, circumstances, DAY_LATER)).toBeNull();
  });

  it.each([
    [{ hostname: 'there' }, 'another machine'],
    [{ cpu: 'Another' }, 'another processor'],
    [{ node: '22.0.0' }, 'another version of Node.js'],
    [{ threads: 1 }, 'another number of threads'],
    [{ asked: { ...circumstances.asked, device: 'cpu' } }, 'another engine or device'],
    [{ libraries: { 'onnxruntime-node': '1.31.0' } }, 'other versions of the libraries'],
  ])('does not where there is %j', (change, why) => {
    const staleness = stalenessOf(PROFILE, { ...circumstances, ...change }, DAY_LATER);
    expect(staleness).toBe(`what is known is of ${why}`);
  });

  it('does not a month later, nor before it was made', () => {
    const on = (date: string) => stalenessOf(PROFILE, circumstances, new Date(date));
    expect(on('2026-02-14T11:00:00Z')).toBeNull();
    expect(on('2026-02-15T13:00:00Z')).toBe('what is known is 31 days old');
    expect(on('2026-01-01T00:00:00Z')).toBe('what is known is of the future');
  });

  it.each<[string, unknown]>([
    ['no rounds in order', { ...PROFILE.speed, callSeconds: { least: 2, median: 1, most: 3 } }],
    ['nothing measured', { ...PROFILE.speed, products: [] }],
    ['a rate of zero', { ...PROFILE.speed, weightBandwidth: { least: 0, median: 1, most: 3 } }],
    ['what nobody knows', { ...PROFILE.speed, more: 1 }],
  ])('is none with %s', (_, speed) => {
    expect(machineProfileSchema.safeParse(PROFILE).success).toBe(true);
    const other = { ...PROFILE, speed } as MachineProfile;
    expect(machineProfileSchema.safeParse(other).success).toBe(false);
  });
});
