/** Shared helpers for tests of this engine. */
import { describe } from 'vitest';
import type {
  Engine,
  Program,
  ProgramOptions,
  RunOutput,
  TokenIds,
  Values,
} from '../../../src/engine/engine.js';
import type { Target } from '../../../src/engine/onnx/context.js';
import { loadLibrary, onnxVersion } from '../../../src/engine/onnx/library.js';
import { loadProgram, openOnnx } from '../../../src/engine/onnx/onnx-engine.js';
import type { WeightSource } from '../../../src/engine/weights/weights.js';
import type { Layer } from '../../../src/model/architecture/layer.js';
import { onFileEnd } from '../../cleanup.js';

/** Tests that need the library. They are skipped with a note where it is missing. */
export function describeWithOnnx(title: string, tests: () => void): void {
  const isMissing = onnxVersion() === undefined;
  const note = isMissing ? ' (onnxruntime-node is not installed)' : '';
  describe.skipIf(isMissing)(`${title}${note}`, tests);
}

let engine: Promise<Engine> | undefined;

/** A program of an engine with one thread, released at the end of the test file. */
export async function loaded(
  layer: Layer,
  weights: WeightSource,
  options?: ProgramOptions,
): Promise<Program> {
  engine ??= openOnnx({ threads: 1 });
  const program = await (await engine).load(layer, weights, options);
  onFileEnd(() => program.release());
  return program;
}

/** A program on the processor, with a graph for another target. */
export async function loadedFor(
  target: Target,
  layer: Layer,
  source: WeightSource,
  loading: ProgramOptions = {},
): Promise<Program> {
  const settings = {
    executionProviders: ['cpu'],
    intraOpNumThreads: 1,
    logSeverityLevel: 4,
  } as const;
  const library = loadLibrary();
  const program = await loadProgram({ library, settings, layer, source, loading, target });
  onFileEnd(() => program.release());
  return program;
}

/** Columns of token ids from a position. */
function idsFrom(ids: TokenIds, from: number, tokens: number): TokenIds {
  const data = Int32Array.from({ length: ids.batch * tokens }, (_, at) => {
    const row = Math.floor(at / tokens);
    return ids.data[row * ids.tokens + from + (at % tokens)] ?? 0;
  });
  return { batch: ids.batch, tokens, data };
}

/** Outputs of successive calls with these numbers of tokens, joined along the tokens. */
export async function decoded(
  program: Program,
  ids: TokenIds,
  counts: readonly number[],
): Promise<Values> {
  const parts: Values[] = [];
  let state: RunOutput['state'];
  let from = 0;
  for (const tokens of counts) {
    const run = await program.run({ ids: idsFrom(ids, from, tokens), state });
    parts.push(run.output);
    state = run.state;
    from += tokens;
  }
  return alongTokens(parts);
}

function alongTokens(parts: readonly Values[]): Values {
  const [batch = 0, , size = 0] = parts[0]?.shape ?? [];
  const tokens = parts.reduce((sum, { shape }) => sum + (shape[1] ?? 0), 0);
  const data = new Float32Array(batch * tokens * size);
  for (let row = 0, at = 0; row < batch; row++) {
    for (const part of parts) {
      const length = (part.shape[1] ?? 0) * size;
      data.set(part.data.subarray(row * length, (row + 1) * length), at);
      at += length;
    }
  }
  return { shape: [batch, tokens, size], data };
}
