import type { Layer } from '../../architecture/layer.js';
import { UserError } from '../../errors.js';
import type { Engine, LoadOptions, Program } from '../engine.js';
import type { WeightSource } from '../weights.js';
import { compile } from './compile.js';
import { explained } from './failures.js';
import { GraphBuilder } from './graph.js';
import { type Library, loadLibrary, type Require, type SessionOptions } from './library.js';
import { PlacedWeights } from './placed-weights.js';
import { OnnxProgram } from './program.js';
import { encodeModel } from './proto.js';

/** What each provider needs where it is missing. */
const PROVIDERS = {
  cpu: 'nothing: every machine has one',
  webgpu: 'a graphics card with a driver for Vulkan, Metal or Direct3D 12',
  cuda: 'an NVIDIA graphics card, CUDA 12 and cuDNN 9, and onnxruntime-node installed with its script',
} as const;

export type Provider = keyof typeof PROVIDERS;

interface OnnxOptions {
  /** That one operation is spread over, at most. */
  readonly threads: number;
  /** `cpu` unless said otherwise. */
  readonly provider?: Provider;
  /** What finds the library, when not the package's own `require`. */
  readonly require?: Require;
}

/**
 * ONNX Runtime as an engine.
 * @throws UserError when it is not installed or does not load, or has no device for the provider.
 */
export async function openOnnx(options: OnnxOptions): Promise<Engine> {
  const { threads, provider = 'cpu', require } = options;
  const library = loadLibrary(require);
  const settings: SessionOptions = {
    executionProviders: provider === 'cpu' ? ['cpu'] : [provider, 'cpu'],
    intraOpNumThreads: threads,
    logSeverityLevel: 4,
  };
  if (provider !== 'cpu') await checkProvider(library, provider, settings);
  return {
    info: {
      name: 'onnx',
      version: library.env.versions.node ?? library.env.versions.common,
      provider,
      device: provider === 'cpu' ? 'cpu' : 'graphics card',
      threads,
    },
    load: (layer, source, loading = {}) => load({ library, settings, layer, source, loading }),
    // Sessions end with their programs, and there is nothing besides.
    close: async () => {},
  };
}

/** Makes a session of next to nothing: a missing device shows there. */
async function checkProvider(
  library: Library,
  provider: Provider,
  settings: SessionOptions,
): Promise<void> {
  const graph = new GraphBuilder();
  graph.output(graph.op('Neg', [graph.input('x', 'f32', [1])]));
  try {
    const model = encodeModel(graph.build('probe'));
    await (await library.InferenceSession.create(model, settings)).release();
  } catch (error) {
    throw new UserError('system', `ONNX Runtime finds no device for ${provider}`, {
      suggestion: `it needs ${PROVIDERS[provider]}; the CPU always works`,
      cause: error,
    });
  }
}

interface Loading {
  readonly library: Library;
  readonly settings: SessionOptions;
  readonly layer: Layer;
  readonly source: WeightSource;
  readonly loading: LoadOptions;
}

async function load({ library, settings, layer, source, loading }: Loading): Promise<Program> {
  const weights = new PlacedWeights(source);
  try {
    const compiled = compile(layer, (tensor) => weights.place(tensor), loading);
    await weights.write();
    const session = await library.InferenceSession.create(encodeModel(compiled.graph), {
      ...settings,
      extra: { session: { model_external_initializers_file_folder_path: weights.root } },
    });
    return new OnnxProgram({ library, layer, compiled, session, weights, options: loading });
  } catch (error) {
    throw explained(error, 'load the model');
  } finally {
    // What is mapped stays, without a name. Windows lets go of it when the program is released.
    weights.release();
  }
}
