/**
 * Language models in configs of models that also see or hear: the text part, what it inherits from the config around
 * it, and what is left out. Sources: the configuration and modelling code of transformers 5.18.
 */
import { isFamilyName } from '../architecture/families.js';
import type { KeyRemark } from '../architecture/family.js';
import { isEmptyValue, type JsonObject, LIMITED } from '../architecture/transformer/config-keys.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { storedNames } from '../checkpoint/names.js';
import type { ProblemText, PropertyPath, Severity } from '../errors.js';
import { isRecord, joined } from '../text/words.js';
import {
  PLAIN_EMBEDDINGS,
  PLAIN_LOGITS,
  TEXT_KINDS,
  type TextKind,
  TIED_BY_DEFAULT,
  WRAPPERS,
  type Wrapper,
} from './wrappers.js';

/** Keys that hold the text model. */
const TEXT_PARTS = ['text_config', 'llm_config', 'language_config'] as const;

/** Classes whose files had the language model's keys next to the others, before transformers 4.52. */
const FLAT: readonly string[] = ['qwen2_vl', 'qwen2_5_vl'];

/** A finding about a whole text part. */
export interface PartNote extends ProblemText {
  readonly severity: Severity;
}

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
  TEXT_PARTS.find((key) => isRecord(whole[key]));

/**
 * The text part of a config whose own kind has no family; undefined where its kind is not known, either.
 * @param as Family to read it as, regardless of its kind.
 */
export function textPartOf(whole: JsonObject, as?: string): TextPart | undefined {
  const { model_type: of } = whole;
  if (typeof of !== 'string' || isFamilyName(of)) return undefined;
  const wrapper = ownValue(WRAPPERS, of);
  const key = textKeyOf(whole);
  const isFlat = key === undefined && FLAT.includes(of);
  const isAbsent = key === undefined && !isFlat;
  if (isAbsent && ownValue(TEXT_KINDS, of))
    return as === undefined ? textAlone(of, whole) : undefined;
  if (isAbsent && (wrapper === undefined || hasSizes(whole))) return undefined;
  const text = (key === undefined ? (isFlat ? whole : {}) : whole[key]) as JsonObject;
  const named = isFlat ? undefined : text.model_type;
  const kind = as ?? kindOf(wrapper, named);
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
    notes: [
      ...(isAbsent ? [absentNote(of)] : []),
      ...kindNotes(of, wrapper, named),
      ...familyNotes(of, wrapper, family, { whole, text, config, tied }),
      ...attentionNotes(of, text),
      ...tieNotes(of, wrapper, { whole, text, kind }),
    ],
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

/** Keys of sizes beside the parts, as other programs than transformers write them. */
const hasSizes = (whole: JsonObject) =>
  ['hidden_size', 'num_hidden_layers', 'num_attention_heads'].some((key) => whole[key] != null);

/** Kind of a text part, as the class around it reads its name. */
function kindOf(wrapper: Wrapper | undefined, named: unknown): string {
  if (wrapper?.takes?.length === 1) return wrapper.text;
  if (named == null) return wrapper?.text ?? '';
  return ownValue(wrapper?.names ?? {}, String(named)) ?? String(named);
}

const isPart = (key: string, value: unknown) =>
  /_config$/.test(key) && key !== 'quantization_config' && !isEmptyValue(value);

const keysOf = (config: JsonObject, isKept: (key: string) => boolean): JsonObject =>
  Object.fromEntries(Object.entries(config).filter(([key]) => isKept(key)));

const withoutTokens = (config: JsonObject): JsonObject => keysOf(config, (key) => !isOfImages(key));

const withoutParts = (config: JsonObject): JsonObject =>
  keysOf(config, (key) => !isPart(key, config[key]) && !isOfImages(key));

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
  const { fixed = {}, isWithoutWindows = false }: Partial<TextKind> =
    ownValue(TEXT_KINDS, kind) ?? {};
  const plain = wrapper ? unscaled(wrapper, family) : {};
  const windows = isWithoutWindows
    ? ['sliding_window', 'layer_types', 'use_sliding_window', 'max_window_layers']
    : // MistralModel gives every layer the window; only the cache reads the list.
      wrapper && family === 'mistral'
      ? ['layer_types']
      : [];
  return {
    config: {
      ...keysOf(text, (key) => !windows.includes(key)),
      ...fixed,
      ...plain,
      ...causal(wrapper, text),
    },
    remarks: [
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
  return { ...keysOf(plain, (key) => !logits.includes(key)), ...embeddings };
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

// ── Notes ────────────────────────────────────────────────────────────────────────────────────────

const warning = (message: string, suggestion: string): PartNote => ({
  severity: 'warning',
  message,
  suggestion,
});
const refusal = (message: string, suggestion: string): PartNote => ({
  severity: 'error',
  message,
  suggestion,
});

const ALONE = 'save the language model alone, with its own model_type';

const absentNote = (of: string): PartNote =>
  warning(
    `no text_config: all sizes of the language model are the defaults of ${of}`,
    'check that these are the sizes of the model',
  );

/** Notes where a class is not known, or takes other kinds. */
function kindNotes(of: string, wrapper: Wrapper | undefined, named: unknown): PartNote[] {
  if (wrapper === undefined) {
    return [
      warning(
        `the class of ${of} is not known: its language model is described as if it were alone`,
        'compare the count with the one that its authors give',
      ),
    ];
  }
  const { takes, names = {} } = wrapper;
  if (takes === undefined || named == null) return [];
  const kind = ownValue(names, String(named)) ?? String(named);
  if (takes.includes(kind)) return [];
  if (takes.length > 1) return [refusal(`${of} holds no ${kind}`, `write ${takes.join(' or ')}`)];
  return [
    warning(
      `model_type ${kind} has no effect: ${of} holds a ${wrapper.text}`,
      `write ${wrapper.text}`,
    ),
  ];
}

/** Families whose head has a bias, which the class around them lacks. */
const HEAD_BIAS: Readonly<Record<string, (config: JsonObject) => boolean>> = {
  ernie4_5_moe: ({ use_bias }) => use_bias === true,
  gptj: () => true,
  phi: () => true,
};

/** Families with inputs of their own for every layer, and the classes that hand them on. */
const PER_LAYER: Readonly<Record<string, string>> = {
  gemma3n_text: 'gemma3n',
  gemma4_text: 'gemma4',
};

const isRead = (family: string, key: string) =>
  Object.hasOwn(ownValue<JsonObject | undefined>(PLAIN_LOGITS, family) ?? {}, key);

interface Parts {
  readonly whole: JsonObject;
  readonly text: JsonObject;
  readonly config: JsonObject;
  readonly tied: boolean;
}

/** Refusals of families that a class does not hold as they are alone. */
function familyNotes(
  of: string,
  wrapper: Wrapper | undefined,
  family: string,
  { whole, text, config, tied }: Parts,
): PartNote[] {
  if (wrapper === undefined || wrapper.logits === 'own') return [];
  if (ownValue(HEAD_BIAS, family)?.(config)) {
    return [refusal(`the head of ${family} has a bias, which that of ${of} lacks`, ALONE)];
  }
  if (family === 'zamba2' && flagIn(text) === false && tied) {
    return [refusal(`${of} ties the head, but the blocks of zamba2 follow its own flag`, ALONE)];
  }
  const factor = config.logits_scaling ?? 1;
  if (wrapper.isInverse && isRead(family, 'logits_scaling') && factor !== 1) {
    return [
      refusal(`${of} multiplies by logits_scaling ${factor}, by which ${family} divides`, ALONE),
    ];
  }
  const { outerHead } = wrapper;
  if (outerHead && !tied && text.vocab_size !== (whole.vocab_size ?? outerHead)) {
    return [
      refusal(
        `the head of ${of} has the vocab_size of the whole, ${whole.vocab_size ?? outerHead}, and not that of the text part`,
        'write the same vocab_size in both',
      ),
    ];
  }
  const holder = ownValue(PER_LAYER, family);
  if (holder !== undefined && holder !== of && config.hidden_size_per_layer_input !== 0) {
    return [
      refusal(`${of} does not give ${family} the tokens of its inputs for each layer`, ALONE),
    ];
  }
  return [];
}

/** A note on attention that depends on how transformers is called. */
const attentionNotes = (of: string, text: JsonObject): PartNote[] =>
  of === 'paligemma' && text.use_bidirectional_attention !== false
    ? [
        warning(
          'attention is described as causal, as the eager attention of paligemma computes text, and any after a prefix given by token types; SDPA without token types also reads the tokens that follow',
          'write use_bidirectional_attention: false if the model is always causal',
        ),
      ]
    : [];

// ── Whether the head shares the embedding ────────────────────────────────────────────────────────

const flagIn = ({ tie_word_embeddings: flag }: JsonObject) =>
  typeof flag === 'boolean' ? flag : undefined;

function isTied(wrapper: Wrapper | undefined, whole: JsonObject, text: JsonObject, kind: string) {
  // The class of LFM2-VL prefers the older name.
  const older = whole.model_type === 'lfm2_vl' ? whole.tie_embedding : undefined;
  const outer = typeof older === 'boolean' ? older : flagIn(whole);
  const given = flagIn(text);
  const inner = given ?? TIED_BY_DEFAULT.has(kind);
  switch (wrapper?.ties) {
    case 'tied':
      return outer ?? true;
    case 'untied':
      return outer ?? false;
    case 'as text':
      return outer ?? inner;
    case 'either':
      return outer === true || inner;
    case 'inner':
      return inner;
    case 'never':
      return false;
    case undefined:
      return outer ?? inner;
  }
}

interface Ties {
  readonly whole: JsonObject;
  readonly text: JsonObject;
  readonly kind: string;
}

/**
 * Warnings where a flag is not that of the class: files from before transformers 5 leave it out for a head of its own,
 * too (Mistral Small 3.1), and the two flags of a file can differ.
 */
function tieNotes(
  of: string,
  wrapper: Wrapper | undefined,
  { whole, text, kind }: Ties,
): PartNote[] {
  const [outer, inner, tied] = [flagIn(whole), flagIn(text), isTied(wrapper, whole, text, kind)];
  const shares = tied ? 'shares the embedding' : 'has weights of its own';
  const suggestion = `if the checkpoint differs, write --set model.tie_word_embeddings=${!tied}`;
  if (outer === undefined && inner === undefined) {
    return wrapper?.ties === 'tied' && !TIED_BY_DEFAULT.has(kind)
      ? [
          warning(
            `no tie_word_embeddings: the head ${shares}, as transformers 5 reads ${of}`,
            'if the checkpoint has a head of its own, write --set model.tie_word_embeddings=false',
          ),
        ]
      : [];
  }
  if (tied === (outer ?? inner) && (inner === undefined || outer === undefined || inner === outer))
    return [];
  const flags = [
    ...(outer === undefined ? [] : [`${outer} of the whole`]),
    ...(inner === undefined ? [] : [`${inner} of the text part`]),
  ];
  return [
    warning(
      `tie_word_embeddings is ${joined(flags)}: the head ${shares}, as transformers 5 reads ${of}`,
      suggestion,
    ),
  ];
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

const ownValue = <Value>(values: Readonly<Record<string, Value>>, key: string) =>
  Object.hasOwn(values, key) ? values[key] : undefined;

/** The name of a text part that is not known, for an error. */
export function unknownTextPart(whole: JsonObject): string | undefined {
  const key = textKeyOf(whole);
  if (key === undefined) return undefined;
  const kind =
    (whole[key] as JsonObject).model_type ?? ownValue(WRAPPERS, String(whole.model_type))?.text;
  return typeof kind === 'string'
    ? `its ${key} is of the kind ${kind}, which is not known`
    : undefined;
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
 */
export function partsLeftOut(checkpoint: Checkpoint, own: ReadonlySet<string>): LeftOutPart[] {
  const places = new Set([...own].map(placeOf));
  const parts = new Map<string, LeftOutPart>();
  for (const [name, { tensor }] of storedNames(checkpoint)) {
    const place = placeOf(name);
    if (places.has(place)) continue;
    const before = parts.get(place)?.parameters ?? 0;
    parts.set(place, {
      name: place.split('.').at(-1) ?? place,
      pattern: name === place ? place : `${place}.**`,
      parameters: before + tensor.elements,
    });
  }
  return [...parts.values()];
}

/** `model.vision_tower` of `model.vision_tower.blocks.0.weight`, `visual` of `visual.patch_embed.weight`. */
function placeOf(name: string): string {
  const [first = '', second = ''] = name.split('.');
  return first === 'model' || first === 'thinker' ? `${first}.${second}` : first;
}
