import type { UserError } from '../base/errors.js';
import { isRecord } from '../base/values.js';
import type {
  Engine,
  Program,
  ProgramOptions,
  RunInput,
  RunOutput,
  TokenIds,
  Values,
} from '../engine/engine.js';
import { DeviceLostError } from '../engine/engine.js';
import { withProgram } from '../engine/layer-by-layer.js';
import { peakBytes } from '../engine/memory.js';
import type { WeightSource } from '../engine/weights/weights.js';
import type {
  Family,
  FamilyDocument,
  ProxyBounds,
  ProxySetting,
} from '../model/architecture/family.js';
import type { LanguageModel, Layer } from '../model/architecture/layer.js';
import { decoderProxy } from '../model/architecture/transformer/scaled-down-proxy.js';

// The model of a test, and its scaled-down proxy for models too large for the machine.

/** A model with its weights and its input. */
export interface TestedModel {
  readonly family: Pick<Family, 'build' | 'scaledDownProxy'>;
  /** Document parsed by the family's schema. */
  readonly document: FamilyDocument;
  readonly model: LanguageModel;
  /** Weights of a checkpoint; undefined for random weights. */
  readonly weights: WeightSource | undefined;
  /** Undefined for random ids: `batch` sequences of `context` tokens. */
  readonly ids: TokenIds | undefined;
  readonly batch?: number | undefined;
  readonly context?: number | undefined;
  readonly seed: number;
}

/** A value of the configuration, before and after. */
export interface ProxyChange {
  /** Dotted path in the config. */
  readonly path: string;
  /** Value as described. @count */
  readonly from: number;
  /** Value as it ran. @count */
  readonly to: number;
}

export interface ScaledDownProxy {
  readonly model: LanguageModel;
  /** Changed values, without the per-layer lists, which are shortened together with the layers. */
  readonly changes: readonly ProxyChange[];
}

/**
 * Scaled-down proxy of a model.
 * @param document Document parsed by the family's schema.
 * @param tokens Tokens that it must support.
 * @param bounds Upper bounds of its sizes, where the structure allows them.
 */
export function scaledDownProxy(
  family: Pick<Family, 'build' | 'scaledDownProxy'>,
  document: FamilyDocument,
  tokens: number,
  bounds?: ProxyBounds,
): ScaledDownProxy {
  const settings = (family.scaledDownProxy ?? decoderProxy)(document, tokens, bounds);
  const changes = settings.flatMap(({ path, value }): ProxyChange[] => {
    const from = valueAt(document, path.split('.'));
    return typeof from === 'number' && typeof value === 'number' && from !== value
      ? [{ path, from, to: value }]
      : [];
  });
  return { model: family.build(settings.reduce(applied, document)), changes };
}

const valueAt = (value: unknown, [key, ...rest]: readonly string[]): unknown =>
  key === undefined ? value : valueAt((value as Record<string, unknown>)[key], rest);

/** A document with one value of its model changed. */
function applied(document: FamilyDocument, { path, value }: ProxySetting): FamilyDocument {
  const [, ...keys] = path.split('.');
  return { ...document, model: changedSection(document.model, keys, value) };
}

function changedSection(
  section: unknown,
  [key = '', ...rest]: readonly string[],
  value: unknown,
): Readonly<Record<string, unknown>> {
  const old = isRecord(section) ? section : {};
  return { ...old, [key]: rest.length === 0 ? value : changedSection(old[key], rest, value) };
}

interface TestContextParts {
  readonly model: LanguageModel;
  readonly weights: WeightSource;
  readonly engine: Engine;
  /** Input of the model. */
  readonly ids: TokenIds;
  /** Seed of all other random values. */
  readonly seed: number;
  /** Number of timed forward passes; undefined to time for half a second. */
  readonly repeats: number | undefined;
  /** Tokens that the check of the cache generates one by one; undefined for at most half of them, and 32. */
  readonly outputTokens?: number | undefined;
  /** Opens a second engine for a cross-check. */
  readonly openOther: () => Promise<Engine>;
  /** Opens the same engine on the same device in float32. */
  readonly openFloat32: () => Promise<Engine>;
}

/** Whether an error ends the whole test: later checks use the same device, and would fail too. */
export const endsAll = (error: UserError): boolean =>
  error.code === 'interrupted' || error instanceof DeviceLostError;

/** Base class whose instances have the given parts as fields. */
const WithParts = class {
  constructor(parts: TestContextParts) {
    Object.assign(this, parts);
  }
} as new (
  parts: TestContextParts,
) => TestContextParts;

/** The model under test. Its whole program is loaded at first use and shared by several checks. */
export class TestContext extends WithParts {
  #program: Program | undefined;
  #base: RunOutput | undefined;
  #loadSeconds = 0;
  #peakBytes: number | undefined;

  /** Seconds to load the whole model; 0 before. */
  get loadSeconds(): number {
    return this.#loadSeconds;
  }

  async program(): Promise<Program> {
    if (!this.#program) {
      const start = performance.now();
      this.#program = await this.engine.load(this.model, this.weights);
      this.#loadSeconds = (performance.now() - start) / 1000;
    }
    return this.#program;
  }

  /** Runs a forward pass of the whole model. */
  async forward(ids: TokenIds): Promise<RunOutput> {
    return (await this.program()).run({ ids });
  }

  /** The forward pass of the ids under test, which runs once. */
  async base(): Promise<RunOutput> {
    if (!this.#base) {
      this.#base = await this.forward(this.ids);
      this.#peakBytes = peakBytes();
    }
    return this.#base;
  }

  /** Peak memory of the process by the end of that pass; undefined before. */
  get peakBytes(): number | undefined {
    return this.#peakBytes;
  }

  /** Loads a layer for the duration of a callback. */
  async with<T>(
    layer: Layer,
    use: (program: Program) => Promise<T>,
    { weights = this.weights, ...options }: ProgramOptions & { weights?: WeightSource } = {},
  ): Promise<T> {
    return withProgram(this.engine, layer, weights, use, options);
  }

  /** Runs a layer once. */
  async once(
    layer: Layer,
    input: RunInput,
    options?: ProgramOptions & { weights?: WeightSource },
  ): Promise<RunOutput> {
    return this.with(layer, (program) => program.run(input), options);
  }

  /** Input of the first block, [B, T, H]. */
  async embedded(ids: TokenIds): Promise<Values> {
    let { output } = await this.once(this.model.embedding, { ids });
    for (const step of this.model.embeddingSteps) {
      ({ output } = await this.once(step, { inputs: [output] }));
    }
    return output;
  }

  /** Releases the whole model, so that memory never holds two of them. */
  async unload(): Promise<void> {
    await this.#program?.release();
    this.#program = undefined;
  }
}
