/** Names of models of the Hugging Face hub, as text: nothing is looked up. */
import { shellWord } from './shell-words.js';

/** Command that downloads a whole repository. */
export function downloadLine(repository: string): string {
  const folder = repository.slice(repository.indexOf('/') + 1);
  return `hf download ${shellWord(repository)} --local-dir ${shellWord(folder)}`;
}

/** Form of a repository's name: `Qwen/Qwen3-8B`. */
const REPOSITORY = /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/;

/** Endings of files of models, data and scripts, which no repository is named after. */
const FILE =
  /\.(?:ya?ml|json|toml|safetensors|pt|pth|bin|ckpt|gguf|onnx|txt|jsonl|csv|parquet|py|sh)$/i;

const PAGE =
  /^(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\/([\w.-]+\/[\w.-]+)(?::[\w.-]+)?(?:\/(?:tree|blob|resolve)\/([^/?#]+)(?:\/([^?#]+))?)?\/?(?:[?#].*)?$/;

/** Common names of folders for models and results, so that `models/x` is a path. */
const FOLDER =
  /^(?:models?|checkpoints?|ckpts?|weights|outputs?|out|results?|runs|exps?|experiments?|saved?(?:[-_]models?)?|pretrained(?:[-_]models?)?|merged|adapters?|configs?|data|datasets|examples|tmp|home|mnt|root|workspace)\//i;

/** Whether a name can be a repository of the hub. */
export const isHubName = (name: string): boolean =>
  REPOSITORY.test(name) && !FILE.test(name) && !FOLDER.test(name);

/** Suggestion for a model of the hub, if `name` is not an existing path; undefined for other names. */
export function hubSuggestion(name: string): string | undefined {
  const [, repository, revision, file] = PAGE.exec(name) ?? [];
  if (repository !== undefined) {
    const at = revision === undefined ? '' : `@${revision}`;
    return `write ${shellWord(`hf:${repository}${at}${file === undefined ? '' : `:${file}`}`)}`;
  }
  if (!isHubName(name)) return undefined;
  return `write hf:${name}, or download it: ${downloadLine(name)}`;
}
