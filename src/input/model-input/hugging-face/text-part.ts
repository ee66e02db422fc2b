/**
 * Language models in configs of multimodal models: the text part, what it inherits from the config around it, and what
 * is left out. Sources: the configuration and modelling code of transformers 5.18.
 */

import type { PropertyPath } from '../../../base/errors.js';
import { asNumber, asText, isRecord, ownValue } from '../../../base/values.js';
import { isFamilyName } from '../../../model/architecture/families.js';
import type { KeyRemark } from '../../../model/architecture/family.js';
import {
  isEmptyValue,
  type JsonObject,
  LIMITED,
} from '../../../model/architecture/transformer/config-keys.js';
import { isTied, type PartNote, textPartNotes } from './text-part-notes.js';
import {
  PLAIN_EMBEDDINGS,
  PLAIN_LOGITS,
  TEXT_KINDS,
  type TextKind,
  WRAPPERS,
  type Wrapper,
} from './wrappers.js';

/** Keys that hold the text model. */
const TEXT_PARTS = ['text_config', 'llm_config', 'language_config'] as const;

/** Models of sounds whose language model is in their `decoder`, between two encoders, by the kind of that. */
const SOUND_DECODERS = {
  musicgen: 'musicgen_decoder',
  musicgen_melody: 'musicgen_melody_decoder',
} as const satisfies Readonly<Record<string, string>>;

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
  /** Keys that the class around the part does not read as the part's own class does. */
  readonly remarks: readonly KeyRemark[];
  readonly notes: readonly PartNote[];
  /** Whether the file has no text part, so that all values are defaults of the class. */
  readonly isAbsent?: boolean;
}

/** The key of a config's text part. */
export const textKeyOf = (whole: JsonObject): string | undefined =>
  soundKindOf(whole) ? 'decoder' : TEXT_PARTS.find((key) => isRecord(whole[key]));

const soundKindOf = ({ model_type: of, decoder }: JsonObject): string | undefined =>
  isRecord(decoder) ? ownValue<string>(SOUND_DECODERS, asText(of)) : undefined;

/** The decoder of a model of sounds; its class reads no other name of the kind. */
function soundDecoder(whole: JsonObject, kind: string, as?: string): TextPart {
  return {
    path: ['decoder'],
    of: asText(whole.model_type),
    config: { ...(whole.decoder as JsonObject), model_type: as ?? kind },
    prefix: 'decoder.',
    leftOut: ['text_encoder', 'audio_encoder'].filter((key) => isRecord(whole[key])),
    remarks: [],
    notes: [],
  };
}

/**
 * The text part of a config whose own kind has no family; undefined where its kind is not known, either.
 * @param as Family to read it as, regardless of its kind.
 */
export function textPartOf(whole: JsonObject, as?: string): TextPart | undefined {
  const { model_type: of } = whole;
  if (typeof of !== 'string' || isFamilyName(of)) return undefined;
  const ofSounds = soundKindOf(whole);
  if (ofSounds) return soundDecoder(whole, ofSounds, as);
  const wrapper = ownValue(WRAPPERS, of);
  const key = textKeyOf(whole);
  const isFlat = key === undefined && FLAT.includes(of);
  const isAbsent = key === undefined && !isFlat;
  if (isAbsent && ownValue(TEXT_KINDS, of))
    return as === undefined ? textAlone(of, whole) : undefined;
  if (isAbsent && (wrapper === undefined || hasSizes(whole))) return undefined;
  const text = (key === undefined ? (isFlat ? whole : {}) : whole[key]) as JsonObject;
  const named = isFlat ? undefined : text.model_type;
  const kind = as ?? wrapperKind(wrapper, named);
  const family = ownValue(TEXT_KINDS, kind)?.family ?? kind;
  if (!isFamilyName(family)) return undefined;
  const tied = isTied(wrapper, whole, text, kind);
  const inherited = {
    ...ownValue(TEXT_KINDS, kind)?.defaults,
    ...(isAbsent ? (wrapper?.absent ?? wrapper?.defaults) : wrapper?.defaults),
    ...(isAbsent && wrapper?.outerVocabulary && whole.vocab_size != null
      ? { vocab_size: whole.vocab_size }
      : {}),
  };
  const own = { ...inherited, ...(isFlat ? withoutParts(text) : withoutTokens(text)) };
  const { config, remarks } = asHeld({
    wrapper,
    kind,
    family,
    text: { ...own, ...withPlainPositions(own) },
  });
  return {
    path: key === undefined ? [] : [key],
    of,
    config: {
      ...config,
      model_type: family,
      tie_word_embeddings: tied,
      transformers_version: whole.transformers_version ?? text.transformers_version,
      architectures: whole.architectures == null ? null : ['TextModel'],
    },
    prefix: 'model.language_model.',
    leftOut: Object.keys(whole).filter((each) => each !== key && isPart(each, whole[each])),
    remarks,
    isAbsent,
    notes: textPartNotes({ of, wrapper, named, kind, family, whole, text, config, tied, isAbsent }),
  };
}

/** A config of the text model alone, under its own name. */
function textAlone(of: string, whole: JsonObject): TextPart {
  const text = { ...ownValue(TEXT_KINDS, of)?.defaults, ...whole };
  const family = ownValue(TEXT_KINDS, of)?.family ?? of;
  const alone = { ...text, ...withPlainPositions(text) };
  const { config, remarks } = asHeld({ kind: of, family, text: alone });
  return {
    path: [],
    of,
    config: { ...config, model_type: family },
    leftOut: [],
    remarks,
    notes: [],
  };
}

/** Whether a config has sizes next to its parts, as programs other than transformers write them. */
const hasSizes = (whole: JsonObject) =>
  ['hidden_size', 'num_hidden_layers', 'num_attention_heads'].some((key) => whole[key] != null);

/** Kind of a text part, as the class around it reads its name. */
function wrapperKind(wrapper: Wrapper | undefined, named: unknown): string {
  if (wrapper?.takes?.length === 1) return wrapper.text;
  if (named == null) return wrapper?.text ?? '';
  return ownValue(wrapper?.names ?? {}, asText(named)) ?? asText(named);
}

const isPart = (key: string, value: unknown) =>
  /_config$/.test(key) && key !== 'quantization_config' && !isEmptyValue(value);

const keptSettings = (config: JsonObject, isKept: (key: string) => boolean): JsonObject =>
  Object.fromEntries(Object.entries(config).filter(([key]) => isKept(key)));

const withoutTokens = (config: JsonObject): JsonObject =>
  keptSettings(config, (key) => !isOfImages(key));

const withoutParts = (config: JsonObject): JsonObject =>
  keptSettings(config, (key) => !isPart(key, config[key]) && !isOfImages(key));

/** Keys next to those of the language model in old files. */
const isOfImages = (key: string) =>
  /^(?:(?:num_)?image|vision|video|audio)_|_token_(?:id|index)$/.test(key) &&
  !/^(?:bos|eos|pad)_/.test(key);

// ── What the class around a part reads ───────────────────────────────────────────────────────────

interface Held {
  readonly wrapper?: Wrapper | undefined;
  readonly kind: string;
  readonly family: string;
  readonly text: JsonObject;
}

/** A text part's config with the values that the class around it computes with. */
function asHeld({ wrapper, kind, family, text }: Held): {
  config: JsonObject;
  remarks: KeyRemark[];
} {
  const {
    fixed = {},
    isWithoutWindows = false,
    dividesWidth,
  }: Partial<TextKind> = ownValue(TEXT_KINDS, kind) ?? {};
  const unread = dividesWidth ? ['head_dim'] : [];
  const plain = wrapper ? unscaled(wrapper, family) : {};
  const windows = isWithoutWindows
    ? ['sliding_window', 'layer_types', 'use_sliding_window', 'max_window_layers']
    : // MistralModel gives every layer the window; only the cache reads the list.
      wrapper && family === 'mistral'
      ? ['layer_types']
      : [];
  return {
    config: {
      ...keptSettings(text, (key) => !windows.includes(key) && !unread.includes(key)),
      ...fixed,
      ...plain,
      ...causal(wrapper, text),
    },
    remarks: [
      ...unread.flatMap((key) => widthRemark(key, text)),
      ...windows.flatMap((key) => windowRemark(key, text)),
      ...Object.entries(plain).flatMap(([key, value]): KeyRemark[] =>
        text[key] == null || text[key] === value
          ? []
          : [
              {
                path: [key],
                severity: 'warning',
                why: 'the class around this model does not read it',
              },
            ],
      ),
    ],
  };
}

/** Values of the keys that the class around a family does not read. */
function unscaled({ logits = [] }: Wrapper, family: string): JsonObject {
  const embeddings = ownValue<JsonObject | undefined>(PLAIN_EMBEDDINGS, family);
  if (logits === 'own') return { ...embeddings };
  const plain = ownValue<JsonObject | undefined>(PLAIN_LOGITS, family) ?? {};
  return { ...keptSettings(plain, (key) => !logits.includes(key)), ...embeddings };
}

/** A remark on a width of the heads that the class does not read, unless it is the one that the class computes. */
function widthRemark(key: string, text: JsonObject): KeyRemark[] {
  const width = asNumber(text.hidden_size) / asNumber(text.num_attention_heads);
  if (text[key] == null || text[key] === width) return [];
  const why = 'the class divides hidden_size by num_attention_heads';
  return [{ path: [key], severity: 'warning', why }];
}

function windowRemark(key: string, text: JsonObject): KeyRemark[] {
  const limit = LIMITED[key];
  if (!Object.hasOwn(text, key) || limit?.allows(text[key], text) !== false) return [];
  return [{ path: [key], severity: limit.severity, why: limit.why }];
}

/** PaliGemma's class reads a missing `use_bidirectional_attention` as true, and then builds a causal mask. */
const causal = (wrapper: Wrapper | undefined, text: JsonObject): JsonObject =>
  wrapper === WRAPPERS.paligemma && text.use_bidirectional_attention === true
    ? { use_bidirectional_attention: null }
    : {};

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

/** The name of a text part that is not known, for an error. */
export function unknownTextPart(whole: JsonObject): string | undefined {
  const key = textKeyOf(whole);
  if (key === undefined) return undefined;
  const kind =
    (whole[key] as JsonObject).model_type ?? ownValue(WRAPPERS, asText(whole.model_type))?.text;
  return typeof kind === 'string'
    ? `its ${key} is of the kind ${kind}, which is not known`
    : undefined;
}
