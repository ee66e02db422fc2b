import { UserError } from '../../base/errors.js';
import { watchEnd } from '../../base/files/early-end.js';
import type { WeightForm } from '../../base/tensor/group-quantization.js';
import type { Layer } from '../../model/architecture/layer.js';
import { quantizedMatrices } from '../../model/architecture/weight-matrices.js';
import type { GraphicsAdapter } from '../adapters/adapters.js';
import { cudaAdapter, UNNAMED_CARD, webgpuAdapter } from '../adapters/adapters.js';
import type {
  Compute,
  DeviceName,
  Engine,
  EngineInfo,
  Program,
  ProgramOptions,
} from '../engine.js';
import { dequantizedSource, refuseWeightForm } from '../weights/quantized-weights.js';
import type { WeightSource } from '../weights/weights.js';
import { compile } from './compile.js';
import type { InitializerLookup, QuantizedLookup, Target } from './context.js';
import { GUARANTEED_BYTES } from './context.js';
import { GraphBuilder } from './graph.js';
import { checkFits } from './largest-tensor.js';
import type { Library, Require, Session, SessionOptions } from './library.js';
import { CUDA_COMMAND, loadLibrary } from './library.js';
import { PlacedWeights } from './placed-weights.js';
import type { Failure } from './program.js';
import { engineError, OnnxProgram } from './program.js';
import { encodeModel, type GraphProto } from './proto.js';

interface ProviderKind {
  readonly device: DeviceName;
  /** The graphics card that the library uses: the first. Null when none is known. */
  adapter(): Promise<GraphicsAdapter | null>;
  /** Failures with their remedies. */
  readonly failures: readonly Failure[];
}

const GRAPHICS_DRIVER: Failure = {
  pattern: /adapter/i,
  message: 'it finds no graphics card',
  suggestion:
    'install the driver of a graphics card, with Vulkan on Linux: as in apt install mesa-vulkan-drivers',
};

/** Providers by the library's names. */
const PROVIDERS = {
  cpu: { device: 'cpu', adapter: async () => null, failures: [] },
  webgpu: { device: 'webgpu', adapter: webgpuAdapter, failures: [GRAPHICS_DRIVER] },
  cuda: {
    device: 'cuda',
    adapter: cudaAdapter,
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
  dml: { device: 'directml', adapter: webgpuAdapter, failures: [GRAPHICS_DRIVER] },
  coreml: { device: 'coreml', adapter: webgpuAdapter, failures: [] },
} as const satisfies Record<string, ProviderKind>;

export type Provider = keyof typeof PROVIDERS;

interface OnnxOptions {
  /** Threads of one operation, at most. */
  readonly threads: number;
  /** Default `cpu`. */
  readonly provider?: Provider;
  /** Default `f32`. */
  readonly compute?: Compute;
  /** Whether a software adapter is allowed; true by default. */
  readonly acceptsSoftware?: boolean;
  /**
   * Bytes of a buffer that one operation on a graphics card can bind; by default the card's limit, else WebGPU's
   * guaranteed one.
   */
  readonly maxBindingBytes?: number;
  /** Finds the library; by default the package's own `require`. */
  readonly require?: Require;
}

/**
 * ONNX Runtime as an engine.
 * @throws UserError when it is not installed or does not load, or cannot use the provider.
 */
export async function openOnnx(options: OnnxOptions): Promise<Engine> {
  const { threads, provider = 'cpu', compute = 'f32', acceptsSoftware = true, require } = options;
  if (!acceptsSoftware) process.env.VK_LOADER_DRIVERS_DISABLE ??= SOFTWARE_DRIVERS;
  // CUDA's libraries read it when they are loaded: do not round products of float32 to 10 bits.
  process.env.NVIDIA_TF32_OVERRIDE ??= '0';
  const library = loadLibrary(require);
  const settings: SessionOptions = {
    executionProviders: provider === 'cpu' ? ['cpu'] : [provider, 'cpu'],
    intraOpNumThreads: threads,
    logSeverityLevel: 4,
  };
  const held = provider === 'cpu' ? undefined : await heldOpen(library, provider, settings);
  const card = await PROVIDERS[provider].adapter();
  const cardLimit = provider === 'webgpu' ? card?.maxBindingBytes : undefined;
  const maxBindingBytes = options.maxBindingBytes ?? cardLimit ?? GUARANTEED_BYTES[provider];
  const target = { provider, maxBindingBytes, compute };
  const info: EngineInfo = {
    name: 'onnx',
    version: library.env.versions.node ?? library.env.versions.common,
    provider,
    ...cardOf(PROVIDERS[provider].device, card),
    threads,
    compute,
  };
  return {
    info,
    async load(layer, source, loading = {}) {
      if (loading.weightForm) refuseWeightForm(info);
      return loadProgram({ library, settings, layer, source, loading, target });
    },
    obstacleTo(model, size) {
      try {
        checkFits(model, { ...size, start: 0 }, target, true);
        return undefined;
      } catch (error) {
        if (error instanceof UserError) return error;
        throw error;
      }
    },
    // Other sessions close with their programs.
    close: async () => held?.release(),
  };
}

/**
 * Manifests of Vulkan drivers that compute on the processor. The loader ignores them: WebGPU would use them silently
 * where the card's own driver does not load
 * (https://github.com/KhronosGroup/Vulkan-Loader/blob/main/docs/LoaderDriverInterface.md).
 */
const SOFTWARE_DRIVERS = '*lvp_icd*,*swiftshader*';

/** Name of a software adapter whose real name is unknown. */
const SOFTWARE_ADAPTER = 'a software adapter';

/** Description of a provider's device. An unknown card is software. */
function cardOf(deviceKind: DeviceName, card: GraphicsAdapter | null) {
  if (deviceKind === 'cpu') {
    return { deviceKind, device: 'cpu', isSoftware: false, memoryBytes: null };
  }
  const isSoftware = card?.isSoftware ?? deviceKind === 'webgpu';
  return {
    deviceKind,
    device: card?.name ?? (isSoftware ? SOFTWARE_ADAPTER : UNNAMED_CARD),
    isSoftware,
    memoryBytes: card?.memoryBytes ?? null,
  };
}

/**
 * A minimal session, which reveals missing parts of a provider. While it is open, kernels compiled for a graphics card
 * are reused by later sessions; without an open session they are discarded.
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

/**
 * Error for a provider that does not start, with the first line of the cause: the only information about unknown
 * errors.
 */
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

/** The first line of a message, without the leading source location. */
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
  readonly loading: ProgramOptions;
  readonly target: Target;
}

function quantizedLookup(
  layer: Layer,
  weights: PlacedWeights,
  form: WeightForm | undefined,
): QuantizedLookup | undefined {
  if (form === undefined) return undefined;
  const matrices = quantizedMatrices(layer);
  return (tensor, rows) => {
    const matrix = matrices.get(tensor);
    return matrix && weights.placeQuantized(matrix, form, rows);
  };
}

/**
 * Time of busy waiting for a thread's part of the next operation: longer than the small operations between two
 * products. ONNX Runtime waits so long by default that, on a busy machine, the system preempts threads in the middle of
 * an operation. A token then takes up to five times as long.
 */
const SPIN_MICROSECONDS = 50;

/** Prepares a layer for running, in a graph for `target`. */
export async function loadProgram(wanted: Loading): Promise<Program> {
  const { library, settings, layer, source, loading, target } = wanted;
  const { weightForm } = loading;
  const floats = weightForm ? dequantizedSource(source, layer, weightForm) : source;
  await watchEnd();
  const weights = new PlacedWeights(source, floats);
  try {
    const quantized = quantizedLookup(layer, weights, weightForm);
    const place: InitializerLookup = (...which) => weights.place(...which);
    const compiled = compile(layer, place, loading, target, quantized);
    await weights.write();
    const opened = (graph: GraphProto) =>
      library.InferenceSession.create(encodeModel(graph), {
        ...settings,
        extra: {
          session: {
            model_external_initializers_file_folder_path: weights.root,
            intra_op: { spin_duration_us: `${SPIN_MICROSECONDS}` },
          },
        },
      });
    const session = await opened(compiled.graph);
    const logits = compiled.logits && {
      ...compiled.logits,
      session: await opened(compiled.logits.graph),
    };
    return new OnnxProgram({
      library,
      layer,
      compiled,
      session,
      logits,
      weights,
      options: loading,
      target,
    });
  } catch (error) {
    throw engineError(error, 'load the model');
  } finally {
    // Mapped files stay readable after removal. Windows deletes them when the program is released.
    weights.release();
  }
}
