/** The metadata of a model's GGUF file, from its description. */

import { usageError } from '../../../base/errors.js';
import { isRecord } from '../../../base/values.js';
import type { GgufValue } from '../../../checkpoint/gguf/gguf-scanner.js';
import type { FamilyName } from '../../../model/architecture/families.js';
import type {
  Attention,
  LanguageModel,
  Layer,
  RotaryScaling,
} from '../../../model/architecture/layer.js';
import { walk } from '../../../model/architecture/walk.js';
import type { ModelFile } from '../model-file.js';
import type { GgufArchitecture } from './gguf-names.js';
import { LARGEST_GEMMA, WRITTEN_AS } from './gguf-names.js';
import type { HeadCounts, Tensors } from './gguf-weights.js';

/** A model that can be written as a GGUF file. */
export interface GgufModel {
  readonly architecture: GgufArchitecture;
  readonly counts: HeadCounts;
  readonly attention: Attention;
  readonly model: LanguageModel;
  readonly settings: Readonly<Record<string, unknown>>;
}

const cannot = (file: string, why: string, suggestion = 'write safetensors instead') =>
  usageError(`${file} cannot be written as GGUF: ${why}`, suggestion);

/** Architecture of a MiniMind in llama.cpp: Llama, or Qwen 3 for version 3. None of them has its shared experts. */
function minimindAs(attention: Attention, layers: readonly Layer[]): GgufArchitecture | undefined {
  const mixture = layers.find((layer) => layer.kind === 'mixtureOfExperts');
  if (attention.queryNorm === undefined) return mixture ? undefined : 'llama';
  return mixture ? 'qwen3moe' : 'qwen3';
}

/**
 * The architecture of a model in llama.cpp.
 * @throws UserError when there is none, or it computes something else.
 */
export function ggufModelOf({ file, family, document, model }: ModelFile): GgufModel {
  const layers = walk(model).map(({ layer }) => layer);
  const attention = layers.find((layer) => layer.kind === 'attention');
  const name = family.name as FamilyName;
  const architecture =
    attention && name === 'minimind' ? minimindAs(attention, layers) : WRITTEN_AS[name];
  if (attention === undefined || architecture === undefined) {
    const families = [...Object.keys(WRITTEN_AS), 'minimind'].join(', ');
    throw cannot(
      file,
      `llama.cpp has no architecture for this ${name} model that can be written here`,
      `write safetensors instead; models of ${families} can be written`,
    );
  }
  const { heads, keyValueHeads } = attention;
  const settings = isRecord(document) && isRecord(document.model) ? document.model : {};
  const found = { architecture, counts: { heads, keyValueHeads }, attention, model, settings };
  const wrong = metadataDifference(found, layers);
  if (wrong !== undefined) throw cannot(file, `llama.cpp ${wrong}`);
  return found;
}

/** Activation of each architecture in llama.cpp, silu where there is none. */
const ACTIVATIONS: Readonly<Partial<Record<GgufArchitecture, readonly string[]>>> = {
  gemma: ['geluTanh'],
  gemma2: ['geluTanh'],
  gemma3: ['geluTanh'],
  gpt2: ['geluTanh', 'gelu'],
  gptneox: ['geluTanh', 'gelu'],
  bloom: ['geluTanh', 'gelu'],
};

const SCALINGS: readonly RotaryScaling['kind'][] = ['linear', 'llama3', 'yarn', 'longrope'];

/** Difference between a model and what llama.cpp computes for its architecture. */
function metadataDifference(found: GgufModel, layers: readonly Layer[]): string | undefined {
  const { architecture, attention, model } = found;
  const allowed = ACTIVATIONS[architecture] ?? ['silu'];
  for (const layer of layers) {
    if (layer.kind === 'gatedMlp' || layer.kind === 'packedExperts') {
      if (!allowed.includes(layer.activation)) return `has no ${layer.activation} here`;
    }
    if (layer.kind === 'activation' && !allowed.includes(layer.fn))
      return `has no ${layer.fn} here`;
    if (layer.kind === 'router') {
      const isNormed = layer.renormalised !== undefined;
      if (isNormed !== (architecture !== 'qwen2moe')) {
        return `${isNormed ? 'does not divide' : 'divides'} the weights of the experts by their sum`;
      }
    }
  }
  if (Math.abs(attention.scale * Math.sqrt(scoreWidth(found)) - 1) > 1e-6) {
    return 'scales the scores of attention in another way';
  }
  const mixtures = layers.filter(({ kind }) => kind === 'mixtureOfExperts').length;
  if (mixtures > 0 && mixtures < model.blocks.length) return 'needs experts in every layer';
  const scaling = attention.rotary?.scaling;
  if (scaling && !SCALINGS.includes(scaling.kind))
    return `has no RoPE scaling of type ${scaling.kind}`;
  if (scaling?.kind === 'longrope' && architecture !== 'phi3') return 'has longrope for Phi 3 only';
  if (scaling?.kind === 'yarn') {
    const usual = 0.1 * Math.log(scaling.factor) + 1;
    if (Math.abs(scaling.amplitude - usual) > 1e-6 || scaling.inverted === 'stepped') {
      return 'has another YaRN than this model';
    }
  }
  const slides = model.blocks.map((block) =>
    walk(block).some(
      ({ layer }) => layer.kind === 'attention' && layer.spans.some(({ window }) => window),
    ),
  );
  const isOther = (rule: (index: number) => boolean) =>
    slides.some((each, index) => each !== rule(index));
  const turns = model.blocks.map((block) =>
    walk(block).some(({ layer }) => layer.kind === 'attention' && layer.rotary !== undefined),
  );
  if (architecture === 'smollm3' && turns.some((each, at) => each !== ((at + 1) % 4 !== 0))) {
    return 'leaves out positions in every fourth layer of SmolLM 3';
  }
  if (architecture === 'gemma2' && isOther((index) => index % 2 === 0)) {
    return 'has windows in every other layer of Gemma 2';
  }
  if (architecture === 'gemma3' && isOther((index) => (index + 1) % 6 !== 0)) {
    return 'has windows in five of six layers of Gemma 3';
  }
  return undefined;
}

/** Number whose root divides the scores: the width of a head, or in the largest models of Gemma that of hidden / heads. */
function scoreWidth({ architecture, attention, model }: GgufModel): number {
  const { heads, headDim } = attention;
  const isLargest = model.blocks.length === LARGEST_GEMMA[architecture];
  return isLargest ? (model.embedding.weight.shape[1] ?? 0) / heads : headDim;
}

/** Architectures in which llama.cpp reads a window. */
const WINDOWED: readonly GgufArchitecture[] = ['gemma2', 'gemma3', 'phi3'];

/** Notes for a reader of the file. */
export function ggufNotes({ architecture, attention }: GgufModel): string[] {
  const window = attention.spans.find((span) => span.window)?.window;
  if (window === undefined || WINDOWED.includes(architecture)) return [];
  return [
    `llama.cpp has no sliding window for the architecture ${architecture}: beyond ${window.tokens} tokens it computes something else`,
  ];
}

const u32 = (value: number): GgufValue => ({ type: 'u32', value });
const f32 = (value: number): GgufValue => ({ type: 'f32', value });
const ggufString = (value: string): GgufValue => ({ type: 'string', value });

/** Keys of the architecture, without its name in front. */
export function architectureKeys(found: GgufModel, tensors: Tensors): Map<string, GgufValue> {
  const { architecture, attention, model, settings } = found;
  const hidden = model.embedding.weight.shape[1] ?? 0;
  const keys = new Map<string, GgufValue>();
  const put = (key: string, value: GgufValue | undefined) => {
    if (value !== undefined) keys.set(`${architecture}.${key}`, value);
  };
  put('vocab_size', u32(model.embedding.weight.shape[0] ?? 0));
  put('context_length', u32(model.positions));
  put('embedding_length', u32(hidden));
  put('block_count', u32(model.blocks.length));
  const inner = settings.intermediate_size;
  const down = tensors.get('blk.0.ffn_down.weight')?.shape[1];
  const width = down ?? (typeof inner === 'number' ? inner : undefined);
  const expert = tensors.get(
    [...tensors.keys()].find((name) => name.endsWith('.ffn_down_exps.weight')) ?? '',
  );
  put('feed_forward_length', u32(width ?? expert?.shape[2] ?? 0));
  put('attention.head_count', u32(attention.heads));
  put('attention.head_count_kv', u32(attention.keyValueHeads));
  const norm = walk(model.norm)
    .map(({ layer }) => layer)
    .find((layer) => layer.kind === 'rmsNorm' || layer.kind === 'layerNorm');
  const eps = f32(norm?.eps ?? 1e-5);
  put(`attention.layer_norm_${norm?.kind === 'rmsNorm' ? 'rms_' : ''}epsilon`, eps);
  if (attention.rotary) {
    put('rope.freq_base', f32(fullRotary(found)?.base ?? attention.rotary.base));
    put('rope.dimension_count', u32(attention.rotary.rotatedDim));
  }
  if (attention.headDim !== hidden / attention.heads || architecture.startsWith('gemma')) {
    put('attention.key_length', u32(attention.headDim));
    put('attention.value_length', u32(attention.headDim));
  }
  putExperts(found, tensors, expert?.shape[2], put);
  putWindows(found, put);
  putScaling(found, put);
  if (architecture === 'gptneox') {
    put('use_parallel_residual', { type: 'bool', value: settings.use_parallel_residual !== false });
  }
  return keys;
}

type Put = (key: string, value: GgufValue | undefined) => void;

function putExperts(
  { architecture, model }: GgufModel,
  tensors: Tensors,
  inner: number | undefined,
  put: Put,
): void {
  const mixture = walk(model)
    .map(({ layer }) => layer)
    .find((layer) => layer.kind === 'mixtureOfExperts');
  if (mixture === undefined) return;
  put('expert_count', u32(mixture.router.weight.shape[0] ?? 0));
  put('expert_used_count', u32(mixture.router.expertsPerToken));
  if (architecture !== 'llama') put('expert_feed_forward_length', u32(inner ?? 0));
  const shared = tensors.get('blk.0.ffn_down_shexp.weight')?.shape[1];
  if (shared !== undefined) put('expert_shared_feed_forward_length', u32(shared));
}

function putWindows({ architecture, attention, model, settings }: GgufModel, put: Put): void {
  const window = attention.spans.find((span) => span.window)?.window;
  // llama.cpp refuses a window of 0.
  if (window && WINDOWED.includes(architecture)) {
    put('attention.sliding_window', u32(window.tokens));
  }
  if (architecture === 'gemma2' || architecture === 'gemma3') {
    const logits = model.logitSteps.find((layer) => layer.kind === 'softcap');
    if (attention.softcap !== undefined) put('attn_logit_softcapping', f32(attention.softcap));
    if (logits) put('final_logit_softcapping', f32(logits.cap));
  }
  const local = settings.rope_local_base_freq;
  if (architecture === 'gemma3' && typeof local === 'number') put('rope.freq_base_swa', f32(local));
}

/** Rotation of the layers without a window, which the metadata states. */
function fullRotary({ architecture, attention, model }: GgufModel): Attention['rotary'] {
  if (architecture !== 'gemma3') return attention.rotary;
  const layers = model.blocks.flatMap((block) => walk(block).map(({ layer }) => layer));
  const full = layers.find(
    (layer) => layer.kind === 'attention' && layer.spans.every(({ window }) => !window),
  );
  return full?.kind === 'attention' ? full.rotary : undefined;
}

function putScaling(found: GgufModel, put: Put): void {
  const scaling = fullRotary(found)?.scaling;
  if (scaling === undefined || scaling.kind === 'llama3' || scaling.kind === 'reordered') return;
  if (scaling.kind === 'longrope') {
    put('rope.scaling.original_context_length', u32(scaling.originalPositions));
    put('rope.scaling.attn_factor', f32(scaling.amplitude));
    return;
  }
  put('rope.scaling.type', ggufString(scaling.kind));
  put('rope.scaling.factor', f32(scaling.factor));
  if (scaling.kind !== 'yarn') return;
  put('rope.scaling.original_context_length', u32(scaling.originalPositions));
  put('rope.scaling.yarn_beta_fast', f32(scaling.betaFast));
  put('rope.scaling.yarn_beta_slow', f32(scaling.betaSlow));
}

/** Divisors of the rotary frequencies that llama.cpp reads as tensors, by name. */
export function ropeTensors(found: GgufModel): ReadonlyMap<string, readonly number[]> {
  const rotary = fullRotary(found);
  const { scaling } = rotary ?? {};
  if (rotary === undefined || scaling === undefined) return new Map();
  if (scaling.kind === 'longrope') {
    return new Map([
      ['rope_factors_long.weight', scaling.longDivisors],
      ['rope_factors_short.weight', scaling.shortDivisors],
    ]);
  }
  if (scaling.kind !== 'llama3') return new Map();
  const { factor, lowFrequencyFactor: low, highFrequencyFactor: high, originalPositions } = scaling;
  const divisors = Array.from({ length: rotary.rotatedDim / 2 }, (_, pair) => {
    const wave = 2 * Math.PI * rotary.base ** ((2 * pair) / rotary.rotatedDim);
    if (wave < originalPositions / high) return 1;
    if (wave > originalPositions / low) return factor;
    const smooth = (originalPositions / wave - low) / (high - low);
    return 1 / ((1 - smooth) / factor + smooth);
  });
  return new Map([['rope_freqs.weight', divisors]]);
}
