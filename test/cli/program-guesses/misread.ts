/**
 * Lines with a value, a number or a word that is easily read as another one: types of weights by their bits, machines,
 * short flags, files in the place of names.
 */
import type { Guess, Saying } from '../guesses.js';

const is = (...lines: string[]): readonly string[] => lines;

const says = (...texts: string[]): Saying => ({ says: texts });

const FIT = 'fit qwen3-14b --gpu 3090';

const TRAINING = 'fit qwen3-8b --gpu h100 --for training';

/** Types of weights in the spellings of other tools, which ask no other question. */
const TYPES: readonly Guess[] = [
  [`${FIT} --quant q5`, is(`${FIT} --dtype q5_k_m`)],
  [`${FIT} --quant q4`, is(`${FIT} --dtype int4`)],
  [`${FIT} --quant Q6`, is(`${FIT} --dtype q6_k`)],
  [`${FIT} --quant q3`, is(`${FIT} --dtype q3_k_m`)],
  [`${FIT} --quant iq3`, is(`${FIT} --dtype iq3_m`)],
  [`${FIT} --quantization iq4`, is(`${FIT} --dtype iq4_xs`)],
  [`${FIT} --quantize 5bit`, is(`${FIT} --dtype q5_k_m`)],
  [`${FIT} --quant 4.0bpw`, is(`${FIT} --dtype int4`)],
  [`${FIT} --bits 5`, is(`${FIT} --dtype q5_k_m`)],
  [`${FIT} --bits 6`, is(`${FIT} --dtype q6_k`)],
  [`${FIT} --quant q4km`, is(`${FIT} --dtype q4_k_m`)],
  [`${FIT} --quant w4a8`, is(`${FIT} --dtype int4`)],
  [`${FIT} --quant nothing`, { says: ['nothing'], never: ['--for training', 'train-plan'] }],
  [`${FIT} --bits 7`, { says: ['--dtype'], never: ['--for training', 'train-plan'] }],
  [`${FIT} --dtype q5`, says('q5_k_m, q5_k_s')],
  [`${FIT} --dtype UD-Q4_K_XL`, is(`${FIT} --dtype q4_k_m`)],
  [`${FIT} --dtype q6_k_l`, is(`${FIT} --dtype q6_k`)],
  [`${FIT} --dtype fp4`, { says: ['mxfp4, nvfp4'], never: ['f8?'] }],
  ['profile qwen3-14b --dtype fp4', { says: ['--dtype nvfp4'], never: ['f64?'] }],
  ['profile qwen3-14b --dtype fp6', { says: ['write one of'], never: ['did you mean'] }],
  [`${FIT} -q q4_k_m`, is(`${FIT} --dtype q4_k_m`)],
  [`${FIT} -q q5`, is(`${FIT} --dtype q5_k_m`)],
  [`${FIT} -q 4`, is(`${FIT} --dtype int4`)],
  ['quantize hf --bits 4 --method awq', is('convert-checkpoint hf hf-int4 --quantize int4')],
  ['quantize hf --method gptq', is('convert-checkpoint --quantize int4 hf hf-int4')],
  ['quantize hf out --type nf4', is('convert-checkpoint hf out --quantize int4')],
  ['quantize hf out.gguf --type nf4', is('convert-checkpoint hf out.gguf --dtype q4_k_m')],
  ['llama-quantize hf out.gguf 15', is('convert-checkpoint hf out.gguf --dtype q4_k_m')],
  ['llama-quantize hf out.gguf 7', is('convert-checkpoint hf out.gguf --dtype q8_0')],
  ['quantize hf out.gguf q5', is('convert-checkpoint hf out.gguf --dtype q5_k_m')],
  ['convert-checkpoint hf out --to_bf16', is('convert-checkpoint hf out --dtype bf16')],
  ['convert-checkpoint hf out --to-half', is('convert-checkpoint hf out --dtype f16')],
];

/** Names that are near another one, and are not it. */
const OTHERS: readonly Guess[] = [
  ['fit granite-4.0-micro --gpu 4090', { says: ['another model'], never: ['did you mean'] }],
  ['profile minimind-3v', { says: ['another model'], never: ['did you mean'] }],
  ['fmt my.yaml', { says: ['minimind validate FILE'], never: ['minimind fit'] }],
  ['fix my.yaml', { says: ['minimind validate FILE'], never: ['minimind fit'] }],
  ['fzt my.yaml', { says: ['--help lists the commands'], never: ['minimind fit'] }],
  ['fit qwen3-8b --gpu iphone 16', { says: ['iphone'], never: ['--gpus 16'] }],
  ['fit qwen3-8b --gpu 4080s --dtype int4', says('RTX 4080 Super')],
  ['fit qwen3-8b --gpu "4070 ti s" --dtype int4', says('RTX 4070 Ti Super')],
  ['fit qwen3-8b --gpu gfx1100', says('rx-7900-xtx, rx-7900-xt')],
  ['fit qwen3-8b --gpu gfx908', says('MI100')],
];

/** Numbers of machines, which multiply the GPUs of each. */
const MACHINES: readonly Guess[] = [
  [`${TRAINING} --nodes 2 --gpus-per-node 8`, is(`${TRAINING} --gpus 16`)],
  [`${TRAINING} --nnodes 2 --nproc_per_node 8`, is(`${TRAINING} --gpus 16`)],
  [`${TRAINING} --gpus_per_node 4 --num_nodes 2`, is(`${TRAINING} --gpus 8`)],
  [`${TRAINING} --gpus 8 --num_nodes 4`, is(`${TRAINING} --gpus 32`)],
  [`${TRAINING} --num_gpus 8 --num_nodes 4`, is(`${TRAINING} --gpus 32`)],
  [`${TRAINING} --num_nodes 4`, says('4 machines', '--gpus 32')],
  [
    'fit qwen3-8b --gpu 8xh100 --for training --nodes 4',
    is('fit qwen3-8b --for training --gpu h100 --gpus 32'),
  ],
  [
    'train-plan my.yaml --steps 10 --gpu h100 --nnodes 2 --nproc_per_node 8',
    is('train-plan my.yaml --steps 10 --gpu h100 --gpus 16'),
  ],
];

/** Words with another meaning in the program that has them. */
const MEANINGS: readonly Guess[] = [
  ['generate hf --ids 1,2,3 -t 2', says('--threads')],
  ['generate hf --ids 1,2,3 -t 0.7', is('generate hf --ids 1,2,3 --temperature 0.7')],
  ['llama-cli -m hf --tokenizer tokenizer -p Hello -t 1', says('--threads 1')],
  [
    'train-plan my.yaml --max_iters 10000 --lr_decay_iters 10000',
    is('train-plan my.yaml --steps 10000'),
  ],
  ['train-plan my.yaml --lr_decay_iters 10000', is('train-plan my.yaml --steps 10000')],
  [
    'train-plan my.yaml --steps 10000 --lr-decay-iters 8000',
    says('--lr-decay-iters 8000 is not the last step', 'minimind train-plan my.yaml --steps 10000'),
  ],
  [
    'train-plan my.yaml --steps 10000 --schedule wsd --decay-steps 2000',
    is('train-plan my.yaml --steps 10000 --schedule wsd --decay 2000'),
  ],
  ['axolotl preprocess my.yaml', { says: ['reads the samples'], never: ['minimind data my.yaml'] }],
  ['preprocess my.yaml', { says: ['reads the samples'], never: ['minimind data my.yaml'] }],
  [`${TRAINING} --cpu-offload`, is(`${TRAINING} --offload optimizer`)],
  [`${TRAINING} --cpu_offload true`, is(`${TRAINING} --offload optimizer`)],
  [`${TRAINING} --offload-to-cpu`, is(`${TRAINING} --offload optimizer`)],
  [
    `${TRAINING} --gpus 8 --fsdp --cpu-offload`,
    is(`${TRAINING} --gpus 8 --zero 3 --offload parameters`),
  ],
  [`${TRAINING} --fsdp-cpu-offload`, is(`${TRAINING} --offload parameters`)],
  ['plan --budget 100M --data 2B', is('plan --max-params 100M')],
  ['plan --max-params 100M --tokens 2B', is('plan --max-params 100M')],
  ['fit qwen3-8b --gpu 4090 --dpo', says('model of reference', '--for training')],
  ['fit qwen3-8b --gpu 4090 --grpo --for lora', says('model of reference', '--for lora')],
  ['fit qwen3-8b --gpu 4090 --orpo', says('--for training')],
  ['train-plan my.yaml --dpo --steps 100', is('train-plan my.yaml --steps 100')],
];

/** Lines whose first proposal has to run. */
const RUNNING: readonly Guess[] = [
  ['fvcore flops my.yaml', is('profile my.yaml')],
  ['torchinfo summary my.yaml', is('profile my.yaml --tensors')],
  ['estimate vram my.yaml', is('fit my.yaml')],
  ['show params my.yaml', is('profile my.yaml')],
  ['tokenize tokenizer "hello world"', { says: ['no single texts'], never: ['data tokenizer'] }],
  ['tokenize "hello world"', { says: ['no single texts'], never: ['data hello'] }],
  ['llama-cli -m hf -p Hello', is('generate hf --ids 1,2,3')],
  ['inspect hf/model.safetensors old.pt --hash', is('inspect hf/model.safetensors --hash')],
  ['inspect hf/model.safetensors old.pt --stats', is('inspect hf/model.safetensors --stats')],
  ['inspect hf/model.safetensors old.pt', is('diff hf/model.safetensors old.pt')],
  ['inspect hf q_proj', is("inspect hf --filter '*q_proj*'")],
  ['inspect hf --grep q_proj', is("inspect hf --filter '*q_proj*'")],
  ['inspect hf --match embed', is("inspect hf --filter '*embed*'")],
  ['inspect hf --grep *norm*', is("inspect hf --filter '*norm*'")],
  ['inspect hf --prefix model.layers', is("inspect hf --filter 'model.layers*'")],
  ['inspect hf --layer 1', is("inspect hf --filter '*.1.*'")],
  [
    'fit hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M --gpu 4090',
    is('fit Qwen3-8B --dtype q4_k_m --gpu 4090'),
  ],
  ['fit unsloth/Qwen3-8B-GGUF:Q8_0 --gpu 4090', is('fit Qwen3-8B --dtype q8_0 --gpu 4090')],
  [
    'fit hf.co/unsloth/Qwen3-8B-GGUF:UD-Q4_K_XL --gpu 4090',
    is('fit Qwen3-8B --dtype q4_k_m --gpu 4090'),
  ],
  [
    'fit hf.co/org/Nothing-8B-GGUF:Q4_K_M --gpu 4090',
    is('fit hf:org/Nothing-8B-GGUF --dtype q4_k_m --gpu 4090'),
  ],
];

/** Questions that have an answer. */
const QUESTIONS: readonly Guess[] = [
  ['max context for qwen3-8b on 4090', is('fit qwen3-8b --gpu 4090')],
  ['longest context of qwen3-8b on a 4090', is('fit qwen3-8b --gpu 4090')],
  ['max users for qwen3-8b on h100', is('fit qwen3-8b --gpu h100')],
  ['best quant for qwen3-32b on 4090', is('fit qwen3-32b --gpu 4090')],
  [
    'best quant for qwen3-32b on 24gb',
    says('fit qwen3-32b --gpu rtx-4090', 'fit --list-gpus 24gb'),
  ],
  ['what models fit on 8gb vram', says('minimind fit --gpu rtx-4060', 'fit --list-gpus 8gb')],
  ['chinchilla 7b', says('minimind train-plan')],
  ['chinchilla my.yaml', is('train-plan my.yaml')],
  ['logits hf --ids 1,2,3', is('quick-test --save logits.safetensors hf --ids 1,2,3')],
  ['profile my.yaml --flops-per-token', is('profile my.yaml')],
  ['profile my.yaml --total-params', is('profile my.yaml')],
  ['list --list-models', is('list')],
  ['fit --list-models', is('list --details')],
];

export const MISREAD_GUESSES: readonly Guess[] = [
  ...TYPES,
  ...OTHERS,
  ...MACHINES,
  ...MEANINGS,
  ...RUNNING,
  ...QUESTIONS,
];
