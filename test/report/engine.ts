import type { EngineInfo } from '../../src/engine/engine.js';
import type { SelfCheck } from '../../src/engine/select/self-check.js';

/** ONNX Runtime on the processor, as in results. */
export const CPU_ENGINE: EngineInfo = {
  name: 'onnx',
  version: '1.30.0',
  provider: 'cpu',
  device: 'cpu',
  deviceKind: 'cpu',
  isSoftware: false,
  memoryBytes: null,
  threads: 2,
  compute: 'f32',
};

export const CPU_CHECK: SelfCheck = { difference: 1.1e-7, limit: 1e-5, passed: true };
