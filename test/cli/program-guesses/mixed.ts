/**
 * Our commands with flags of other programs, with two mistakes a line, in other units, cases and spellings. What is
 * right was written before any of them was run.
 * Of 14, it was corrected afterwards: two lines contradict themselves, and the others have an answer as good.
 */
import type { Guess, Right, Saying } from '../guesses.js';

const AS_IT_IS = 'as it is';

const is = (...lines: string[]): readonly string[] => lines;

const says = (...texts: string[]): Saying => ({ says: texts });

const LINES: readonly (readonly [line: string, right: Right])[] = [
  // profile, compare-srte, convert-checkpoint, quick-test.
  ['profile --model-path my.yaml --seqlen 128', is('profile my.yaml --context 128')],
  [
    'profile my.yaml --max-model-len=128 --dtype=float16',
    is('profile my.yaml --context 128 --dtype float16'),
  ],
  ['profile my.yaml --contxt 128 --batchsize 2', is('profile my.yaml --context 128 --batch 2')],
  ['profile qwen3-8b --load-in-8bit --kv-cache-dtype fp8_e4m3', says('--dtype', '--cache-dtype')],
  ['profile my.yaml --verbose yes', is('profile my.yaml --explain')],
  ['profile my.yaml --layers on --explain off', is('profile my.yaml --layers')],
  [
    'profile my.yaml --format=JSON --max-param 26M',
    is(
      'profile my.yaml --format json --max-params 26M',
      'profile my.yaml --format=JSON --max-params 26M',
    ),
  ],
  [
    'profile my.yaml --max-memory 2 GB',
    is("profile my.yaml --max-memory '2 GB'", 'profile my.yaml --max-memory 2GB'),
  ],
  [
    'profile MiniMind2-Small --Batch-Size 4 --CONTEXT 128',
    is('profile MiniMind2-Small --batch 4 --context 128'),
  ],
  [
    'profile my.yaml --optim adamw_torch --bf16 true',
    is(
      'profile my.yaml --optimizer adamw --precision bf16',
      'profile my.yaml --optimizer adamw --dtype bf16',
      'profile my.yaml --optimizer adamw --precision mixed',
    ),
  ],
  [
    'profile my.yaml -b 2 -s 128',
    says('profile my.yaml --batch 2', '-s 128 has no counterpart here'),
  ],
  [
    'profile my.yaml --gradient-checkpointing --dtyp bf16',
    is('profile my.yaml --recompute full --dtype bf16'),
  ],
  ['profile my.yaml --num-layers 4 --n-heads 4', says('model.num_layers=4', '--set')],
  ['compare-srte original --rank 128', is('compare-srte original --ranks 128')],
  [
    'compare-srte original --ranks 128, 64, 32',
    is("compare-srte original --ranks '128, 64, 32'", 'compare-srte original --ranks 128,64,32'),
  ],
  [
    'compare-srte --config original --lora_rank 64 --torch_dtype float16',
    is('compare-srte original --ranks 64 --dtype float16'),
  ],
  [
    'compare-srte original --max_position_embeddings 8192 --tie_word_embeddings true',
    is('compare-srte original --max-positions 8192 --tie'),
  ],
  [
    'compare-srte original --vocab_size 32000 --preset',
    is('compare-srte original --vocab-sizes 32000 --presets'),
  ],
  [
    'convert-checkpoint --checkpoint old.pt --save-path new.safetensors --half --dry-run',
    is(
      'convert-checkpoint old.pt new.safetensors --dtype f16 --dry-run',
      'convert-checkpoint old.pt new.safetensors --dtype half --dry-run',
      'convert-checkpoint old.pt new.safetensors --dtype fp16 --dry-run',
    ),
  ],
  [
    'convert-checkpoint hf --save_dir out --torch-dtype bfloat16 --dryrun',
    is('convert-checkpoint hf out --dtype bf16 --dryrun'),
  ],
  [
    'convert-checkpoint hf out.gguf --outtype q8_0 --dry_run',
    is('convert-checkpoint hf out.gguf --dtype q8_0 --dry_run'),
  ],
  [
    'convert-checkpoint hf out --bits 4 --group_size 32 --dry-run',
    is('convert-checkpoint hf out --quantize int4 --group 32 --dry-run'),
  ],
  [
    'convert-checkpoint old.pt new.pt --overwrite yes --dry-run',
    is(
      'convert-checkpoint old.pt new.pt --dry-run',
      'convert-checkpoint old.pt new.pt --force --dry-run',
    ),
  ],
  [
    'convert-checkpoint hf out --max-shard-size 5MB --safe-serialization --dry-run',
    is(
      'convert-checkpoint hf out --shard-size 5MB --dry-run',
      'convert-checkpoint hf out --shard-size 5MB --container safetensors --dry-run',
    ),
  ],
  [
    'convert-checkpoint old.pt new.safetensors --too low-rank --r 2 --dry-run',
    is('convert-checkpoint old.pt new.safetensors --to low-rank --rank 2 --dry-run'),
  ],
  [
    'convert-checkpoint old.pt new.safetensors --verify --n-threads 2',
    is('convert-checkpoint old.pt new.safetensors --check --threads 2'),
  ],
  [
    'quick-test my.yaml --seq_length 32 --num-threads 2 --trace',
    says('--trace and --threads cannot be used together', '--context 32'),
  ],
  ['quick-test hf --benchmark --iterations 3', is('quick-test hf --only timing --repeat 3')],
  [
    'quick-test my.yaml --overfit --learning_rate 1e-3 --max_steps 2',
    is('quick-test my.yaml --overfit --lr 1e-3 --steps 2'),
  ],
  [
    'quick-test my.yaml --random-seed 7 --device CPU --trace',
    says('--trace and --seed cannot be used together', '--seed 7 --device cpu'),
  ],

  // fit, serve.
  ['fit qwen3-8b --gpu 4090 --vram 24GB', is("fit qwen3-8b --gpu '4090 24GB'")],
  ['fit qwen3-8b --gpu-type H100 --num-gpus 2', is('fit qwen3-8b --gpu H100 --gpus 2')],
  [
    'fit qwen3-8b --gpu "RTX 4090 24 GB" --ctx 8K',
    is("fit qwen3-8b --gpu 'RTX 4090 24 GB' --context 8K"),
  ],
  [
    'fit qwen3-8b --gpu l4 --kv-cache-type q8_0 --ctx-len 8k',
    is('fit qwen3-8b --gpu l4 --cache-dtype q8_0 --context 8k'),
  ],
  [
    'fit qwen3-8b --gpu h100 --concurency 16 --input-len 512 --output-len 128',
    is('fit qwen3-8b --gpu h100 --users 16 --prompt-tokens 512 --output-tokens 128'),
  ],
  [
    'fit qwen3-8b --gpu=A100 --request-rate=4 --random-input-len=512 --random-output-len=128',
    is('fit qwen3-8b --gpu A100 --qps 4 --prompt-tokens 512 --output-tokens 128'),
  ],
  [
    'fit qwen3-8b --gpu l4 --quant 4bit --max-len 4096',
    is(
      'fit qwen3-8b --gpu l4 --dtype 4bit --context 4096',
      'fit qwen3-8b --gpu l4 --dtype int4 --context 4096',
    ),
  ],
  [
    'fit qwen3-8b --gpu l40s --users 8 --context_length=16K --kvcache fp8',
    is('fit qwen3-8b --gpu l40s --users 8 --context 16K --cache-dtype fp8'),
  ],
  ['fit qwen3-8b --gpu 3090,3090 --tp 2', is('fit qwen3-8b --gpu 3090,3090 --tensor-parallel 2')],
  ['fit qwen3-8b --gpu 4090 --cpu-offload-gb 8 --ram 32 GB', says('--gpu 4090', '32')],
  [
    'fit qwen3-8b --gpu 4090 --enforce-eager true --enable-chunked-prefill false',
    is('fit qwen3-8b --gpu 4090 --eager', 'fit qwen3-8b --gpu 4090 --eager --batching whole'),
  ],
  ['fit qwen3-8b --gpuu 4090 --usres 4', is('fit qwen3-8b --gpu 4090 --users 4')],
  [
    'fit Qwen3-8B on 2x H100',
    is(
      "fit Qwen3-8B --gpu '2x H100'",
      'fit Qwen3-8B --gpu 2xH100',
      'fit Qwen3-8B --gpu H100 --gpus 2',
      'fit Qwen3-8B --gpu H100 --gpus 2',
    ),
  ],
  ['fit qwen3-8b 24GB', says('fit --list-gpus 24GB')],
  ['fit qwen3-8b --list-devices', says('--list-gpus')],
  ['fit --model qwen3-8b --hardware 4090', is('fit qwen3-8b --gpu 4090')],
  ['fit qwen3-8b --gpu h100 --dp 2 --tp 2', says('--tensor-parallel 2', '--gpu h100')],
  [
    'fit qwen3-8b --gpu h100 --max-tokens 128 --prompt-len 512 --users 2',
    is('fit qwen3-8b --gpu h100 --output-tokens 128 --prompt-tokens 512 --users 2'),
  ],
  ['serve qwen3-8b --gpu 4090 --port 8000 --dtype auto', is('fit qwen3-8b --gpu 4090')],
  ['serve qwen3-8b on 4090', is('fit qwen3-8b --gpu 4090')],
  [
    'serve qwen3-8b --gpu t4 --num-speculative-tokens 4 --speculative-model qwen3-0.6b',
    is('fit qwen3-8b --gpu t4 --draft-tokens 4 --draft qwen3-0.6b --acceptance 0.7'),
  ],
  [
    'vllm serve qwen3-14b --max_model_len 16k --gpu_memory_utilization=.95 --gpu l40s',
    is(
      'fit qwen3-14b --context 16k --gpu-memory-utilization .95 --gpu l40s',
      'fit qwen3-14b --context 16k --gpu-memory-utilization 0.95 --gpu l40s',
    ),
  ],
  ['VLLM_USE_V1=1 vllm serve qwen3-8b --gpu l4', says('VLLM_USE_V1=1', 'fit qwen3-8b --gpu l4')],
  [
    'llama-server -m qwen3-8b --gpu-layers 20 --ctx_size 8192 --gpu 3060',
    is('fit qwen3-8b --gpu-layers 20 --context 8192 --gpu 3060'),
  ],
  ['ollama run qwen3:14b --gpu "RTX 3060 12GB"', is("fit qwen3:14b --gpu 'RTX 3060 12GB' …")],
  [
    'sglang serve --model-path qwen3-32b --tp 4 --mem-fraction-static 0.85 --gpu a100',
    is(
      'fit qwen3-32b --tensor-parallel 4 --gpu-memory-utilization 0.85 --gpu a100 …',
      'fit qwen3-32b --tensor-parallel 4 --gpu a100',
    ),
  ],
  [
    'fit deepseek-r1 --gpu 8xh200 --ep 8 --kv_cache_dtype fp8',
    is('fit deepseek-r1 --gpu 8xh200 --expert-parallel 8 --cache-dtype fp8'),
  ],
  [
    'fit gpt-oss-120b --gpu 5090 --n_cpu_moe 20 --system-ram 64GB',
    is('fit gpt-oss-120b --gpu 5090 --cpu-experts 20 --ram 64GB'),
  ],
  ['fit qwen3-8b --gpu m4-max --p99 500ms --users 2', says('--p95 TIME')],
  ['run qwen3-8b --gpu 4090 --context-size 32K', is('fit qwen3-8b --gpu 4090 --context 32K')],

  // Training, LoRA, QLoRA.
  [
    'train qwen3-0.6b --gpu 4090 --batch-size 4 --epochs 3',
    says('qwen3-0.6b', '--batch 4', '--epochs 3'),
  ],
  [
    'train my.yaml --lr 3e-4 --iters 1000 --bs 8',
    is('train-plan my.yaml --lr 3e-4 --steps 1000 --batch 8'),
  ],
  ['finetune qwen3-8b --method qlora --gpu 3090', is('fit qwen3-8b --for qlora --gpu 3090')],
  [
    'fit qwen3-8b --lora --gpu 4090 --bs 2',
    is('fit qwen3-8b --for lora --gpu 4090 --micro-batch 2'),
  ],
  [
    'fit qwen3-8b --for lora --batch 4 --gpu 4090',
    is('fit qwen3-8b --for lora --micro-batch 4 --gpu 4090'),
  ],
  [
    'fit qwen3-8b --for Q-LoRA --gpu 3090 --lora-r 32',
    is('fit qwen3-8b --for qlora --gpu 3090 --rank 32'),
  ],
  [
    'fit qwen3-8b --for finetuning --gpu 8xh100 --zero_stage 3',
    is('fit qwen3-8b --for training --gpu 8xh100 --zero 3'),
  ],
  [
    'fit qwen3-8b --peft lora --lora_target_modules all-linear --gpu 4090',
    is('fit qwen3-8b --for lora --gpu 4090'),
  ],
  [
    'fit qwen3-8b --for training --fsdp full_shard --gpu 8xa100 --grad-accum 4',
    is('fit qwen3-8b --for training --zero 3 --gpu 8xa100 --accumulation 4'),
  ],
  [
    'fit qwen3-8b --for training --micro-batch-size 1 --activation-checkpointing full --gpu 8xh100',
    is('fit qwen3-8b --for training --micro-batch 1 --recompute full --gpu 8xh100'),
  ],
  [
    'fit qwen3-8b --for qlora --lora_rank 16 --optim paged_adamw_8bit --gpu 4090',
    is(
      'fit qwen3-8b --for qlora --rank 16 --optimizer paged-adamw-8bit --gpu 4090',
      'fit qwen3-8b --for qlora --rank 16 --optimizer adamw-8bit --gpu 4090',
    ),
  ],
  [
    'train-plan my.yaml --max-steps 1K --warmup-steps 100 --scheduler cosine',
    is('train-plan my.yaml --steps 1K --warmup 100 --schedule cosine'),
  ],
  [
    'train-plan my.yaml --num_epochs 2 --dataset data.jsonl --tokenizer-path tokenizer',
    is('train-plan my.yaml --epochs 2 --data data.jsonl --tokenizer tokenizer'),
  ],
  [
    'train-plan my.yaml --stepss 1000 --learnrate 1e-3',
    is('train-plan my.yaml --steps 1000 --lr 1e-3'),
  ],
  [
    'train-plan my.yaml --total-tokens 10M --wd 0.1 --grad_accum 2',
    is('train-plan my.yaml --tokens 10M --weight-decay 0.1 --accumulation 2'),
  ],
  [
    'train-plan my.yaml --steps 1000 --lr-decay linear --warmup 10 %',
    says('--steps 1000', '--warmup'),
  ],
  [
    'torchrun --nproc-per-node=2 train.py --model my.yaml --max-steps=50 --gpu=a100',
    is('train-plan my.yaml --gpus 2 --steps 50 --gpu a100'),
  ],
  [
    'axolotl train --base-model my.yaml --micro-batch-size 2 --num-epochs 3',
    is('train-plan my.yaml --batch 2 --epochs 3 --data-tokens 1B'),
  ],
  [
    'deepspeed --num_gpus=4 train.py --model my.yaml --zero-stage 2 --max_steps 10 --gpu a100',
    is('train-plan my.yaml --gpus 4 --zero 2 --steps 10 --gpu a100'),
  ],
  ['lora qwen3-8b --gpu 4090 --rank 8', is('fit qwen3-8b --for lora --gpu 4090 --rank 8')],

  // Conversion, quantization, merging.
  [
    'quantize hf --bits 4',
    is(
      'convert-checkpoint hf hf-int4 --quantize int4 …',
      'convert-checkpoint hf out --quantize int4 …',
    ),
  ],
  ['axolotl quantize hf', says('convert-checkpoint hf')],
  ['tune run quantize --config hf', says('convert-checkpoint hf')],
  [
    'quantize hf out.gguf Q5_K_M --dry-run',
    is('convert-checkpoint hf out.gguf --dtype q5_k_m --dry-run'),
  ],
  [
    'quantise hf out --type int8 --dry-run',
    is(
      'convert-checkpoint hf out --quantize int8 --dry-run',
      'convert-checkpoint hf out --dtype int8 --dry-run',
    ),
  ],
  [
    'convert old.pt --format safetensors --dry-run',
    is(
      'convert-checkpoint old.pt old.safetensors --dry-run …',
      'convert-checkpoint old.pt old.safetensors --container safetensors --dry-run',
    ),
  ],
  [
    'convert hf to gguf --dry-run',
    is('convert-checkpoint hf hf.gguf --dry-run …', 'convert-checkpoint hf out.gguf --dry-run'),
  ],
  [
    'convert old.pt into safetensors --dry-run',
    is('convert-checkpoint old.pt old.safetensors --dry-run'),
  ],
  [
    'merge hf lora merged --dry-run',
    is('convert-checkpoint hf merged --merge-lora lora --dry-run'),
  ],
  [
    'merge-lora --base hf --adapter lora --output merged --dry-run',
    is('convert-checkpoint hf merged --merge-lora lora --dry-run'),
  ],
  [
    'convert zero whole.safetensors --fp32 --dry-run',
    is(
      'convert-checkpoint zero whole.safetensors --dtype f32 --dry-run',
      'convert-checkpoint zero whole.safetensors --dtype fp32 --dry-run',
    ),
  ],
  [
    'shard hf parts --size 10MB --dry-run',
    is('convert-checkpoint hf parts --shard-size 10MB --dry-run'),
  ],
  ['dequantize hf plain --dry-run', says('expected packed weights in hf')],
  ['cast hf out --to bf16 --dry-run', is('convert-checkpoint hf out --dtype bf16 --dry-run')],
  ['onnx hf', is('export hf --save model.onnx')],

  // Generation, evaluation, data.
  [
    'generate hf --ids "1, 2, 3" --max-length 8',
    is(
      "generate hf --ids '1, 2, 3' --max-tokens 8",
      'generate hf --ids 1,2,3 --max-tokens 5',
      "generate hf --ids '1, 2, 3' --max-tokens 5",
      "generate hf --ids '1, 2, 3' --context 8",
    ),
  ],
  ['generate hf --ids 1 2 3 --n-predict 4', is('generate hf --ids 1,2,3 --max-tokens 4')],
  [
    'generate --model hf --ids 1,2,3 --temprature 0.7 --topk 5',
    is('generate hf --ids 1,2,3 --temperature 0.7 --topk 5'),
  ],
  [
    'generate hf --ids 1,2,3 --do-sample False --num-return-sequences 1',
    is(
      'generate hf --ids 1,2,3 --greedy',
      'generate hf --ids 1,2,3 --temperature 0',
      'generate hf --ids 1,2,3',
    ),
  ],
  [
    'sample hf --ids 1,2,3 --temp=0.8 --nucleus 0.9',
    is('generate hf --ids 1,2,3 --temperature 0.8 --top-p 0.9'),
  ],
  ['chat hf --ids 1,2,3 --n 5', is('generate hf --ids 1,2,3 --max-tokens 5')],
  ['evaluate hf --input-ids 1,2,3,4 --seqlen 4', is('evaluate hf --ids 1,2,3,4 --context 4')],
  [
    'eval hf --ids 1,2,3,4 --max_seq_len 4 --strid 2',
    is('evaluate hf --ids 1,2,3,4 --context 4 --stride 2'),
  ],
  ['ppl --model hf --ids 1,2,3,4', is('evaluate hf --ids 1,2,3,4')],
  ['evaluate hf --benchmark mmlu', says('--text')],
  [
    'data data.jsonl --max-len 64 --tokeniser tokenizer',
    is('data data.jsonl --context 64 --tokenizer tokenizer'),
  ],
  [
    'data --file data.jsonl --model-max-length 64 --tokenizer tokenizer',
    is('data data.jsonl --context 64 --tokenizer tokenizer'),
  ],
  ['tokenize data.jsonl --tokenizer_name tokenizer', is('data data.jsonl --tokenizer tokenizer')],
  ['count tokens data.jsonl --tokenizer tokenizer', is('data data.jsonl --tokenizer tokenizer')],
  [
    'dataset data.jsonl --tokenizer tokenizer --seq-len 64',
    is('data data.jsonl --tokenizer tokenizer --context 64'),
  ],

  // Names, sentences, words alone.
  ['llama3', says('minimind profile llama3')],
  ['--model qwen3-8b', is('profile qwen3-8b')],
  ['qwen3-8b 4090', is('fit qwen3-8b --gpu 4090')],
  ['h100', says('fit --list-gpus h100')],
  ['profile Qwen/Qwen3-0.6B --Dtype BF16', AS_IT_IS],
  ['will qwen3-8b fit on my 4090?', is('fit qwen3-8b --gpu 4090')],
  ['how fast is qwen3-8b on an h100', is('fit qwen3-8b --gpu h100')],
  ['which gpu for llama-3.3-70b', is('fit llama-3.3-70b')],
  ['profile 0.5b', says('name a model: qwen2.5-0.5b')],
  ['fit llama3 70B --gpu 2xA6000', is('fit llama3-70b --gpu 2xA6000')],
];

export const MIXED_GUESSES: readonly Guess[] = LINES;
