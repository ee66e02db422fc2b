/**
 * Our own commands with flags of others, models and cards by their everyday names, and plain sentences. What is right
 * was written before any of them was run.
 * Of a few, it was corrected afterwards: what depends on the machine, and lines that would not run.
 */
import type { Guess, Right, Saying } from '../guesses.js';

const AS_IT_IS = 'as it is';

const is = (...lines: string[]): readonly string[] => lines;

const says = (texts: readonly string[], never: readonly string[] = []): Saying => ({
  says: texts,
  never,
});

const OWN: readonly (readonly [line: string, right: Right])[] = [
  [
    'fit qwen3-8b --gpu 4090 --quant awq --ctx_len 16k --kv_cache_dtype fp8 --num_users 4',
    is('fit qwen3-8b --gpu 4090 --dtype awq --context 16k --cache-dtype fp8 --users 4'),
  ],
  [
    'fit qwen3-8b --gpus "4090,3090"',
    is('fit qwen3-8b --gpu 4090+3090', 'fit qwen3-8b --gpu 4090,3090'),
  ],
  ['fit qwen3-8b --gpus 2x4090', is('fit qwen3-8b --gpu 2x4090')],
  ['fit qwen3-8b --vram 24', says(['fit --list-gpus 24GB'], ['--max-memory'])],
  ['fit qwen3-8b --vram 24GB', says(['fit --list-gpus 24GB'], ['--max-memory'])],
  ['fit qwen3-8b --max_memory 24GB', says(['fit --list-gpus 24GB'], ['profile'])],
  [
    'profile qwen3-8b --batch_size=4 --seq_length=4k --dtype=torch.float16',
    is(
      'profile qwen3-8b --batch 4 --context 4k --dtype torch.float16',
      'profile qwen3-8b --batch 4 --context 4k --dtype f16',
    ),
  ],
  [
    'train-plan my.yaml --num_gpus 8 --gpu_type h100 --global_batch_size 32 --max_steps 100',
    is('train-plan my.yaml --gpus 8 --gpu h100 --batch 4 --accumulation 1 --steps 100'),
  ],
  [
    'convert-checkpoint hf out --load_in_8bit true --dry_run',
    is('convert-checkpoint hf out --quantize int8 --dry-run'),
  ],
  [
    'generate hf --ids 1,2,3 --max_tokens=4 --do_sample=False --use_cache=True',
    is('generate hf --ids 1,2,3 --max-tokens 4 --greedy'),
  ],
  ['quantize hf to int4', says(['convert-checkpoint hf', '--quantize int4'])],
  ['quantize hf --bits 4', says(['convert-checkpoint hf', '--quantize int4'])],
  [
    'evaluate hf --ids 1,2,3,4 --max_length=4 --batch_size=1',
    is('evaluate hf --ids 1,2,3,4 --context 4'),
  ],
  ['compare qwen3-8b,llama-3.1-8b', is('compare qwen3-8b llama-3.1-8b')],
  ['profile qwen3-8b and llama-3.1-8b', is('compare qwen3-8b llama-3.1-8b')],
  ['export hf --opset_version 17 --output model.onnx', is('export hf --save model.onnx')],
  [
    'plan --budget 100M --vocab_size 32k --gpu 4090',
    is('plan --max-params 100M --vocab 32k --gpu 4090'),
  ],
  [
    'fit qwen3-8b --gpu h100 --tp=2 --pp=2 --batch_size=8',
    is('fit qwen3-8b --gpu h100 --tensor-parallel 2 --pipeline-parallel 2 --batch 8 …'),
  ],
  [
    'fit my.yaml --gpu h100 --max_seq_len=128 --fp16=true --use_flash_attn=true --for training',
    is('fit my.yaml --gpu h100 --context 128 --precision mixed --attention fused --for training'),
  ],
  [
    'fit qwen3-8b --gpu 4090 --weights_dtype=int8 --kv-bits=8',
    is('fit qwen3-8b --gpu 4090 --dtype int8 --cache-dtype int8'),
  ],
];

const NAMES: readonly (readonly [line: string, right: Right])[] = [
  ['profile Qwen2.5-7B-Instruct', AS_IT_IS],
  ['profile meta-llama/Meta-Llama-3-8B', AS_IT_IS],
  ['profile llama3:8b-instruct-q8_0', says(['--dtype q8_0'])],
  ['profile "Mistral 7B Instruct v0.3"', AS_IT_IS],
  ['profile deepseek-ai/DeepSeek-V3', AS_IT_IS],
  [
    'profile bartowski/Llama-3.2-1B-Instruct-GGUF',
    says(['hf:bartowski/Llama-3.2-1B-Instruct-GGUF']),
  ],
  ['profile openai/gpt-oss-120b', AS_IT_IS],
  ['profile google/gemma-3-12b-it', AS_IT_IS],
  ['profile SmolLM3', says(['SmolLM3'], ['did you mean'])],
  ['profile gpt-4', says(['minimind list'], ['did you mean', 'gpt2'])],
  ['fit qwen3-8b-awq --gpu 4090', says(['--dtype awq'])],
  ['profile qwen3:30b-a3b', AS_IT_IS],
];

const CARDS: readonly (readonly [line: string, right: Right])[] = [
  ['fit my.yaml --gpu "NVIDIA GeForce RTX 5090"', AS_IT_IS],
  ['fit my.yaml --gpu "NVIDIA A10G"', AS_IT_IS],
  ['fit my.yaml --gpu "NVIDIA GH200 480GB"', AS_IT_IS],
  ['fit my.yaml --gpu g2-standard-4', says(['L4'])],
  ['fit my.yaml --gpu g6e.xlarge', says(['L40S'])],
  ['fit my.yaml --gpu Standard_ND96isr_H100_v5', says(['H100'])],
  ['fit my.yaml --gpu p5.48xlarge', says(['H100'])],
  ['fit my.yaml --gpu "AMD Radeon RX 7900 XTX"', AS_IT_IS],
  ['fit my.yaml --gpu "Apple M4 Pro"', AS_IT_IS],
  ['fit my.yaml --gpu A100-PCIE-40GB', says(['A100'])],
  ['fit my.yaml --gpu "NVIDIA GeForce RTX 3070 Ti Laptop GPU"', says(['aptop'], ['did you mean'])],
  ['fit my.yaml --gpu "H100 NVL"', AS_IT_IS],
];

const SENTENCES: readonly (readonly [line: string, right: Right])[] = [
  ['how much vram does qwen3-8b need', is('fit qwen3-8b')],
  ['can i run qwen3-8b on a 4060', is('fit qwen3-8b --gpu 4060')],
  ['will llama-3.3-70b fit on 2x3090', is('fit llama-3.3-70b --gpu 2x3090')],
  ['fine-tune qwen3-8b with lora on a 4090', is('fit qwen3-8b --for lora --gpu 4090')],
  ['train a 100M model on a 4090', is('plan --max-params 100M --gpu 4090')],
  ['what fits on a 4090', is('fit --gpu 4090')],
  ['convert hf to gguf', says(['convert-checkpoint hf', '.gguf'])],
  ['which gpu for qwen3-8b', is('fit qwen3-8b')],
  ['count parameters of my.yaml', is('profile my.yaml')],
  ['how big is qwen3-8b', is('profile qwen3-8b')],
  [
    'serve qwen3-8b on 2 h100s for 100 users',
    is('fit qwen3-8b --gpu h100 --gpus 2 --users 100', "fit qwen3-8b --gpu '2 h100s' --users 100"),
  ],
  ['run qwen3-8b on cpu', is('fit qwen3-8b --gpu cpu')],
  ['$ minimind profile my.yaml', is('profile my.yaml')],
  ['minimind minimind profile my.yaml', is('profile my.yaml')],
  ['./minimind fit qwen3-8b --gpu 4090', is('fit qwen3-8b --gpu 4090')],
  ['npx -y minimind fit qwen3-8b --gpu 4090', is('fit qwen3-8b --gpu 4090')],
];

/** Names of every object are words like others, in every place. */
const PROTOTYPES: readonly (readonly [line: string, right: Right])[] = [
  'constructor',
  '__proto__ hf',
  'ollama toString hf',
  'tune run valueOf --config my.yaml',
  'docker run constructor --model my.yaml',
  'hasOwnProperty=1 constructor hf',
  'python -m constructor.toString hf',
  'fit my.yaml --constructor 3 --gpu h100',
].map((line) => [line, says(['error: '], ['This is a bug'])]);

export const SPEECH_GUESSES: readonly Guess[] = [
  ...OWN,
  ...NAMES,
  ...CARDS,
  ...SENTENCES,
  ...PROTOTYPES,
];
