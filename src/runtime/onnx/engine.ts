import type { Layer } from '../../architecture/layer.js';
import { UserError } from '../../errors.js';
import type { Engine, LoadOptions, Program } from '../engine.js';
import { cudaCard, UNNAMED_CARD } from '../graphics-card.js';
import type { WeightSource } from '../weights.js';
import { compile } from './compile.js';
import { explained, type Failure } from './failures.js';
import { GraphBuilder } from './graph.js';
import {
  CUDA_COMMAND,
  type Library,
  loadLibrary,
  type Require,
  type Session,
  type SessionOptions,
} from './library.js';
import { PlacedWeights } from './placed-weights.js';
import { OnnxProgram } from './program.js';
import { encodeModel } from './proto.js';
import { GUARANTEED_BYTES, type Target } from './target.js';

/** What each provider runs on, and what helps where it is missing. */
const PROVIDERS = {
  cpu: { device: async () => 'cpu', failures: [] },
  webgpu: {
    device: async () => UNNAMED_CARD,
    failures: [
      {
        pattern: /adapter/i,
        message: 'it finds no graphics card',
        suggestion: 'install the driver of a graphics card for Vulkan, Metal or Direct3D 12',
      },
    ],
  },
  cuda: {
    device: () => cudaCard(),
    failures: [
      {
        pattern: /load (shared )?library/i,
        message: 'its files for CUDA are not installed, or CUDA 12 and cuDNN 9 are not',
        suggestion: CUDA_COMMAND,
      },
      {
        pattern: /CUDA failure|no CUDA-capable device/i,
        message: 'it finds no NVIDIA graphics card that it can use',
        suggestion: 'install the driver of an NVIDIA graphics card, CUDA 12 and cuDNN 9',
      },
    ],
  },
} as const satisfies Record<string, { device(): Promise<string>; failures: readonly Failure[] }>;

export type Provider = keyof typeof PROVIDERS;

interface OnnxOptions {
  /** That one operation is spread over, at most. */
  readonly threads: number;
  /** `cpu` unless said otherwise. */
  readonly provider?: Provider;
  /** Bytes of a buffer that one operation on a graphics card sees; what WebGPU guarantees unless said otherwise. */
  readonly maxBindingBytes?: number;
  /** What finds the library, when not the package's own `require`. */
  readonly require?: Require;
}

/**
 * ONNX Runtime as an engine.
 * @throws UserError when it is not installed or does not load, or cannot use the provider.
 */
export async function openOnnx(options: OnnxOptions): Promise<Engine> {
  const {
    threads,
    provider = 'cpu',
    maxBindingBytes = GUARANTEED_BYTES[provider],
    require,
  } = options;
  const library = loadLibrary(require);
  const settings: SessionOptions = {
    executionProviders: provider === 'cpu' ? ['cpu'] : [provider, 'cpu'],
    intraOpNumThreads: threads,
    logSeverityLevel: 4,
  };
  const target = { provider, maxBindingBytes };
  const held = provider === 'cpu' ? undefined : await heldOpen(library, provider, settings);
  return {
    info: {
      name: 'onnx',
      version: library.env.versions.node ?? library.env.versions.common,
      provider,
      device: await PROVIDERS[provider].device(),
      threads,
    },
    load: (layer, source, loading = {}) =>
      load({ library, settings, layer, source, loading, target }),
    // All other sessions end with their programs.
    close: async () => held?.release(),
  };
}

/**
 * A session of next to nothing: what a provider misses shows there. For as long as it is there, what one
 * session has compiled for a graphics card serves the next: without any, all is thrown away.
 */
async function heldOpen(
  library: Library,
  provider: Provider,
  settings: SessionOptions,
): Promise<Session> {
  const graph = new GraphBuilder();
  graph.output(graph.op('Neg', [graph.input('x', 'f32', [1])]));
  try {
    const model = encodeModel(graph.build('probe'));
    return await library.InferenceSession.create(model, settings);
  } catch (error) {
    throw unusable(provider, error);
  }
}

/** The first line of the cause is shown: it is all that there is to go by where we do not know better. */
function unusable(provider: Provider, error: unknown): UserError {
  const reason = reasonOf(error);
  const failures: readonly Failure[] = PROVIDERS[provider].failures;
  const known = failures.find(({ pattern }) => pattern.test(reason));
  const why = known ? `${known.message} (${reason})` : reason;
  return new UserError('system', `ONNX Runtime cannot use ${provider}: ${why}`, {
    ...(known && { suggestion: known.suggestion }),
    cause: error,
  });
}

/** The first line, without the place in the library that it often begins with. */
function reasonOf(error: unknown): string {
  const [first = ''] = (error instanceof Error ? error.message : String(error))
    .trim()
    .split('\n', 1);
  return first.replace(/^\S+:\d+ .* was false\. |^Ort\w+: /, '').trim();
}

interface Loading {
  readonly library: Library;
  readonly settings: SessionOptions;
  readonly layer: Layer;
  readonly source: WeightSource;
  readonly loading: LoadOptions;
  readonly target: Target;
}

/** Makes a layer ready to run, in a graph that is made for `target`. */
export async function load(wanted: Loading): Promise<Program> {
  const { library, settings, layer, source, loading, target } = wanted;
  const weights = new PlacedWeights(source);
  try {
    const compiled = compile(layer, (...which) => weights.place(...which), loading, target);
    await weights.write();
    const session = await library.InferenceSession.create(encodeModel(compiled.graph), {
      ...settings,
      extra: { session: { model_external_initializers_file_folder_path: weights.root } },
    });
    return new OnnxProgram({
      library,
      layer,
      compiled,
      session,
      weights,
      options: loading,
      target,
    });
  } catch (error) {
    throw explained(error, 'load the model');
  } finally {
    // What is mapped stays, without a name. Windows lets go of it when the program is released.
    weights.release();
  }
}
