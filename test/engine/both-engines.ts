/** Tests that every engine must pass in the same way. */
import { describe } from 'vitest';
import type { Program, ProgramOptions } from '../../src/engine/engine.js';
import { onnxVersion } from '../../src/engine/onnx/library.js';
import { openOnnx } from '../../src/engine/onnx/onnx-engine.js';
import { openTfjs } from '../../src/engine/tfjs/tfjs-engine.js';
import type { WeightSource } from '../../src/engine/weights/weights.js';
import type { Layer } from '../../src/model/architecture/layer.js';

const ENGINES = {
  'ONNX Runtime': { open: () => openOnnx({ threads: 1 }), isMissing: onnxVersion() === undefined },
  'TensorFlow.js': { open: () => openTfjs({ threads: 1, backend: 'wasm' }), isMissing: false },
} as const;

type EngineTitle = keyof typeof ENGINES;

type Load = (layer: Layer, weights: WeightSource, options?: ProgramOptions) => Promise<Program>;

/** Runs tests with each installed engine. Tests of missing engines are skipped. */
export function withEachEngine(
  title: string,
  tests: (load: Load, engine: EngineTitle) => void,
): void {
  for (const engine of Object.keys(ENGINES) as EngineTitle[]) {
    const { open, isMissing } = ENGINES[engine];
    describe.skipIf(isMissing)(`${title}, with ${engine}`, () => {
      tests(async (...loading) => (await open()).load(...loading), engine);
    });
  }
}
