/** Files that can be the config of a training. Imports little, because every model is looked at with it. */
import fs from 'node:fs';
import { readFileAtMost } from '../../base/files/read-file.js';
import { MAX_DOCUMENT_BYTES } from '../../config/source.js';

/** YAML, JSON, TOML, or a script with arguments. */
const ENDINGS = /\.(?:ya?ml|json|toml|sh|bash|slurm|sbatch|txt|args)$/i;

/** Words of the text of any of these configs: a quick look before a file is parsed. */
const MARKS =
  /\b(?:base_model|model_name_or_path|train_dataset|per_device_train_batch_size|lr_scheduler_type|zero_optimization|train_batch_size|train_micro_batch_size_per_gpu|zero_allow_untested_optimizer|distributed_type|micro_batch_size|global_batch_size|batch_accumulation_per_replica|max_seq_length|flavor|local_batch_size|num_tokens_per_microbatch_per_dp_rank|seq_len|model_class)\b|--num-layers|--num_layers|--micro-batch-size/;

/**
 * Whether a file that the user gave as a model has words of such a config. False for a file that cannot be read, and for
 * a pipe, which can be read once: the reader of models has the message.
 */
export async function mayBeTrainingConfig(file: string): Promise<boolean> {
  if (!ENDINGS.test(file)) return false;
  try {
    if (!fs.statSync(file).isFile()) return false;
    const bytes = await readFileAtMost(file, { most: MAX_DOCUMENT_BYTES });
    return bytes !== undefined && MARKS.test(bytes.toString('utf8'));
  } catch {
    return false;
  }
}
