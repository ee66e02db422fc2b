/** Files of weights by their names. Loads nothing, so that looking into a folder stays quick. */

/** transformers/utils/__init__.py: SAFE_WEIGHTS_INDEX_NAME, WEIGHTS_INDEX_NAME; others follow suit. */
const INDEX = /\.(?:safetensors|bin|pt|pth)\.index\.json$/;

const WEIGHTS = /\.(?:safetensors|pt|pth|bin|ckpt)$/i;

/**
 * What trainers save beside the weights. transformers/trainer.py: TRAINING_ARGS_NAME, OPTIMIZER_NAME and
 * so on; accelerate/utils/constants.py: OPTIMIZER_NAME, SCHEDULER_NAME, SAMPLER_NAME, SCALER_NAME.
 */
const COMPANION =
  /^(?:training_args\.bin|(?:optimizer|scheduler|sampler)(?:_\d+)?\.(?:bin|pt)|rng_state(?:_\d+)?\.pth|scaler\.pt)$/;

/** Whether a name is that of an index of shards. */
export const isIndexName = (name: string): boolean => INDEX.test(name);

/** Whether a name is that of a file of weights, whole or a part. */
export const isWeightsName = (name: string): boolean => WEIGHTS.test(name) && !COMPANION.test(name);
