import { usageError } from '../../base/errors.js';
import type { Family } from './family.js';

type FamilyLoaders<Name extends string> = Readonly<Record<Name, () => Promise<Family>>>;

/** Drops the types of the schemas: the compiler would compare all of them in a program that imports the library. */
const familyLoaders = <Name extends string>(loaders: FamilyLoaders<Name>) => loaders;

/** Registry of families, one per line; each is loaded on demand. */
export const FAMILIES = familyLoaders({
  hybrid: async () => (await import('./models/hybrid.js')).hybrid,
  minimind: async () => (await import('./models/minimind.js')).minimind,
  minigpt: async () => (await import('./models/minigpt.js')).minigpt,
  llama: async () => (await import('./models/llama.js')).llama,
  mistral: async () => (await import('./models/mistral.js')).mistral,
  mixtral: async () => (await import('./models/mixtral.js')).mixtral,
  qwen2: async () => (await import('./models/qwen2.js')).qwen2,
  qwen2_moe: async () => (await import('./models/qwen2_moe.js')).qwen2Moe,
  qwen3: async () => (await import('./models/qwen3.js')).qwen3,
  qwen3_moe: async () => (await import('./models/qwen3_moe.js')).qwen3Moe,
  gemma: async () => (await import('./models/gemma.js')).gemma,
  gemma2: async () => (await import('./models/gemma2.js')).gemma2,
  gemma3_text: async () => (await import('./models/gemma3_text.js')).gemma3Text,
  phi3: async () => (await import('./models/phi3.js')).phi3,
  gpt2: async () => (await import('./models/gpt2.js')).gpt2,
  gpt_neox: async () => (await import('./models/gpt_neox.js')).gptNeox,
  bloom: async () => (await import('./models/bloom.js')).bloom,
  smollm3: async () => (await import('./models/smollm3.js')).smollm3,
  olmo2: async () => (await import('./models/olmo2.js')).olmo2,
  deepseek_v2: async () => (await import('./models/deepseek_v2.js')).deepseekV2,
  deepseek_v3: async () => (await import('./models/deepseek_v3.js')).deepseekV3,
  mamba: async () => (await import('./models/mamba.js')).mamba,
  mamba2: async () => (await import('./models/mamba2.js')).mamba2,
  falcon_mamba: async () => (await import('./models/falcon_mamba.js')).falconMamba,
  bamba: async () => (await import('./models/bamba.js')).bamba,
  granitemoehybrid: async () => (await import('./models/granitemoehybrid.js')).graniteMoeHybrid,
  falcon_h1: async () => (await import('./models/falcon_h1.js')).falconH1,
  jamba: async () => (await import('./models/jamba.js')).jamba,
  nemotron_h: async () => (await import('./models/nemotron_h.js')).nemotronH,
  granite: async () => (await import('./models/granite.js')).granite,
  granitemoe: async () => (await import('./models/granitemoe.js')).granitemoe,
  starcoder2: async () => (await import('./models/starcoder2.js')).starcoder2,
  olmo: async () => (await import('./models/olmo.js')).olmo,
  olmo3: async () => (await import('./models/olmo3.js')).olmo3,
  olmoe: async () => (await import('./models/olmoe.js')).olmoe,
  seed_oss: async () => (await import('./models/seed_oss.js')).seedOss,
  ernie4_5: async () => (await import('./models/ernie4_5.js')).ernie45,
  exaone4: async () => (await import('./models/exaone4.js')).exaone4,
  glm: async () => (await import('./models/glm.js')).glm,
  glm4: async () => (await import('./models/glm4.js')).glm4,
  hunyuan_v1_dense: async () => (await import('./models/hunyuan_v1_dense.js')).hunyuanV1Dense,
  arcee: async () => (await import('./models/arcee.js')).arcee,
  nemotron: async () => (await import('./models/nemotron.js')).nemotron,
  cohere: async () => (await import('./models/cohere.js')).cohere,
  cohere2: async () => (await import('./models/cohere2.js')).cohere2,
  phi: async () => (await import('./models/phi.js')).phi,
  stablelm: async () => (await import('./models/stablelm.js')).stablelm,
  helium: async () => (await import('./models/helium.js')).helium,
  ministral: async () => (await import('./models/ministral.js')).ministral,
  opt: async () => (await import('./models/opt.js')).opt,
  gptj: async () => (await import('./models/gptj.js')).gptj,
  gpt_neo: async () => (await import('./models/gpt_neo.js')).gptNeo,
  falcon: async () => (await import('./models/falcon.js')).falcon,
  mpt: async () => (await import('./models/mpt.js')).mpt,
  gpt_bigcode: async () => (await import('./models/gpt_bigcode.js')).gptBigcode,
  qwen3_next: async () => (await import('./models/qwen3_next.js')).qwen3Next,
  qwen3_5_text: async () => (await import('./models/qwen3_5_text.js')).qwen35Text,
  qwen3_5_moe_text: async () => (await import('./models/qwen3_5_moe_text.js')).qwen35MoeText,
  lfm2: async () => (await import('./models/lfm2.js')).lfm2,
  lfm2_moe: async () => (await import('./models/lfm2_moe.js')).lfm2Moe,
  gpt_oss: async () => (await import('./models/gpt_oss.js')).gptOss,
  olmo_hybrid: async () => (await import('./models/olmo_hybrid.js')).olmoHybrid,
  glm4_moe: async () => (await import('./models/glm4_moe.js')).glm4Moe,
  dots1: async () => (await import('./models/dots1.js')).dots1,
  ernie4_5_moe: async () => (await import('./models/ernie4_5_moe.js')).ernie45Moe,
  ernie4_5_vl_moe_text: async () =>
    (await import('./models/ernie4_5_vl_moe_text.js')).ernie45VlMoeText,
  llama4_text: async () => (await import('./models/llama4_text.js')).llama4Text,
  gemma3n_text: async () => (await import('./models/gemma3n_text.js')).gemma3nText,
  gemma4_text: async () => (await import('./models/gemma4_text.js')).gemma4Text,
  minimax_m2: async () => (await import('./models/minimax_m2.js')).minimaxM2,
  ministral3: async () => (await import('./models/ministral3.js')).ministral3,
  phimoe: async () => (await import('./models/phimoe.js')).phimoe,
  zamba2: async () => (await import('./models/zamba2.js')).zamba2,
  mistral4: async () => (await import('./models/mistral4.js')).mistral4,
  glm4_moe_lite: async () => (await import('./models/glm4_moe_lite.js')).glm4MoeLite,
  apertus: async () => (await import('./models/apertus.js')).apertus,
  granitemoeshared: async () => (await import('./models/granitemoeshared.js')).graniteMoeShared,
  granite_swa: async () => (await import('./models/granite_swa.js')).graniteSwa,
  granitemoe_swa: async () => (await import('./models/granitemoe_swa.js')).graniteMoeSwa,
  exaone_moe: async () => (await import('./models/exaone_moe.js')).exaoneMoe,
  cohere2_moe: async () => (await import('./models/cohere2_moe.js')).cohere2Moe,
  afmoe: async () => (await import('./models/afmoe.js')).afmoe,
  flex_olmo: async () => (await import('./models/flex_olmo.js')).flexOlmo,
  cwm: async () => (await import('./models/cwm.js')).cwm,
  hunyuan_v1_moe: async () => (await import('./models/hunyuan_v1_moe.js')).hunyuanV1Moe,
  minicpm3: async () => (await import('./models/minicpm3.js')).minicpm3,
  solar_open: async () => (await import('./models/solar_open.js')).solarOpen,
  youtu: async () => (await import('./models/youtu.js')).youtu,
  vaultgemma: async () => (await import('./models/vaultgemma.js')).vaultgemma,
  jais2: async () => (await import('./models/jais2.js')).jais2,
  hyperclovax: async () => (await import('./models/hyperclovax.js')).hyperclovax,
  nanochat: async () => (await import('./models/nanochat.js')).nanochat,
  mellum: async () => (await import('./models/mellum.js')).mellum,
  axk1: async () => (await import('./models/axk1.js')).axk1,
  aria_text: async () => (await import('./models/aria_text.js')).ariaText,
  emu3_text_model: async () => (await import('./models/emu3_text_model.js')).emu3TextModel,
  phi4_multimodal: async () => (await import('./models/phi4_multimodal.js')).phi4Multimodal,
  dbrx: async () => (await import('./models/dbrx.js')).dbrx,
  bitnet: async () => (await import('./models/bitnet.js')).bitnet,
  codegen: async () => (await import('./models/codegen.js')).codegen,
  biogpt: async () => (await import('./models/biogpt.js')).biogpt,
  'openai-gpt': async () => (await import('./models/openai-gpt.js')).openaiGpt,
  gpt_neox_japanese: async () => (await import('./models/gpt_neox_japanese.js')).gptNeoxJapanese,
  'modernbert-decoder': async () =>
    (await import('./models/modernbert-decoder.js')).modernbertDecoder,
  bart: async () => (await import('./models/bart.js')).bart,
  mbart: async () => (await import('./models/mbart.js')).mbart,
  pegasus: async () => (await import('./models/pegasus.js')).pegasus,
  blenderbot: async () => (await import('./models/blenderbot.js')).blenderbot,
  'blenderbot-small': async () => (await import('./models/blenderbot-small.js')).blenderbotSmall,
  plbart: async () => (await import('./models/plbart.js')).plbart,
  marian: async () => (await import('./models/marian.js')).marian,
  mvp: async () => (await import('./models/mvp.js')).mvp,
  bigbird_pegasus: async () => (await import('./models/bigbird_pegasus.js')).bigbirdPegasus,
  trocr: async () => (await import('./models/trocr.js')).trocr,
  whisper: async () => (await import('./models/whisper.js')).whisper,
  gemma4_unified_text: async () => (await import('./models/gemma4_text.js')).gemma4UnifiedText,
  jetmoe: async () => (await import('./models/jetmoe.js')).jetmoe,
  diffllama: async () => (await import('./models/diffllama.js')).diffllama,
  doge: async () => (await import('./models/doge.js')).doge,
  hrm_text: async () => (await import('./models/hrm_text.js')).hrmText,
  deepseek_v32: async () => (await import('./models/deepseek_v32.js')).deepseekV32,
  glm_moe_dsa: async () => (await import('./models/glm_moe_dsa.js')).glmMoeDsa,
  minimax_m3_vl_text: async () => (await import('./models/minimax_m3_vl_text.js')).minimaxM3VlText,
  mimo_v2_flash: async () => (await import('./models/mimo_v2_flash.js')).mimoV2Flash,
  hy_v3: async () => (await import('./models/hy_v3.js')).hyV3,
  laguna: async () => (await import('./models/laguna.js')).laguna,
  deepseek_v4: async () => (await import('./models/deepseek_v4.js')).deepseekV4,
  axk2: async () => (await import('./models/axk2.js')).axk2,
  hy_v4: async () => (await import('./models/hy_v4.js')).hyV4,
  zaya: async () => (await import('./models/zaya.js')).zaya,
  inkling_text: async () => (await import('./models/inkling_text.js')).inklingText,
  qwen4_exp_text: async () => (await import('./models/qwen4_exp_text.js')).qwen4ExpText,
  xlnet: async () => (await import('./models/xlnet.js')).xlnet,
  xlm: async () => (await import('./models/xlm.js')).xlm,
  xlstm: async () => (await import('./models/xlstm.js')).xlstm,
  moshi: async () => (await import('./models/moshi.js')).moshi,
  cpmant: async () => (await import('./models/cpmant.js')).cpmant,
  musicgen_decoder: async () => (await import('./models/musicgen_decoder.js')).musicgenDecoder,
  musicgen_melody_decoder: async () =>
    (await import('./models/musicgen_decoder.js')).musicgenMelodyDecoder,
  prophetnet: async () => (await import('./models/prophetnet.js')).prophetnet,
  reformer: async () => (await import('./models/reformer.js')).reformer,
  blt: async () => (await import('./models/blt.js')).blt,
  longcat_flash: async () => (await import('./models/longcat_flash.js')).longcatFlash,
  cohere_compass_text: async () =>
    (await import('./models/cohere_compass_text.js')).cohereCompassText,
  minimax: async () => (await import('./models/minimax.js')).minimax,
  kimi_linear: async () => (await import('./models/kimi_linear.js')).kimiLinear,
  recurrent_gemma: async () => (await import('./models/recurrent_gemma.js')).recurrentGemma,
  rwkv: async () => (await import('./models/rwkv.js')).rwkv,
  mllama_text_model: async () => (await import('./models/mllama_text_model.js')).mllamaTextModel,
  persimmon: async () => (await import('./models/persimmon.js')).persimmon,
  xglm: async () => (await import('./models/xglm.js')).xglm,
  ctrl: async () => (await import('./models/ctrl.js')).ctrl,
  zamba: async () => (await import('./models/zamba.js')).zamba,
  internlm2: async () => (await import('./models/internlm2.js')).internlm2,
  internlm3: async () => (await import('./models/internlm3.js')).internlm3,
  baichuan: async () => (await import('./models/baichuan.js')).baichuan,
  qwen: async () => (await import('./models/qwen.js')).qwen,
  minicpm: async () => (await import('./models/minicpm.js')).minicpm,
  exaone: async () => (await import('./models/exaone.js')).exaone,
  bert: async () => (await import('./models/bert.js')).bert,
  roberta: async () => (await import('./models/bert.js')).roberta,
  'xlm-roberta': async () => (await import('./models/bert.js')).xlmRoberta,
  camembert: async () => (await import('./models/bert.js')).camembert,
  deberta: async () => (await import('./models/deberta.js')).debertaV1,
  'deberta-v2': async () => (await import('./models/deberta.js')).debertaV2,
  nomic_bert: async () => (await import('./models/nomic_bert.js')).nomicBert,
  electra: async () => (await import('./models/bert.js')).electra,
  t5: async () => (await import('./models/t5.js')).t5,
  mt5: async () => (await import('./models/t5.js')).mt5,
  umt5: async () => (await import('./models/t5.js')).umt5,
  'bart-seq2seq': async () => (await import('./models/seq2seq.js')).bartSeq2seq,
  'mbart-seq2seq': async () => (await import('./models/seq2seq.js')).mbartSeq2seq,
  'pegasus-seq2seq': async () => (await import('./models/seq2seq.js')).pegasusSeq2seq,
  'marian-seq2seq': async () => (await import('./models/seq2seq.js')).marianSeq2seq,
  'whisper-seq2seq': async () => (await import('./models/seq2seq.js')).whisperSeq2seq,
  clip: async () => (await import('./models/clip.js')).clip,
  clip_text_model: async () => (await import('./models/clip.js')).clipTextModel,
  clip_vision_model: async () => (await import('./models/clip.js')).clipVisionModel,
  siglip: async () => (await import('./models/clip.js')).siglip,
  siglip_text_model: async () => (await import('./models/clip.js')).siglipTextModel,
  siglip_vision_model: async () => (await import('./models/clip.js')).siglipVisionModel,
  siglip2: async () => (await import('./models/clip.js')).siglip2,
  siglip2_vision_model: async () => (await import('./models/clip.js')).siglip2VisionModel,
  modernbert: async () => (await import('./models/modernbert.js')).modernbert,
  distilbert: async () => (await import('./models/small-encoders.js')).distilbert,
  albert: async () => (await import('./models/small-encoders.js')).albert,
  mpnet: async () => (await import('./models/small-encoders.js')).mpnet,
  vit: async () => (await import('./models/vit.js')).vit,
  dinov2: async () => (await import('./models/vit.js')).dinov2,
  chatglm: async () => (await import('./models/chatglm.js')).chatglm,
});

export type FamilyName = keyof typeof FAMILIES;

/** Family of a kind whose code is a copy, with the keys that it has by default and those of its `rope_scaling`. */
export interface Copy {
  readonly family: FamilyName;
  readonly keys?: Readonly<Record<string, unknown>>;
  readonly scaling?: Readonly<Record<string, unknown>>;
}

/**
 * Kinds of `config.json` whose code is a copy of a family's.
 * Kimi K2: DeepSeek-V3 under another name, as `kimi_k25` of transformers reads it.
 * GPT-SW3: GPT-2, whose class transformers builds for it.
 * MiniLLM: github.com/cklxx/mini-llm, model/model_minillm.py, a copy of MiniMind 2 of November 2025.
 */
export const COPIES = {
  kimi_k2: { family: 'deepseek_v3' },
  'gpt-sw3': { family: 'gpt2' },
  minillm: {
    family: 'minimind',
    keys: { version: 2, hidden_size: 512, num_hidden_layers: 8 },
    scaling: { rope_type: 'yarn', formula: 'early' },
  },
} as const satisfies Record<string, Copy>;

export const isCopy = (name: unknown): name is keyof typeof COPIES =>
  typeof name === 'string' && Object.hasOwn(COPIES, name);

export const FAMILY_NAMES = Object.keys(FAMILIES) as readonly FamilyName[];

/** Family of a document without `model.family`. */
export const DEFAULT_FAMILY: FamilyName = 'hybrid';

export function isFamilyName(name: unknown): name is FamilyName {
  return typeof name === 'string' && Object.hasOwn(FAMILIES, name);
}

/** Families as they are loaded: each further `import()` of one takes as long as checking a document. */
const loading = new Map<FamilyName, Promise<Family>>();

/** @throws UserError for an unknown family; names from JavaScript are unchecked. */
export async function loadFamily(name: FamilyName): Promise<Family> {
  if (!isFamilyName(name)) {
    throw usageError(
      `unknown family ${JSON.stringify(name)}`,
      `write one of ${FAMILY_NAMES.join(', ')}`,
    );
  }
  const family = loading.get(name) ?? FAMILIES[name]();
  loading.set(name, family);
  return family;
}
