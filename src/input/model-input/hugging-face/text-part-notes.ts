/** Whether a language model inside another shares its head, and what the class around it reads differently. */

import type { ProblemText, Severity } from '../../../base/errors.js';
import { setting } from '../../../base/text/setting.js';
import { joined } from '../../../base/text/words.js';
import { asNumber, asText, ownValue } from '../../../base/values.js';
import type { JsonObject } from '../../../model/architecture/transformer/config-keys.js';
import { PLAIN_LOGITS, TIED_BY_DEFAULT, type Wrapper } from './wrappers.js';

/** A finding about a whole text part. */
export interface PartNote extends ProblemText {
  readonly severity: Severity;
}

/** Facts of a text part and the config around it. */
interface Read {
  /** Kind of the whole model. */
  readonly of: string;
  readonly wrapper: Wrapper | undefined;
  /** `model_type` in the text part. */
  readonly named: unknown;
  readonly kind: string;
  readonly family: string;
  readonly whole: JsonObject;
  readonly text: JsonObject;
  /** The text part with the values that its class computes with. */
  readonly config: JsonObject;
  readonly tied: boolean;
  readonly isAbsent: boolean;
}

/** Notes on a text part that is read in a class around it. */
export function textPartNotes(read: Read): PartNote[] {
  const { of, wrapper, named, family, text, isAbsent } = read;
  return [
    ...(isAbsent ? [absentNote(of)] : []),
    ...kindNotes(of, wrapper, named),
    ...familyNotes(of, wrapper, family, read),
    ...attentionNotes(of, text),
    ...tieNotes(of, wrapper, read),
  ];
}

const warning = (message: string, suggestion: string): PartNote => ({
  severity: 'warning',
  message,
  suggestion,
});
const refusalNote = (message: string, suggestion: string): PartNote => ({
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
  const kind = ownValue(names, asText(named)) ?? asText(named);
  if (takes.includes(kind)) return [];
  if (takes.length > 1)
    return [refusalNote(`${of} holds no ${kind}`, `write ${takes.join(' or ')}`)];
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

/** Families with inputs of their own for every layer, and the classes that pass them on. */
const PER_LAYER: Readonly<Record<string, string>> = {
  gemma3n_text: 'gemma3n',
  gemma4_text: 'gemma4',
};

const isRead = (family: string, key: string) =>
  Object.hasOwn(ownValue<JsonObject | undefined>(PLAIN_LOGITS, family) ?? {}, key);

/** Whether several layers of Zamba2 share a block; true where the file does not list them. */
function hasSharedBlocks({
  layers_block_type: kinds,
  layer_types,
  hybrid_layer_ids: ids,
  ...rest
}: JsonObject) {
  const listed = kinds ?? layer_types;
  const hybrid = Array.isArray(listed) ? listed.filter((kind) => kind === 'hybrid') : ids;
  return !Array.isArray(hybrid) || hybrid.length > asNumber(rest.num_mem_blocks ?? 1);
}

interface Parts {
  readonly whole: JsonObject;
  readonly text: JsonObject;
  readonly config: JsonObject;
  readonly tied: boolean;
}

/** Refusals where the class around a text part computes something else than the family alone. */
function familyNotes(
  of: string,
  wrapper: Wrapper | undefined,
  family: string,
  { whole, text, config, tied }: Parts,
): PartNote[] {
  if (wrapper === undefined || wrapper.logits === 'own') return [];
  if (ownValue(HEAD_BIAS, family)?.(config)) {
    return [refusalNote(`the head of ${family} has a bias, which that of ${of} lacks`, ALONE)];
  }
  if (family === 'zamba2' && (flagIn(text) ?? true) !== tied && hasSharedBlocks(text)) {
    const does = tied ? 'ties the head' : 'does not tie the head';
    return [refusalNote(`${of} ${does}, but the blocks of zamba2 follow its own flag`, ALONE)];
  }
  const factor = config.logits_scaling ?? 1;
  if (wrapper.isInverse && isRead(family, 'logits_scaling') && factor !== 1) {
    return [
      refusalNote(
        `${of} multiplies by logits_scaling ${asText(factor)}, by which ${family} divides`,
        ALONE,
      ),
    ];
  }
  const { outerHead } = wrapper;
  if (outerHead && !tied && text.vocab_size !== (whole.vocab_size ?? outerHead)) {
    return [
      refusalNote(
        `the head of ${of} has the vocab_size of the whole, ${asText(whole.vocab_size ?? outerHead)}, and not that of the text part`,
        'write the same vocab_size in both',
      ),
    ];
  }
  const holder = ownValue(PER_LAYER, family);
  if (holder !== undefined && holder !== of && config.hidden_size_per_layer_input !== 0) {
    return [
      refusalNote(`${of} does not give ${family} the tokens of its inputs for each layer`, ALONE),
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

export function isTied(
  wrapper: Wrapper | undefined,
  whole: JsonObject,
  text: JsonObject,
  kind: string,
) {
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
  const suggestion = `if the checkpoint differs, write ${setting('set', `model.tie_word_embeddings=${!tied}`)}`;
  if (outer === undefined && inner === undefined) {
    return wrapper?.ties === 'tied' && !TIED_BY_DEFAULT.has(kind)
      ? [
          warning(
            `no tie_word_embeddings: the head ${shares}, as transformers 5 reads ${of}`,
            `if the checkpoint has a head of its own, write ${setting('set', 'model.tie_word_embeddings=false')}`,
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
