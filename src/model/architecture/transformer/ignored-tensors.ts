/**
 * Tensors that classes of transformers 5.18 ignore when they load a checkpoint: regular expressions for names, from
 * `_keys_to_ignore_on_load_unexpected` and the rule for old rotary buffers in `modeling_utils.py`. Each family has those
 * of its class as `ignoredOnLoad`, and a test compares them with fixtures/loading/classes.json.
 */
import type { Ignored } from '../family.js';

/** The frequencies of rotary positions, which each layer stored in old files. */
export const ROTARY_BUFFERS = 'rotary_emb\\.inv_freq';

/** Layers that predict further tokens, stored with the model. */
export const PREDICTING = '^mtp.*';

/** Vision part of a Qwen 3.5, which the class around the text model has, and that of the text model alone does not. */
export const SEEING = '^model.visual.*';

/** Entries for the regular expressions of a class. */
export const ignoredOnLoad = (patterns: readonly string[]): readonly Ignored[] =>
  patterns.map((pattern) => ({
    pattern: new RegExp(pattern),
    what: 'ignored by transformers',
    isBuffer: true,
  }));

/** Numbers of the positions, which files before transformers 4.31 hold. modeling_utils.py ignores them in every class. */
export const POSITION_IDS: readonly Ignored[] = ignoredOnLoad([String.raw`(^|\.)position_ids$`]);
