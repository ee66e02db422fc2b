/**
 * Language models in configs of models that also see or hear: the text part, what it inherits from the config around
 * it, and what is left out. Sources: the configuration and modelling code of transformers 5.18.
 */
import { isFamilyName } from '../architecture/families.js';
import type { Ignored } from '../architecture/family.js';
import { isEmptyValue, type JsonObject } from '../architecture/transformer/config-keys.js';
import { ignoredOnLoad, SEEING } from '../architecture/transformer/ignored-tensors.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { firstOfPattern, storedNames } from '../checkpoint/names.js';
import type { PropertyPath } from '../errors.js';
import { isRecord } from '../text/words.js';

/** Keys that hold the text model. */
const TEXT_PARTS = ['text_config', 'llm_config', 'language_config'] as const;

/**
 * Kinds of text models that are another family. Their `mrope` gives a token three positions, for time, height and
 * width. Those of text are equal, so that each frequency turns by the same angle as without it.
 */
const SAME_AS: Readonly<Record<string, string>> = {
  qwen2_vl_text: 'qwen2',
  qwen2_5_vl_text: 'qwen2',
  qwen3_vl_text: 'qwen3',
  qwen3_vl_moe_text: 'qwen3_moe',
  glm4v_text: 'glm4',
};

/** Kind of a text part that does not name its own, as the class around it takes it. */
const TEXT_OF: Readonly<Record<string, string>> = {
  aya_vision: 'cohere2',
  cohere2_vision: 'cohere2',
  deepseek_vl: 'llama',
  exaone4_5: 'exaone4',
  fast_vlm: 'qwen2',
  gemma3: 'gemma3_text',
  gemma3n: 'gemma3n_text',
  gemma4: 'gemma4_text',
  glm4v: 'glm4v_text',
  glmasr: 'llama',
  got_ocr2: 'qwen2',
  granite4_vision: 'llama',
  granite_speech: 'granite',
  idefics2: 'mistral',
  idefics3: 'llama',
  internvl: 'qwen2',
  janus: 'llama',
  lfm2_vl: 'lfm2',
  lighton_ocr: 'qwen3',
  llama4: 'llama4_text',
  llava: 'llama',
  llava_next: 'llama',
  llava_next_video: 'llama',
  llava_onevision: 'qwen2',
  mistral3: 'mistral',
  ovis2: 'qwen2',
  paligemma: 'gemma',
  perception_lm: 'llama',
  qwen2_5_vl: 'qwen2_5_vl_text',
  qwen2_audio: 'qwen2',
  qwen2_vl: 'qwen2_vl_text',
  qwen3_vl: 'qwen3_vl_text',
  qwen3_vl_moe: 'qwen3_vl_moe_text',
  smolvlm: 'llama',
  video_llama_3: 'qwen2',
  video_llava: 'llama',
  vipllava: 'llama',
  voxtral: 'llama',
};

/** Classes that tie the head unless a file says otherwise. */
const TIED: ReadonlySet<string> = new Set([
  'aya_vision',
  'cohere2_vision',
  'deepseek_vl',
  'gemma3',
  'gemma3n',
  'gemma4',
  'glmasr',
  'got_ocr2',
  'granite_speech',
  'internvl',
  'janus',
  'lfm2_vl',
  'lighton_ocr',
  'mistral3',
  'ovis2',
  'paligemma',
]);

/** Text models that tie the head themselves, unless a file says otherwise. */
const TIED_TEXTS = /^(?:gemma|cohere|lfm2)/;

/** Defaults of a kind of text model that are not those of its family. */
const DEFAULTS: Readonly<Record<string, JsonObject>> = {
  glm4v_text: { partial_rotary_factor: 1, rms_norm_eps: 1e-5, max_position_embeddings: 32_768 },
};

/** Keys that the class around a text part, or the part's own class, does not read. */
const UNREAD: Readonly<Record<string, JsonObject>> = {
  // The head of these classes does not scale its logits.
  aya_vision: { logit_scale: 1 },
  cohere2_vision: { logit_scale: 1 },
  // Its heads share the hidden size, and its queries, keys and values always have biases.
  glm4v: { head_dim: null, attention_bias: true },
  qwen3_vl_moe: { norm_topk_prob: true },
};

/** Classes whose files had the language model's keys next to the others, before transformers 4.52. */
const FLAT: readonly string[] = ['qwen2_vl', 'qwen2_5_vl'];

/** The text part of a config. */
export interface TextPart {
  /** Path of the part; empty where its keys are next to the others. */
  readonly path: PropertyPath;
  /** Kind of the whole model. */
  readonly of: string;
  /** A config of a known family. */
  readonly config: JsonObject & { readonly model_type: string };
  /** First part of its names, where it is inside another model. */
  readonly prefix?: string;
  /** Keys of the parts that are left out: `vision_config`. */
  readonly leftOut: readonly string[];
  /** Whether only the class around the part, not its own class or the file, ties the head. */
  readonly isTiedByClass?: boolean;
}

/** The key of a config's text part. */
export const textKeyOf = (whole: JsonObject): string | undefined =>
  TEXT_PARTS.find((key) => isRecord(whole[key]));

/**
 * The text part of a config whose own kind has no family; undefined where its kind is not known, either.
 * @param as Family to read it as, regardless of its kind.
 */
export function textPartOf(whole: JsonObject, as?: string): TextPart | undefined {
  const { model_type: of } = whole;
  if (typeof of !== 'string' || isFamilyName(of)) return undefined;
  const key = textKeyOf(whole);
  if (key === undefined && !FLAT.includes(of)) {
    return isText(of) && as === undefined ? textAlone(of, whole) : undefined;
  }
  const text = (key === undefined ? whole : whole[key]) as JsonObject;
  const named = key === undefined ? undefined : text.model_type;
  const kind = as ?? String(named ?? ownValue(TEXT_OF, of) ?? '');
  const family = ownValue(SAME_AS, kind) ?? kind;
  if (!isFamilyName(family)) return undefined;
  return {
    path: key === undefined ? [] : [key],
    of,
    config: {
      ...(Object.hasOwn(DEFAULTS, kind) ? DEFAULTS[kind] : {}),
      ...withoutParts(text),
      ...withPlainPositions(text),
      ...(Object.hasOwn(UNREAD, of) ? UNREAD[of] : {}),
      model_type: family,
      tie_word_embeddings: isTied(of, whole, text),
      transformers_version: whole.transformers_version ?? text.transformers_version,
      architectures: whole.architectures == null ? null : ['TextModel'],
    },
    prefix: 'model.language_model.',
    leftOut: Object.keys(whole).filter((each) => each !== key && isPart(each, whole[each])),
    isTiedByClass: givenTie(whole, text) === undefined && TIED.has(of) && !TIED_TEXTS.test(family),
  };
}

const isText = (kind: string) => Object.hasOwn(SAME_AS, kind);

/** A config of the text model alone, under its own name. */
const textAlone = (of: string, whole: JsonObject): TextPart => ({
  path: [],
  of,
  config: {
    ...(Object.hasOwn(DEFAULTS, of) ? DEFAULTS[of] : {}),
    ...whole,
    ...withPlainPositions(whole),
    model_type: ownValue(SAME_AS, of) ?? of,
  },
  leftOut: [],
});

const isPart = (key: string, value: unknown) =>
  /_config$/.test(key) && key !== 'quantization_config' && !isEmptyValue(value);

const withoutParts = (config: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(config).filter(([key]) => !isPart(key, config[key]) && !isOfImages(key)),
  );

/** Keys next to those of the language model in old files. */
const isOfImages = (key: string) =>
  /^(?:vision|image|video|audio)_|_token_(?:id|index)$/.test(key) && !/^(?:bos|eos|pad)_/.test(key);

/** Classes whose older files tied the head in the text part, which counts in addition to the outer key. */
const TIED_INSIDE: ReadonlySet<string> = new Set([
  'llava',
  'llava_next',
  'llava_next_video',
  'llava_onevision',
  'qwen2_5_vl',
  'qwen2_vl',
  'video_llava',
  'vipllava',
]);

function isTied(of: string, whole: JsonObject, text: JsonObject): boolean {
  if (TIED_INSIDE.has(of) && text.tie_word_embeddings === true) return true;
  return givenTie(whole, text) ?? TIED.has(of);
}

function givenTie(whole: JsonObject, text: JsonObject): boolean | undefined {
  const given = whole.tie_word_embeddings ?? text.tie_word_embeddings;
  return typeof given === 'boolean' ? given : undefined;
}

const ROTARY = ['rope_parameters', 'rope_scaling'] as const;

/** Rotary settings without `mrope`, which changes nothing for text. */
function withPlainPositions(text: JsonObject): JsonObject {
  return Object.fromEntries(
    ROTARY.flatMap((key) => {
      const value = text[key];
      if (!isRecord(value)) return [];
      const { mrope_section: _, mrope_interleaved: __, ...rest } = value as JsonObject;
      const plain = Object.entries(rest).map(([name, each]) => [
        name,
        each === 'mrope' ? 'default' : each,
      ]);
      return [[key, Object.fromEntries(plain)]];
    }),
  );
}

const ownValue = (values: Readonly<Record<string, string>>, key: string) =>
  Object.hasOwn(values, key) ? values[key] : undefined;

/** The name of a text part that is not known, for an error. */
export function unknownTextPart(whole: JsonObject): string | undefined {
  const key = textKeyOf(whole);
  if (key === undefined) return undefined;
  const kind = (whole[key] as JsonObject).model_type ?? ownValue(TEXT_OF, String(whole.model_type));
  return typeof kind === 'string'
    ? `its ${key} is of the kind ${kind}, which is not known`
    : undefined;
}

/** What classes around a text model ignore on loading, in addition to the class of the text model alone. */
const IGNORED_AROUND: Readonly<Record<string, readonly string[]>> = {
  // Layers that generate images, sound and actions, beside and between those of the language model.
  cosmos3_omni: [
    '\\.add_k_proj\\.',
    '\\.add_q_proj\\.',
    '\\.add_v_proj\\.',
    '\\.norm_added_k\\.',
    '\\.norm_added_q\\.',
    '\\.to_add_out\\.',
    '^action_modality_embed$',
    '^action_proj_in\\.',
    '^action_proj_out\\.',
    '^audio_modality_embed$',
    '^audio_proj_in\\.',
    '^audio_proj_out\\.',
    '^proj_in\\.',
    '^proj_out\\.',
    '^time_embedder\\.',
    'moe_gen',
  ],
  exaone4_5: ['mtp.*'],
};

/**
 * Tensors that a class ignores on loading.
 * @param of Kind of the whole model around a text model; undefined for a model alone.
 * @param ofText Those of the text model alone.
 */
export function ignoredAround(
  of: string | undefined,
  ofText: readonly Ignored[],
): readonly Ignored[] {
  if (of === undefined) return ofText;
  const further = Object.hasOwn(IGNORED_AROUND, of) ? (IGNORED_AROUND[of] ?? []) : [];
  return [
    ...ofText.filter(({ pattern }) => !(pattern instanceof RegExp && pattern.source === SEEING)),
    ...ignoredOnLoad(further),
  ];
}

/** A part of a checkpoint outside the language model. */
export interface LeftOutPart {
  /** `vision_tower` */
  readonly name: string;
  /** Pattern of its names: `model.vision_tower.**`. */
  readonly pattern: string;
  readonly parameters: number;
}

/**
 * Parts of a checkpoint that hold nothing of the language model, with their parameters.
 * @param own Names of the language model's tensors.
 * @param ignored Tensors beside the language model that are no part: one of nothing else is not left out.
 */
export function partsLeftOut(
  checkpoint: Checkpoint,
  own: ReadonlySet<string>,
  ignored: readonly Ignored[],
): LeftOutPart[] {
  const places = new Set([...own].map(placeOf));
  const parts = new Map<string, LeftOutPart>();
  const other = new Set<string>();
  for (const [name, { tensor }] of storedNames(checkpoint)) {
    const place = placeOf(name);
    if (places.has(place)) continue;
    if (firstOfPattern(name, ignored) === undefined) other.add(place);
    const before = parts.get(place)?.parameters ?? 0;
    parts.set(place, {
      name: place.split('.').at(-1) ?? place,
      pattern: name === place ? place : `${place}.**`,
      parameters: before + tensor.elements,
    });
  }
  return [...parts].filter(([place]) => other.has(place)).map(([, part]) => part);
}

/** `model.vision_tower` of `model.vision_tower.blocks.0.weight`, `visual` of `visual.patch_embed.weight`. */
function placeOf(name: string): string {
  const [first = '', second = ''] = name.split('.');
  return first === 'model' || first === 'thinker' ? `${first}.${second}` : first;
}
