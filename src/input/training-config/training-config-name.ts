/** Names of files that can be the config of a training. Imports no code, because every model is looked at with it. */

/** YAML, JSON, TOML, or a script with arguments. */
const ENDINGS = /\.(?:ya?ml|json|toml|sh|bash|slurm|sbatch|txt|args)$/i;

export const isTrainingConfigName = (file: string): boolean => ENDINGS.test(file);
