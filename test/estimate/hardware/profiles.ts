import type {
  MachineProfile,
  MeasurementSpread,
} from '../../../src/estimate/hardware/machine-profile.js';

const spread = (least: number, median: number, most: number): MeasurementSpread => ({
  least,
  median,
  most,
});

/** Profile of a machine with two processors. */
export const PROFILE: MachineProfile = {
  schema: 'minimind/machine@2',
  measured: '2026-01-15T12:00:00.000Z',
  load: 0.25,
  history: { measurements: 1, since: '2026-01-15T12:00:00.000Z', leastLoad: 0.25 },
  circumstances: {
    hostname: 'here',
    cpu: 'A processor',
    platform: 'linux x64',
    node: '20.19.0',
    threads: 2,
    asked: { engine: 'auto', device: 'auto', compute: 'f32' },
    libraries: { 'onnxruntime-node': '1.30.0' },
  },
  engine: {
    name: 'onnx',
    title: 'ONNX Runtime 1.30.0 (cpu, 2 threads)',
    device: 'A processor',
    isOnCpu: true,
    compute: 'f32',
    memoryBytes: null,
  },
  speed: {
    weightBandwidth: spread(12e9, 16e9, 17e9),
    products: [
      { rows: 1, width: 512, flops: spread(8e9, 9e9, 10e9) },
      { rows: 512, width: 512, flops: spread(60e9, 80e9, 120e9) },
    ],
    valueBandwidth: spread(13e9, 25e9, 29e9),
    callSeconds: spread(16e-6, 20e-6, 23e-6),
    layerSeconds: spread(2e-7, 3e-7, 4e-7),
  },
};
