/** Runs a model larger than the memory: each layer is loaded, run and released in turn. */
import { UserError } from '../base/errors.js';
import { setting } from '../base/text/setting.js';
import type { LanguageModel, Layer } from '../model/architecture/layer.js';
import { stagesOf, walk } from '../model/architecture/walk.js';
import type {
  Engine,
  Program,
  ProgramOptions,
  RunInput,
  RunOutput,
  TokenIds,
  Values,
} from './engine.js';
import type { WeightSource } from './weights/weights.js';

/** Loads a layer for the duration of a callback. */
export async function withProgram<T>(
  engine: Engine,
  layer: Layer,
  weights: WeightSource,
  use: (program: Program) => Promise<T>,
  options: ProgramOptions = {},
): Promise<T> {
  const program = await engine.load(layer, weights, options);
  try {
    return await use(program);
  } finally {
    await program.release();
  }
}

/** A layer after its run. */
export interface LayerRun {
  readonly layer: Layer;
  readonly input: RunInput;
  readonly output: Values;
  /** Elements of the weights that the engine created. */
  readonly elements: number;
  readonly loadSeconds: number;
  readonly runSeconds: number;
}

interface ModelRun {
  readonly engine: Engine;
  readonly model: LanguageModel;
  readonly weights: WeightSource;
  readonly ids: TokenIds;
  /** Whether to return the output of every block. */
  readonly keepsBlocks: boolean;
  /** Called with each layer before it is loaded. */
  readonly watch: (layer: string) => void;
  /** Called with each layer after it is released. */
  readonly after?: (run: LayerRun) => void | Promise<void>;
}

/**
 * Runs a model layer by layer. Returns its logits, and the output of its blocks.
 * @throws UserError when a layer reads values of an earlier one, such as its keys or its choice of keys.
 */
export async function runLayerByLayer({
  engine,
  model,
  weights,
  ids,
  keepsBlocks,
  watch,
  after,
}: ModelRun): Promise<Pick<RunOutput, 'output' | 'blocks'>> {
  const reader = layerThatReads(model);
  if (reader !== undefined) {
    throw new UserError(
      'usage',
      `${model.name} runs only as a whole: ${reader} reads values of an earlier layer`,
      { suggestion: `leave ${setting('full')} out, or run it on a machine with more memory` },
    );
  }
  const blocks = new Map<string, Values>();
  let input: RunInput = { ids };
  let output: Values = { shape: [], data: new Float32Array(0) };
  for (const layer of stagesOf(model)) {
    watch(layer.name);
    const begin = performance.now();
    const run = await withProgram(engine, layer, weights, async (program) => {
      const loaded = performance.now();
      const result = await program.run(input);
      return {
        output: result.output,
        elements: program.elements,
        loadSeconds: (loaded - begin) / 1000,
        runSeconds: (performance.now() - loaded) / 1000,
      };
    });
    await after?.({ layer, input, ...run });
    ({ output } = run);
    if (keepsBlocks && model.blocks.includes(layer)) blocks.set(layer.name, output);
    input = { inputs: [output] };
  }
  return { output, blocks };
}

/** Name of the first layer that reads what another one computed; undefined if each needs only its input. */
const layerThatReads = (model: LanguageModel): string | undefined =>
  model.blocks.flatMap(walk).find(({ layer }) => readsAnother(layer))?.layer.name;

function readsAnother(layer: Layer): boolean {
  switch (layer.kind) {
    case 'attention':
      return typeof layer.sharing === 'object';
    case 'latentAttention':
      return layer.selection !== undefined && 'from' in layer.selection;
    case 'perLayerBranch':
      return true;
    default:
      return false;
  }
}
