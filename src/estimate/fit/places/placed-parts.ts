/** Parts of a model by the place that holds them: GPUs, or system memory. */
import { sumOf } from '../../../base/values.js';
import type { Layer } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import { walkCounted } from '../../../model/architecture/walk.js';
import { servedWeights } from '../serving/quantized.js';
import type { ExpertGroup } from '../serving/roofline.js';
import type { ServedModel } from '../serving/serving-work.js';
import { expertGroupsOf, sequenceState } from '../serving/serving-work.js';

/** Layers as llama.cpp counts them: the blocks, and the output after them. */
export interface Placement {
  /** Layers on the GPUs: the output, and the blocks before it from the last one on. @integer @minimum 0 */
  readonly gpuLayers: number;
  /** First blocks whose routed experts are in system memory. @integer @minimum 0 */
  readonly cpuExperts: number;
  /** Layers on each GPU in turn, of several GPUs; absent for one. */
  readonly cardLayers?: readonly number[];
  /** Whether keys and values of all layers are in system memory, and attention is computed there. */
  readonly isCacheInSystem?: boolean;
}

/** Bytes of a layer, or of several. */
export interface PlacedPart {
  /** Weights that each token reads. */
  readonly weightBytes: number;
  readonly expertGroups: readonly ExpertGroup[];
  /** Keys, values and states of one sequence. */
  readonly cacheBytes: number;
}

/** A model cut into layers. */
export interface LayeredModel {
  readonly blocks: readonly PlacedPart[];
  /** Last norm and head. */
  readonly output: PlacedPart;
  /** Bytes of the embedding, of which a token reads one row. It stays in system memory. */
  readonly embeddingBytes: number;
}

/** Content of a place. */
export interface PlaceContent extends PlacedPart {
  /** Bytes of all weights and of the caches of the sequences. */
  readonly bytes: number;
  /** Blocks with a part in the place. */
  readonly blocks: number;
}

const NOTHING: PlacedPart = { weightBytes: 0, expertGroups: [], cacheBytes: 0 };

/** Bytes of each layer, at a context. Tensors that layers share belong to the first one. */
export function layeredModel(served: ServedModel, context: number): LayeredModel {
  const { model, layout, form } = served;
  const owned = new Set<Param>();
  const bytesOf = (which: (tensor: Param) => boolean) =>
    Number(servedWeights(layout, form.weights, 1, which).total.value);
  const partOf = (layer: Layer, cacheBytes: number): PlacedPart => {
    const own = new Set<Param>();
    for (const { tensors } of walkCounted(layer)) {
      for (const tensor of tensors) if (!owned.has(tensor)) own.add(tensor);
    }
    for (const tensor of own) owned.add(tensor);
    return {
      weightBytes: bytesOf((tensor) => own.has(tensor) && !layout.experts.has(tensor)),
      expertGroups: expertGroupsOf([layer], (which) =>
        bytesOf((tensor) => own.has(tensor) && which(tensor)),
      ),
      cacheBytes,
    };
  };
  const { embedding, blocks } = model;
  const embeddingBytes = bytesOf((tensor) => tensor === embedding.weight);
  if (layout.lookups.has(embedding.weight)) owned.add(embedding.weight);
  const placed = blocks.map((block) => {
    const { cache, state } = sequenceState(
      { ...served, model: { ...model, blocks: [block] } },
      context,
    );
    return partOf(block, Number(cache.value) + Number(state.value));
  });
  // The rest of the model follows its blocks.
  const output = {
    ...NOTHING,
    weightBytes: bytesOf((tensor) => !owned.has(tensor) && !layout.experts.has(tensor)),
  };
  return { blocks: placed, output, embeddingBytes };
}

/** The place of a layer: a GPU, from 0 on, or the system memory. The output is the last layer. */
function layerPlace(
  index: number,
  { blocks }: LayeredModel,
  { gpuLayers, cardLayers = [gpuLayers] }: Placement,
): number | 'system' {
  let at = index - (blocks.length + 1 - gpuLayers);
  if (at < 0) return 'system';
  for (const [card, layers] of cardLayers.entries()) {
    if (at < layers) return card;
    at -= layers;
  }
  return cardLayers.length - 1;
}

/**
 * Content of each GPU and of system memory (llama.cpp, src/llama-model.cpp: `i_gpu_start`; common/arg.cpp:
 * `--n-cpu-moe`).
 * @param batch Sequences at a time.
 */
export function placedContent(model: LayeredModel, placement: Placement, batch: number) {
  const { gpuLayers, cardLayers = [gpuLayers] } = placement;
  const onCards: PlacedPart[][] = cardLayers.map(() => []);
  const inSystem: PlacedPart[] = [];
  let crossings = 0;
  let before: number | 'system' | undefined;
  for (const [index, whole] of [...model.blocks, model.output].entries()) {
    const place = layerPlace(index, model, placement);
    if (before !== undefined && before !== place) crossings++;
    before = place;
    if (place === 'system') {
      inSystem.push(whole);
      continue;
    }
    const isCacheApart = placement.isCacheInSystem === true && whole.cacheBytes > 0;
    const part = isCacheApart ? { ...whole, cacheBytes: 0 } : whole;
    if (isCacheApart) {
      inSystem.push({ ...NOTHING, cacheBytes: whole.cacheBytes });
      crossings += 2;
    }
    if (index < placement.cpuExperts && part.expertGroups.length > 0) {
      onCards[place]?.push({ ...part, expertGroups: [] });
      inSystem.push({ ...NOTHING, expertGroups: part.expertGroups });
      crossings += 2;
    } else onCards[place]?.push(part);
  }
  return {
    /** All GPUs together. */
    gpu: joined(onCards.flat(), batch, 0),
    cards: onCards.map((parts) => joined(parts, batch, 0)),
    system: joined(inSystem, batch, model.embeddingBytes),
    /** Times that a token passes from one place to another. */
    crossings,
  };
}

function joined(parts: readonly PlacedPart[], batch: number, otherBytes: number): PlaceContent {
  const groups = new Map<string, ExpertGroup>();
  for (const group of parts.flatMap(({ expertGroups }) => expertGroups)) {
    const key = `${group.expertsPerToken} of ${group.experts}`;
    const { bytes } = groups.get(key) ?? { bytes: 0 };
    groups.set(key, { ...group, bytes: bytes + group.bytes });
  }
  const expertGroups = [...groups.values()];
  const weightBytes = sumOf(parts, (each) => each.weightBytes);
  const cacheBytes = sumOf(parts, (each) => each.cacheBytes);
  return {
    weightBytes,
    expertGroups,
    cacheBytes,
    bytes:
      weightBytes + sumOf(expertGroups, ({ bytes }) => bytes) + batch * cacheBytes + otherBytes,
    blocks: parts.length,
  };
}
