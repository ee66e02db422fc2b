/** Published models by their names on the hub, in Ollama, and in speech. Nothing is looked up. */

/** Repositories with the sizes of presets, as in the comments of `configs/`. */
const PRESET_REPOSITORIES: Readonly<Record<string, readonly string[]>> = {
  'falcon_h1/falcon-h1-0.5b': ['tiiuae/Falcon-H1-0.5B-Base'],
  'gemma3_text/gemma-3-1b': ['google/gemma-3-1b-it'],
  'gemma3_text/gemma-3-270m': ['google/gemma-3-270m'],
  'gemma4_text/gemma-4-26b-a4b': ['google/gemma-4-26B-A4B'],
  'gemma4_text/gemma-4-e2b': ['google/gemma-4-E2B'],
  'gpt2/gpt2': ['openai-community/gpt2'],
  'gpt_oss/gpt-oss-20b': ['openai/gpt-oss-20b'],
  'granitemoehybrid/granite-4.0-h-350m': ['ibm-granite/granite-4.0-h-350m'],
  'granitemoehybrid/granite-4.0-h-tiny': ['ibm-granite/granite-4.0-h-tiny'],
  'lfm2/lfm2-1.2b': ['LiquidAI/LFM2-1.2B'],
  'lfm2/lfm2-350m': ['LiquidAI/LFM2-350M'],
  'llama/llama-3.2-1b': ['meta-llama/Llama-3.2-1B'],
  'llama/smollm2-135m': ['HuggingFaceTB/SmolLM2-135M'],
  'mamba/mamba-130m': ['state-spaces/mamba-130m'],
  'mamba2/mamba2-130m': ['state-spaces/mamba2-130m'],
  'olmo3/olmo-3-7b': ['allenai/Olmo-3-7B-Instruct', 'allenai/Olmo-3-1025-7B'],
  'opt/opt-125m': ['facebook/opt-125m'],
  'phi/phi-2': ['microsoft/phi-2'],
  'qwen3/qwen3-0.6b': ['Qwen/Qwen3-0.6B'],
  'qwen3_5_text/qwen3.5-0.8b': ['Qwen/Qwen3.5-0.8B'],
  'qwen3_next/qwen3-next-80b-a3b': ['Qwen/Qwen3-Next-80B-A3B-Instruct'],
};

/** Spoken names of presets, in addition to their own and those of their repositories. */
const SPOKEN_NAMES: Readonly<Record<string, readonly string[]>> = {
  'gpt2/gpt2': ['gpt2-small', 'gpt2-124m', 'gpt2-117m'],
};

const PAGE = /^(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\//i;

/** Versions of a model that have its sizes. */
const VERSION = /[-: ](?:instruct|it|base|chat|hf|pt|latest|thinking|instruct-\d+)$/i;

const withoutVersion = (name: string): string => {
  const shorter = name.replace(VERSION, '');
  return shorter === name ? name : withoutVersion(shorter);
};

/** Types of weights at the end of a name, as in Ollama: `llama3.1:8b-instruct-q4_K_M`. */
const TYPE =
  /[-: ]((?:i?q\d_\w{1,4})|b?f(?:p)?(?:8|16|32)|int[48]|[48]bit|awq|gptq|nvfp4|mxfp4)(?:-gguf)?$/i;

/** A name without the type of its weights, and the type. An owner's repository has a name of its own. */
export function withoutType(name: string): { readonly name: string; readonly type?: string } {
  const [ending, type] = (!name.includes('/') && TYPE.exec(name)) || [];
  return ending === undefined || type === undefined
    ? { name }
    : { name: name.slice(0, -ending.length), type };
}

/** A name in lower case, without separators: `llama3.2:1b`, `Llama 3.2 1B` and `Llama-3.2-1B` are the same. */
const spelled = (name: string): string => name.toLowerCase().replaceAll(/[-_: ]/g, '');

/** The preset with the sizes of a published model, by its name on the hub, in Ollama, or in speech. */
export function presetOfPublished(text: string): string | undefined {
  const name = text.trim().replace(PAGE, '').replace(/\/$/, '');
  const [org, own] = name.includes('/') ? name.split(/\/(.*)/s) : [undefined, name];
  const wanted = spelled(withoutVersion(own ?? ''));
  if (wanted === '') return undefined;
  const isMeant = (each: string) => spelled(withoutVersion(each)) === wanted;
  const found = Object.entries(PRESET_REPOSITORIES).find(([preset, repositories]) => {
    const isSpoken = org === undefined && (SPOKEN_NAMES[preset] ?? []).some(isMeant);
    const isPublished = repositories.some((repository) => {
      const [owner = '', published = ''] = repository.split('/');
      const isOwned = org === undefined || org.toLowerCase() === owner.toLowerCase();
      return isOwned && [published, preset.slice(preset.indexOf('/') + 1)].some(isMeant);
    });
    return isSpoken || isPublished;
  });
  return found?.[0];
}

/**
 * Names of published models, the sizes that exist, the usual one first, and their repositories on the hub. `$S` is the size
 * in upper case, `$s` in lower case.
 */
const REPOSITORIES: readonly (readonly [name: string, sizes: string, repository: string])[] = [
  ['qwen3', '8b 0.6b 1.7b 4b 14b 32b 30b-a3b 235b-a22b', 'Qwen/Qwen3-$S'],
  ['qwen3', '30b', 'Qwen/Qwen3-30B-A3B'],
  ['qwen3', '235b', 'Qwen/Qwen3-235B-A22B'],
  ['qwen3-coder', '30b 30b-a3b', 'Qwen/Qwen3-Coder-30B-A3B-Instruct'],
  ['qwen3-coder', '480b 480b-a35b', 'Qwen/Qwen3-Coder-480B-A35B-Instruct'],
  ['qwen3.5', '9b 0.8b 2b 4b', 'Qwen/Qwen3.5-$S'],
  ['qwen2.5', '7b 0.5b 1.5b 3b 14b 32b 72b', 'Qwen/Qwen2.5-$S'],
  ['qwen2.5-coder', '7b 0.5b 1.5b 3b 14b 32b', 'Qwen/Qwen2.5-Coder-$S'],
  ['qwen2.5-math', '7b 1.5b', 'Qwen/Qwen2.5-Math-$S'],
  ['qwen2', '7b 0.5b 1.5b 72b', 'Qwen/Qwen2-$S'],
  ['qwq', '32b', 'Qwen/QwQ-$S'],
  ['llama3', '8b 70b', 'meta-llama/Meta-Llama-3-$S'],
  ['llama3.1', '8b 70b 405b', 'meta-llama/Llama-3.1-$S'],
  ['llama3.2', '3b 1b', 'meta-llama/Llama-3.2-$S'],
  ['llama3.3', '70b', 'meta-llama/Llama-3.3-$S-Instruct'],
  ['llama4', 'scout 16x17b', 'meta-llama/Llama-4-Scout-17B-16E-Instruct'],
  ['llama4', 'maverick 128x17b', 'meta-llama/Llama-4-Maverick-17B-128E-Instruct'],
  ['llama2', '7b 13b 70b', 'meta-llama/Llama-2-$s-hf'],
  ['codellama', '7b 13b 34b 70b', 'codellama/CodeLlama-$s-hf'],
  ['gemma3', '4b 1b 12b 27b', 'google/gemma-3-$s-it'],
  ['gemma3n', 'e4b e2b', 'google/gemma-3n-$S-it'],
  ['gemma4', '26b-a4b e2b e4b', 'google/gemma-4-$S'],
  ['gemma2', '9b 2b 27b', 'google/gemma-2-$s'],
  ['gemma', '7b 2b', 'google/gemma-$s'],
  ['mistral', '7b', 'mistralai/Mistral-$S-v0.1'],
  ['mistral-nemo', '12b', 'mistralai/Mistral-Nemo-Base-2407'],
  ['mistral-small', '24b', 'mistralai/Mistral-Small-24B-Instruct-2501'],
  ['codestral', '22b', 'mistralai/Codestral-22B-v0.1'],
  ['mixtral', '8x7b', 'mistralai/Mixtral-8x7B-v0.1'],
  ['mixtral', '8x22b', 'mistralai/Mixtral-8x22B-v0.1'],
  ['phi4', '14b', 'microsoft/phi-4'],
  ['phi4-mini', '3.8b', 'microsoft/Phi-4-mini-instruct'],
  ['phi3', 'mini 3.8b', 'microsoft/Phi-3-mini-4k-instruct'],
  ['phi3', 'medium 14b', 'microsoft/Phi-3-medium-4k-instruct'],
  ['phi3.5', 'mini 3.8b', 'microsoft/Phi-3.5-mini-instruct'],
  ['phi1.5', '1.3b', 'microsoft/phi-1_5'],
  ['tinyllama', '1.1b', 'TinyLlama/TinyLlama-1.1B-Chat-v1.0'],
  ['gpt2', 'medium large xl', 'openai-community/gpt2-$s'],
  ['gpt-oss', '120b 20b', 'openai/gpt-oss-$s'],
  ['gpt-j', '6b', 'EleutherAI/gpt-j-$s'],
  ['gpt-neox', '20b', 'EleutherAI/gpt-neox-$s'],
  ['pythia', '1.4b 14m 70m 160m 410m 1b 2.8b 6.9b 12b', 'EleutherAI/pythia-$s'],
  ['deepseek-r1', '671b', 'deepseek-ai/DeepSeek-R1'],
  ['deepseek-r1', '1.5b 7b 14b 32b', 'deepseek-ai/DeepSeek-R1-Distill-Qwen-$S'],
  ['deepseek-r1', '8b 70b', 'deepseek-ai/DeepSeek-R1-Distill-Llama-$S'],
  ['deepseek-r1-distill-qwen', '7b 1.5b 14b 32b', 'deepseek-ai/DeepSeek-R1-Distill-Qwen-$S'],
  ['deepseek-r1-distill-llama', '8b 70b', 'deepseek-ai/DeepSeek-R1-Distill-Llama-$S'],
  ['deepseek-v3', '671b', 'deepseek-ai/DeepSeek-V3'],
  ['deepseek-v2', '236b', 'deepseek-ai/DeepSeek-V2'],
  ['deepseek-v2-lite', '16b', 'deepseek-ai/DeepSeek-V2-Lite'],
  ['smollm2', '1.7b 360m 135m', 'HuggingFaceTB/SmolLM2-$S'],
  ['smollm3', '3b', 'HuggingFaceTB/SmolLM3-$S'],
  ['smollm', '135m 360m 1.7b', 'HuggingFaceTB/SmolLM-$S'],
  ['falcon', '7b 40b', 'tiiuae/falcon-$s'],
  ['bloom', '560m 7b1', 'bigscience/bloom-$s'],
  ['opt', '1.3b 125m 350m 2.7b 6.7b 13b 30b 66b', 'facebook/opt-$s'],
  ['olmo3', '32b', 'allenai/Olmo-3-32B-Think'],
  ['vicuna', '7b 13b', 'lmsys/vicuna-$s-v1.5'],
  ['zephyr', '7b', 'HuggingFaceH4/zephyr-7b-beta'],
  ['granite3.3', '8b 2b', 'ibm-granite/granite-3.3-$s-instruct'],
  ['kimi-k2', '1t', 'moonshotai/Kimi-K2-Instruct'],
  ['yi1.5', '34b 9b', '01-ai/Yi-1.5-$S-Chat'],
  ['gpt-neo', '1.3b 125m 2.7b', 'EleutherAI/gpt-neo-$S'],
  ['falcon3', '7b 1b 10b', 'tiiuae/Falcon3-$S-Instruct'],
  ['command-r', '35b', 'CohereForAI/c4ai-command-r-v01'],
  ['command-r-plus', '104b', 'CohereForAI/c4ai-command-r-plus'],
  ['glm4', '9b', 'THUDM/glm-4-9b-chat'],
  ['stablelm2', '1.6b', 'stabilityai/stablelm-2-1_6b'],
  ['stablelm2', '12b', 'stabilityai/stablelm-2-12b'],
  ['deepseek-coder', '1.3b 33b', 'deepseek-ai/deepseek-coder-$s-instruct'],
  ['deepseek-coder-v2', '16b', 'deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct'],
  ['olmo2', '7b 13b', 'allenai/OLMo-2-1124-$S'],
  ['yi', '6b 34b', '01-ai/Yi-$S'],
  ['starcoder2', '3b 7b 15b', 'bigcode/starcoder2-$s'],
  ['mamba', '370m 130m 790m 1.4b 2.8b', 'state-spaces/mamba-$s-hf'],
  ['mamba2', '370m 130m 780m 1.3b 2.7b', 'state-spaces/mamba2-$s'],
];

/** Repository of the hub that a name of a published model means; undefined for an unknown one. */
export function hubRepository(name: string): string | undefined {
  const own = name.trim().replace(PAGE, '');
  if (/^[\w.-]+\/[\w.-]+$/.test(own)) return own;
  const wanted = spelled(withoutVersion(own));
  for (const [base, sizes, repository] of REPOSITORIES) {
    const all = sizes.split(' ');
    const size = all.find((each) => spelled(base + each) === wanted);
    const usual = spelled(base) === wanted ? all[0] : undefined;
    const meant = size ?? usual;
    if (meant !== undefined) {
      return repository.replace('$S', meant.toUpperCase()).replace('$s', meant);
    }
  }
  return undefined;
}
