/**
 * Lines that people type first, with words of the tools that they come from, and what is right. The words are in:
 *
 * - ollama: docs/cli (run, show, ls, create -q, ps), Modelfile parameters num_ctx and num_predict
 * - llama.cpp: tools/server/README.md, tools/perplexity, tools/quantize, tools/llama-bench
 * - vLLM: docs, "Engine Arguments" and `vllm serve`
 * - SGLang: docs, "Server Arguments"
 * - transformers: TrainingArguments, GenerationConfig, BitsAndBytesConfig
 * - axolotl: docs, "CLI" and "Config Reference"
 * - DeepSpeed: zero_to_fp32.py, DeepSpeed-Chat's --zero_stage, ds_config
 * - nanoGPT: train.py, sample.py
 * - lm-evaluation-harness: docs/interface.md
 * - accelerate: docs, "Model memory estimator", `accelerate launch`; torchrun
 * - LM Studio: docs, `lms load`
 * - MiniMind: trainer/train_pretrain.py, eval_llm.py
 */

/** An answer that is not a line. */
export interface Saying {
  /** Texts that the answer has. */
  readonly says: readonly string[];
  /** Texts that it does not have. */
  readonly never?: readonly string[];
}

/** Right answer: the line as it is, one of several lines, or an answer. `…` stands for further words. */
export type Right = 'as it is' | readonly string[] | Saying;

export type Guess = readonly [line: string, right: Right];

const AS_IT_IS = 'as it is';

const is = (...lines: string[]): readonly string[] => lines;

const says = (...texts: string[]): Saying => ({ says: texts });

/** Our own commands with usual options. */
const OWN: readonly Guess[] = [
  ['profile my.yaml', AS_IT_IS],
  ['profile my.yaml --max_params 26M', AS_IT_IS],
  ['profile my.yaml --details true', is('profile my.yaml --details')],
  ['profile my.yaml --details false', is('profile my.yaml')],
  ['profile my.yaml --details=true', is('profile my.yaml --details')],
  ['profile my.yaml --json true', is('profile my.yaml --json')],
  ['profile my.yaml --color=never', is('profile my.yaml --no-color')],
  ['profile my.yaml --color never', is('profile my.yaml --no-color')],
  ['profile my.yaml --color=always', says('FORCE_COLOR=1')],
  ['profile my.yaml --no_color', AS_IT_IS],
  ['profile --config my.yaml', is('profile my.yaml')],
  ['profile --model my.yaml --context_length 128', is('profile my.yaml --context 128')],
  ['fit --model my.yaml --gpu h100', is('fit my.yaml --gpu h100')],
  ['quick-test --config my.yaml --trace', is('quick-test my.yaml --trace')],
  [
    'quick-test my.yaml --batch-size 2 --seq-len 32 --trace',
    is('quick-test my.yaml --batch 2 --context 32 --trace'),
  ],
  ['quick-test my.yaml --dry-run', is('quick-test my.yaml --trace')],
  [
    'convert-checkpoint --input old.pt --output new.safetensors --dry-run',
    is('convert-checkpoint old.pt new.safetensors --dry-run'),
  ],
  [
    'convert-checkpoint --in old.pt --out new.safetensors --dry-run',
    is('convert-checkpoint old.pt new.safetensors --dry-run'),
  ],
  [
    'convert-checkpoint -i old.pt -o new.safetensors --dry-run',
    is('convert-checkpoint old.pt new.safetensors --dry-run'),
  ],
  [
    'convert-checkpoint old.pt new.safetensors --strategy low-rank --rank 2 --dry-run',
    is('convert-checkpoint old.pt new.safetensors --to low-rank --rank 2 --dry-run'),
  ],
  [
    'convert-checkpoint old.pt new.safetensors --strategy shared --dry-run',
    is('convert-checkpoint old.pt new.safetensors --to shared --dry-run'),
  ],
  [
    'convert-checkpoint --input old.pt --output new.safetensors --strategy shared --dry-run',
    is('convert-checkpoint old.pt new.safetensors --to shared --dry-run'),
  ],
  [
    'convert-checkpoint old.pt new.safetensors --dry-run true',
    is('convert-checkpoint old.pt new.safetensors --dry-run'),
  ],
  [
    'convert-checkpoint hf new --fp16 --dry-run',
    is(
      'convert-checkpoint hf new --dtype f16 --dry-run',
      'convert-checkpoint hf new --dtype fp16 --dry-run',
    ),
  ],
  ['fit my.yaml h100', is('fit my.yaml --gpu h100')],
  ['fit --gpu 4090', AS_IT_IS],
  ['plan 26M', is('plan --max-params 26M')],
  ['validate folder', is('validate folder/a.yaml folder/b.yaml')],
  ['profile my.yaml other.yaml', is('compare my.yaml other.yaml')],
  ['profile my.yaml other.yaml gpt2', is('compare my.yaml other.yaml gpt2')],
  ['fit my.yaml --gpu 4090 --batch 1,8,32', AS_IT_IS],
  ['help', AS_IT_IS],
  ['help profile', AS_IT_IS],
  ['profile help', AS_IT_IS],
  ['help kv-projector init', AS_IT_IS],
  ['-?', AS_IT_IS],
  ['profile -?', AS_IT_IS],
  ['-V', AS_IT_IS],
  ['--help', AS_IT_IS],
];

/** Serving: vLLM, SGLang, llama.cpp, ollama, LM Studio. */
const SERVING: readonly Guess[] = [
  ['serve qwen3-0.6b', is('fit qwen3-0.6b …')],
  [
    'serve qwen3-0.6b --tensor-parallel-size 2 --gpu h100',
    is('fit qwen3-0.6b --tensor-parallel 2 --gpu h100 …'),
  ],
  [
    'serve qwen3-0.6b --max-model-len 8192 --gpu l4',
    is('fit qwen3-0.6b --context 8192 --gpu l4 …'),
  ],
  [
    'serve qwen3-0.6b --gpu-memory-utilization 0.9 --gpu l4',
    is('fit qwen3-0.6b --gpu-memory-utilization 0.9 --gpu l4 …'),
  ],
  [
    'serve qwen3-0.6b --quantization awq --gpu l4',
    is('fit qwen3-0.6b --dtype awq --gpu l4 …', 'fit qwen3-0.6b --dtype int4 --gpu l4 …'),
  ],
  [
    'serve qwen3-0.6b --kv-cache-dtype fp8 --gpu l4',
    is('fit qwen3-0.6b --cache-dtype fp8 --gpu l4 …'),
  ],
  [
    'serve qwen3-0.6b --max-num-seqs 32 --gpu l4',
    is('fit qwen3-0.6b --batch 32 --gpu l4 …', 'fit qwen3-0.6b --users 32 --gpu l4 …'),
  ],
  [
    'serve qwen3-0.6b --max-num-seqs 32 --max-model-len 8192 --gpu l4',
    is(
      'fit qwen3-0.6b --batch 32 --context 8192 --gpu l4 …',
      'fit qwen3-0.6b --users 32 --context 8192 --gpu l4 …',
    ),
  ],
  ['serve qwen3-0.6b --dtype half --gpu t4', is('fit qwen3-0.6b --dtype half --gpu t4 …')],
  [
    'serve Qwen/Qwen3-0.6B --gpu l4',
    is('fit Qwen/Qwen3-0.6B --gpu l4 …', 'fit qwen3-0.6b --gpu l4 …'),
  ],
  ['serve --model qwen3-0.6b --gpu l4', is('fit qwen3-0.6b --gpu l4 …')],
  [
    'serve qwen3-0.6b --pipeline-parallel-size 2 --gpu h100',
    is('fit qwen3-0.6b --pipeline-parallel 2 --gpu h100 …'),
  ],
  [
    'serve --model-path llama-3.2-1b --tp 2 --gpu h100',
    is('fit llama-3.2-1b --tensor-parallel 2 --gpu h100 …'),
  ],
  [
    'serve --model-path llama-3.2-1b --context-length 8192 --mem-fraction-static 0.8 --gpu h100',
    is('fit llama-3.2-1b --context 8192 --gpu h100 …'),
  ],
  [
    'fit llama-3.2-1b --gpu h100 --tp-size 2',
    is('fit llama-3.2-1b --gpu h100 --tensor-parallel 2 …'),
  ],
  [
    'fit llama-3.2-1b --gpu h100 --max-running-requests 64',
    is('fit llama-3.2-1b --gpu h100 --batch 64', 'fit llama-3.2-1b --gpu h100 --users 64'),
  ],
  [
    'fit llama-3.2-1b --gpu h100 --quantization fp8 --kv-cache-dtype fp8_e5m2',
    is(
      'fit llama-3.2-1b --gpu h100 --dtype fp8 --cache-dtype fp8_e5m2',
      'fit llama-3.2-1b --gpu h100 --dtype f8 --cache-dtype f8',
    ),
  ],
  ['fit -m llama-3.2-1b -c 4096 --gpu 4090', is('fit llama-3.2-1b --context 4096 --gpu 4090')],
  [
    'fit -m llama-3.2-1b -c 4096 -np 4 --gpu 4090',
    is('fit llama-3.2-1b --gpu 4090 --context 1024 --users 4'),
  ],
  [
    'fit llama-3.2-1b -c 4096 -np 1 --gpu 4090',
    is('fit llama-3.2-1b --context 4096 --users 1 --gpu 4090'),
  ],
  [
    'llama-server -m llama-3.2-1b --ctx-size=4096 --parallel=4 --kv-unified',
    is('fit llama-3.2-1b --context 1024 --users 4'),
  ],
  [
    'llama-server -m llama-3.2-1b --gpu-layers all -c 4096 -np 4',
    is('fit llama-3.2-1b --gpu-layers all --context 1024 --users 4 --gpu rtx-4090'),
  ],
  [
    'llama-server -m llama-3.2-1b --gpu-layers all -c 4096 -np 4 --gpu 4090',
    is('fit llama-3.2-1b --gpu-layers all --gpu 4090 --context 1024 --users 4'),
  ],
  [
    'llama-server -m llama-3.2-1b --tensor-split 3,1 --parallel 4',
    is('fit llama-3.2-1b --tensor-split 3,1 --users 4 --gpu 2xrtx-4090'),
  ],
  [
    'fit llama-3.2-1b --gpu 4090 -np 4',
    is('fit llama-3.2-1b --gpu 4090 --users 4', 'fit llama-3.2-1b --gpu 4090 --batch 4'),
  ],
  [
    'fit llama-3.2-1b --gpu 4090 --parallel 4',
    is('fit llama-3.2-1b --gpu 4090 --users 4', 'fit llama-3.2-1b --gpu 4090 --batch 4'),
  ],
  [
    'fit qwen3-8b --gpu 4060 --dtype q8_0 -ngl 20',
    is('fit qwen3-8b --gpu 4060 --dtype q8_0 --gpu-layers 20'),
  ],
  [
    'fit qwen3-30b-a3b --gpu 4060 --dtype q4_k_m --n-cpu-moe 36',
    is('fit qwen3-30b-a3b --gpu 4060 --dtype q4_k_m --cpu-experts 36'),
  ],
  [
    'fit qwen3-30b-a3b --gpu 4060 --dtype q4_k_m --cpu-moe',
    is('fit qwen3-30b-a3b --gpu 4060 --dtype q4_k_m --cpu-experts all'),
  ],
  ['fit llama-3.2-1b --gpu 4090 -ngl 99', is('fit llama-3.2-1b --gpu 4090')],
  ['fit llama-3.2-1b --gpu 4090 -ngl 99 -c 8192', is('fit llama-3.2-1b --gpu 4090 --context 8192')],
  [
    'fit llama-3.2-1b --gpu 4090 -ctk q8_0 -ctv q8_0',
    is('fit llama-3.2-1b --gpu 4090 --cache-dtype q8_0'),
  ],
  [
    'fit llama-3.2-1b --gpu 4090 --cache-type-k q8_0',
    is('fit llama-3.2-1b --gpu 4090 --cache-dtype q8_0'),
  ],
  ['fit llama-3.2-1b --gpu 4090 -fa', is('fit llama-3.2-1b --gpu 4090 --attention fused')],
  ['fit llama-3.2-1b --gpu 4090 -fa on', is('fit llama-3.2-1b --gpu 4090 --attention fused')],
  ['fit llama-3.2-1b --gpu 4090 --num_ctx 8192', is('fit llama-3.2-1b --gpu 4090 --context 8192')],
  ['fit llama3.2:1b --gpu 4090', AS_IT_IS],
  ['fit llama-3.2-1b --gpu 4090 --q4_k_m', is('fit llama-3.2-1b --gpu 4090 --dtype q4_k_m')],
  [
    'fit llama-3.2-1b --gpu 4090 --quant q4_k_m --ctx 8k',
    is('fit llama-3.2-1b --gpu 4090 --dtype q4_k_m --context 8k'),
  ],
  ['fit llama-3.2-1b --gpu 4090 --bits 4', is('fit llama-3.2-1b --gpu 4090 --dtype int4')],
  [
    'fit llama-3.2-1b --gpu 4090 --load_in_4bit true',
    is('fit llama-3.2-1b --gpu 4090 --dtype int4'),
  ],
  [
    'fit llama-3.2-1b --gpu 4090 --load_in_8bit True',
    is('fit llama-3.2-1b --gpu 4090 --dtype int8'),
  ],
  [
    'fit llama-3.2-1b --gpu 4090 --load-in-4bit --max-model-len 4096',
    is('fit llama-3.2-1b --gpu 4090 --dtype int4 --context 4096'),
  ],
  ['fit llama-3.2-1b --gpu 4090 --lora', is('fit llama-3.2-1b --gpu 4090 --for lora')],
  ['fit llama-3.2-1b --gpu 4090 --use_peft', is('fit llama-3.2-1b --gpu 4090 --for lora')],
  ['fit llama-3.2-1b --gpu 4090 --finetune', is('fit llama-3.2-1b --gpu 4090 --for lora')],
  ['fit llama-3.2-1b --gpu 4090 --adapter qlora', is('fit llama-3.2-1b --gpu 4090 --for qlora')],
  [
    'fit llama-3.2-1b --gpu 4090 --lora --load_in_4bit true',
    is('fit llama-3.2-1b --gpu 4090 --for qlora'),
  ],
  [
    'fit llama-3.2-1b --gpu 4090 --for lora --load-in-4bit',
    is('fit llama-3.2-1b --gpu 4090 --for qlora'),
  ],
  [
    'fit llama-3.2-1b --gpu 4090 --load-in-4bit --optimizer adamw-8bit',
    is('fit llama-3.2-1b --gpu 4090 --for qlora --optimizer adamw-8bit'),
  ],
  ['fit llama-3.2-1b --gpu 4090 --qlora', is('fit llama-3.2-1b --gpu 4090 --for qlora')],
  [
    'load llama-3.2-1b --context-length 4096 --estimate-only',
    is('fit llama-3.2-1b --context 4096 …'),
  ],
  ['estimate-memory llama-3.2-1b', is('fit llama-3.2-1b', 'profile llama-3.2-1b')],
  [
    'estimate-memory llama-3.2-1b --dtypes float16',
    is('fit llama-3.2-1b --dtype float16', 'fit llama-3.2-1b --dtype f16'),
  ],
  ['estimate-memory llama-3.2-1b --library_name transformers', is('fit llama-3.2-1b')],
  ['vram qwen3-0.6b', is('fit qwen3-0.6b')],
  ['can-i-run qwen3-0.6b --gpu 3060', is('fit qwen3-0.6b --gpu 3060')],
  ['show qwen3-0.6b', is('profile qwen3-0.6b')],
  ['ls', is('list')],
  ['ps', is('list', 'doctor')],
  ['pull qwen3:0.6b', says('hf download Qwen/Qwen3-0.6B')],
];

/** Training: Trainer, axolotl, DeepSpeed, Megatron, nanoGPT, MiniMind, accelerate, torchrun. */
const TRAINING: readonly Guess[] = [
  ['train my.yaml', is('train-plan my.yaml')],
  ['train-plan my.yaml --learning_rate 1e-4', is('train-plan my.yaml --lr 1e-4')],
  ['train-plan my.yaml --max_steps 1000', is('train-plan my.yaml --steps 1000')],
  [
    'train-plan my.yaml --learning_rate 1e-4 --max_steps 1000',
    is('train-plan my.yaml --lr 1e-4 --steps 1000'),
  ],
  [
    'train-plan my.yaml --warmup_ratio 0.03 --max_steps 1000',
    is(
      'train-plan my.yaml --warmup 0.03 --steps 1000',
      'train-plan my.yaml --warmup 3% --steps 1000',
    ),
  ],
  [
    'train-plan my.yaml --warmup_steps 100 --max_steps 1000',
    is('train-plan my.yaml --warmup 100 --steps 1000'),
  ],
  [
    'train-plan my.yaml --per_device_train_batch_size 4 --max_steps 1000',
    is('train-plan my.yaml --batch 4 --steps 1000'),
  ],
  [
    'train-plan my.yaml --per_device_train_batch_size 4 --gradient_accumulation_steps 8 --max_steps 1000',
    is('train-plan my.yaml --batch 4 --accumulation 8 --steps 1000'),
  ],
  ['train-plan my.yaml --lr_scheduler_type cosine', is('train-plan my.yaml --schedule cosine')],
  ['train-plan my.yaml --weight_decay 0.1', AS_IT_IS],
  [
    'train-plan my.yaml --num_train_epochs 3 --data_tokens 1M',
    is(
      'train-plan my.yaml --epochs 3 --data-tokens 1M',
      'train-plan my.yaml --epochs 3 --data_tokens 1M',
    ),
  ],
  ['train-plan my.yaml --gradient_checkpointing true', is('train-plan my.yaml --recompute full')],
  [
    'train-plan my.yaml --gradient_checkpointing True --gpu h100',
    is('train-plan my.yaml --recompute full --gpu h100'),
  ],
  ['train-plan my.yaml --block_size 128', is('train-plan my.yaml --context 128')],
  [
    'train-plan my.yaml --block_size=128 --batch_size=4',
    is('train-plan my.yaml --context 128 --batch 4'),
  ],
  [
    'train-plan my.yaml --max_iters=5000 --learning_rate=6e-4 --min_lr=6e-5',
    is('train-plan my.yaml --steps 5000 --lr 6e-4 --min-lr 6e-5'),
  ],
  [
    'train-plan my.yaml --warmup_iters=100 --max_iters=5000',
    is('train-plan my.yaml --warmup 100 --steps 5000'),
  ],
  [
    'train-plan my.yaml --lr_decay_iters=5000 --max_iters=5000',
    is('train-plan my.yaml --steps 5000 …', 'train-plan my.yaml --decay 5000 --steps 5000'),
  ],
  [
    'train-plan my.yaml --sequence_len 128 --micro_batch_size 2',
    is('train-plan my.yaml --context 128 --batch 2'),
  ],
  [
    'train-plan my.yaml --max_seq_len 128 --accumulation_steps 8',
    is('train-plan my.yaml --context 128 --accumulation 8'),
  ],
  [
    'train-plan my.yaml --zero_stage 2 --gpus 8 --gpu h100',
    is('train-plan my.yaml --zero 2 --gpus 8 --gpu h100'),
  ],
  [
    'train-plan my.yaml --nproc_per_node=8 --gpu h100',
    is('train-plan my.yaml --gpus 8 --gpu h100'),
  ],
  ['train-plan my.yaml --num_processes 8 --gpu h100', is('train-plan my.yaml --gpus 8 --gpu h100')],
  [
    'train-plan my.yaml --seq-length 128 --train-iters 500 --lr-warmup-iters 50',
    is('train-plan my.yaml --context 128 --steps 500 --warmup 50'),
  ],
  [
    'fit my.yaml --gpu h100 --gpus 8 --zero_stage 3',
    is('fit my.yaml --gpu h100 --gpus 8 --zero 3 …'),
  ],
  [
    'fit my.yaml --gpu h100 --gpus 8 --zero_stage 3 --gradient_accumulation_steps 8',
    is('fit my.yaml --gpu h100 --gpus 8 --zero 3 --accumulation 8 …'),
  ],
  [
    'fit my.yaml --gpu h100 --per_device_train_batch_size 4 --bf16',
    is('fit my.yaml --gpu h100 --micro-batch 4 --precision mixed …'),
  ],
  [
    'fit my.yaml --gpu h100 --bf16 true --for training',
    is('fit my.yaml --gpu h100 --precision mixed --for training'),
  ],
  [
    'fit my.yaml --gpu h100 --gradient_checkpointing --per_device_train_batch_size 2',
    is('fit my.yaml --gpu h100 --recompute full --micro-batch 2 …'),
  ],
  [
    'fit my.yaml --gpu h100 --optim adamw_bnb_8bit',
    is('fit my.yaml --gpu h100 --optimizer adamw-8bit …'),
  ],
  [
    'fit my.yaml --gpu h100 --optim paged_adamw_8bit --gradient_checkpointing true',
    is('fit my.yaml --gpu h100 --optimizer paged-adamw-8bit --recompute full …'),
  ],
  [
    'fit my.yaml --gpu h100 --gpus 8 --fsdp full_shard',
    is('fit my.yaml --gpu h100 --gpus 8 --zero 3 …'),
  ],
  [
    'fit my.yaml --gpu h100 --mixed_precision bf16 --num_processes 4',
    is('fit my.yaml --gpu h100 --precision mixed --gpus 4 …'),
  ],
  [
    'fit my.yaml --gpu h100 --attn_implementation flash_attention_2',
    is('fit my.yaml --gpu h100 --attention fused …'),
  ],
  [
    'fit my.yaml --gpu h100 --gpus 8 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --for training',
    is('fit my.yaml --gpu h100 --gpus 8 --tensor-parallel 2 --pipeline-parallel 2 --for training'),
  ],
  [
    'fit my.yaml --gpu h100 --micro-batch-size 4 --recompute-activations',
    is(
      'fit my.yaml --gpu h100 --micro-batch 4 --recompute full …',
      'fit my.yaml --gpu h100 --micro-batch 4 --recompute selective …',
    ),
  ],
  [
    'finetune my.yaml --epochs 3 --data-tokens 1M',
    is('train-plan my.yaml --epochs 3 --data-tokens 1M'),
  ],
  ['pretrain my.yaml --max_steps 1000', is('train-plan my.yaml --steps 1000')],
  ['train --config my.yaml --max_steps 1000', is('train-plan my.yaml --steps 1000')],
  [
    'train my.yaml --batch_size 4 --learning_rate 5e-4',
    is('train-plan my.yaml --batch 4 --lr 5e-4'),
  ],
  ['quick-test my.yaml --seq_len 32 --trace true', is('quick-test my.yaml --context 32 --trace')],
  ['profile my.yaml --n_layer 4 --n_embd 64', says('--set')],
  ['profile my.yaml --batch_size 4 --seq_len 128', is('profile my.yaml --batch 4 --context 128')],
];

/** Text: generate, evaluate, lm-eval, data. */
const TEXT: readonly Guess[] = [
  ['run hf --ids 1,2,3', is('generate hf --ids 1,2,3')],
  ['chat hf --ids 1,2,3', is('generate hf --ids 1,2,3 …')],
  ['generate hf --ids 1,2,3 --max_new_tokens 4', is('generate hf --ids 1,2,3 --max-tokens 4')],
  [
    'generate hf --ids 1,2,3 --max_new_tokens 4 --do_sample false',
    is('generate hf --ids 1,2,3 --max-tokens 4 --greedy'),
  ],
  [
    'generate hf --ids 1,2,3 -n 4 --temp 0.7',
    is('generate hf --ids 1,2,3 --max-tokens 4 --temperature 0.7'),
  ],
  ['generate hf --ids 1,2,3 --num_predict 4', is('generate hf --ids 1,2,3 --max-tokens 4')],
  [
    'generate hf --ids 1,2,3 --n-predict 4 --repeat-penalty 1.1 --top_k 40',
    is('generate hf --ids 1,2,3 --max-tokens 4 --repetition-penalty 1.1 --top-k 40'),
  ],
  ['generate -m hf --ids 1,2,3 -n 4', is('generate hf --ids 1,2,3 --max-tokens 4')],
  [
    'generate hf --ids 1,2,3 --max-length 4',
    is('generate hf --ids 1,2,3 --max-tokens 4', 'generate hf --ids 1,2,3 --context 4'),
  ],
  ['generate --model_name_or_path hf --ids 1,2,3', is('generate hf --ids 1,2,3')],
  ['complete hf --ids 1,2,3 --max_tokens 4', is('generate hf --ids 1,2,3 --max-tokens 4')],
  ['inference hf --ids 1,2,3', is('generate hf --ids 1,2,3')],
  [
    'sample hf --ids 1,2,3 --max_new_tokens 4 --top_p 0.9',
    is('generate hf --ids 1,2,3 --max-tokens 4 --top-p 0.9'),
  ],
  ['perplexity hf --ids 1,2,3,4', is('evaluate hf --ids 1,2,3,4')],
  ['ppl -m hf --ids 1,2,3,4', is('evaluate hf --ids 1,2,3,4')],
  ['perplexity -m hf -f text.txt -c 64', is('evaluate hf --text text.txt --context 64')],
  ['eval hf --ids 1,2,3,4 --ctx-size 4', is('evaluate hf --ids 1,2,3,4 --context 4')],
  ['evaluate --model hf --ids 1,2,3,4', is('evaluate hf --ids 1,2,3,4')],
  ['evaluate hf --tasks hellaswag', says('--text')],
  ['lm_eval --model hf --tasks mmlu', says('--text')],
  ['evaluate hf --ids 1,2,3,4 --device cuda:0 --engine onnx', says('cuda')],
  ['evaluate --model_args pretrained=hf --ids 1,2,3,4', is('evaluate hf --ids 1,2,3,4')],
  ['bench hf', is('quick-test hf …')],
  ['test hf', is('quick-test hf')],
  ['test my.yaml --trace', is('quick-test my.yaml --trace')],
  ['count-tokens data.jsonl --tokenizer tokenizer', is('data data.jsonl --tokenizer tokenizer')],
  ['tokenize data.jsonl --tokenizer tokenizer', is('data data.jsonl --tokenizer tokenizer')],
  [
    'count-tokens data.jsonl --tokenizer_path tokenizer --max_length 64',
    is('data data.jsonl --tokenizer tokenizer --context 64'),
  ],
  ['preprocess data.jsonl --tokenizer tokenizer', is('data data.jsonl --tokenizer tokenizer')],
  ['data --input data.jsonl --tokenizer tokenizer', is('data data.jsonl --tokenizer tokenizer')],
  [
    'data --data_path data.jsonl --tokenizer tokenizer --max_seq_len 64',
    is('data data.jsonl --tokenizer tokenizer --context 64'),
  ],
];

/** Conversions and files. */
const FILES: readonly Guess[] = [
  [
    'convert old.pt new.safetensors --dry-run',
    is('convert-checkpoint old.pt new.safetensors --dry-run'),
  ],
  [
    'convert --input old.pt --output new.safetensors --dry-run',
    is('convert-checkpoint old.pt new.safetensors --dry-run'),
  ],
  [
    'quantize hf hf-int8 --bits 8 --dry-run',
    is('convert-checkpoint hf hf-int8 --quantize int8 --dry-run'),
  ],
  [
    'quantize hf hf-int8 int8 --dry-run',
    is('convert-checkpoint hf hf-int8 --quantize int8 --dry-run'),
  ],
  [
    'quantize hf hf-int4 --dtype int4 --dry-run',
    is('convert-checkpoint hf hf-int4 --quantize int4 --dry-run'),
  ],
  [
    'quantize hf out.gguf Q8_0 --dry-run',
    is('convert-checkpoint hf out.gguf --dtype q8_0 --dry-run'),
  ],
  [
    'quantize hf out.gguf q4_k_m --dry-run',
    is('convert-checkpoint hf out.gguf --dtype q4_k_m --dry-run'),
  ],
  [
    'llama-quantize hf out.gguf Q5_K_S --dry-run',
    is('convert-checkpoint hf out.gguf --dtype q5_k_s --dry-run'),
  ],
  ['convert-checkpoint hf out.gguf --dtype iq4_xs --dry-run', says('q4_k_m', 'not written')],
  [
    'convert hf out.gguf --outtype q8_0 --dry-run',
    is('convert-checkpoint hf out.gguf --dtype q8_0 --dry-run'),
  ],
  [
    'convert hf --outfile out.gguf --outtype f16 --dry-run',
    is('convert-checkpoint hf out.gguf --dtype f16 --dry-run'),
  ],
  [
    'convert-hf-to-gguf hf --outfile out.gguf --dry-run',
    is('convert-checkpoint hf out.gguf --dry-run'),
  ],
  [
    'merge-lora hf lora merged --dry-run',
    is('convert-checkpoint hf merged --merge-lora lora --dry-run'),
  ],
  [
    'merge-lora --base_model hf --adapter lora --output merged --dry-run',
    is('convert-checkpoint hf merged --merge-lora lora --dry-run'),
  ],
  [
    'merge hf lora merged --dry-run',
    is('convert-checkpoint hf merged --merge-lora lora --dry-run'),
  ],
  [
    'shard hf sharded --max_shard_size 1MB --dry-run',
    is('convert-checkpoint hf sharded --shard-size 1MB --dry-run'),
  ],
  [
    'convert-checkpoint hf sharded --max-shard-size 1MB --dry-run',
    is('convert-checkpoint hf sharded --shard-size 1MB --dry-run'),
  ],
  [
    'zero_to_fp32 zero out.safetensors --dry-run',
    is(
      'convert-checkpoint zero out.safetensors --dry-run',
      'convert-checkpoint zero out.safetensors --dtype f32 --dry-run',
    ),
  ],
  [
    'zero_to_fp32.py zero out.pt --dry-run',
    is(
      'convert-checkpoint zero out.pt --dry-run',
      'convert-checkpoint zero out.pt --dtype f32 --dry-run',
    ),
  ],
  ['convert-checkpoint hf model.onnx', is('export hf --save model.onnx')],
  ['convert hf model.onnx', is('export hf --save model.onnx')],
  ['export hf model.onnx', is('export hf --save model.onnx')],
  ['export hf -o model.onnx', is('export hf --save model.onnx')],
  ['export --model hf model.onnx', is('export hf --save model.onnx')],
  ['export hf --save model.gguf', is('convert-checkpoint hf model.gguf')],
  ['export hf -o model.gguf', is('convert-checkpoint hf model.gguf')],
  ['export hf --format onnx', is('export hf --save model.onnx …')],
  ['onnx hf', is('export hf --save model.onnx …')],
  ['netron hf', is('profile hf --tensors', 'inspect hf --tensors')],
  ['netron old.pt', is('inspect old.pt --tensors', 'profile old.pt --tensors')],
  ['draw my.yaml', AS_IT_IS],
  ['visualize my.yaml', is('draw my.yaml')],
  ['torchview my.yaml', is('draw my.yaml')],
  ['inspect old.pt --keys', is('inspect old.pt --tensors')],
  ['inspect --file old.pt', is('inspect old.pt')],
  ['inspect hf --filter embed', is('inspect hf --filter *embed*')],
  ['diff my.yaml other.yaml', AS_IT_IS],
  ['params my.yaml', is('profile my.yaml')],
  ['summary my.yaml', is('profile my.yaml')],
  ['flops my.yaml', is('profile my.yaml')],
  ['profile my.yaml --flops', { says: ['minimind profile my.yaml'], never: ['--max-flops'] }],
  ['profile my.yaml --params', { says: ['minimind profile my.yaml'], never: ['--max-params'] }],
  ['profile my.yaml --memory', { says: ['minimind profile my.yaml'], never: ['--max-memory'] }],
];

/** Models by the names of the hub, of Ollama, and of speech. */
const MODELS: readonly Guess[] = [
  ['profile microsoft/phi-2', AS_IT_IS],
  ['profile Qwen/Qwen3-0.6B', AS_IT_IS],
  ['profile meta-llama/Llama-3.2-1B-Instruct', AS_IT_IS],
  ['profile HuggingFaceTB/SmolLM2-135M', AS_IT_IS],
  ['profile openai-community/gpt2', AS_IT_IS],
  ['profile google/gemma-3-270m', AS_IT_IS],
  ['profile openai/gpt-oss-20b', AS_IT_IS],
  ['profile https://huggingface.co/Qwen/Qwen3-0.6B', AS_IT_IS],
  ['profile qwen3:0.6b', AS_IT_IS],
  ['profile llama3.2:1b', AS_IT_IS],
  ['profile smollm2:135m', AS_IT_IS],
  ['profile "llama 3.2 1b"', AS_IT_IS],
  ['profile "Qwen3 0.6B"', AS_IT_IS],
  ['profile gpt2-small', AS_IT_IS],
  ['profile qwen3:8b', AS_IT_IS],
  ['profile "llama3 8b"', AS_IT_IS],
  ['profile llama3 8b', is('profile llama3-8b')],
  ['profile TinyLlama', AS_IT_IS],
  ['profile phi-4', AS_IT_IS],
  ['profile mistral-7b', AS_IT_IS],
  ['profile gpt2-xl', AS_IT_IS],
  ['profile deepseek-r1', AS_IT_IS],
  ['profile mistralai/Mistral-7B-v0.1', AS_IT_IS],
  ['profile qwen3', AS_IT_IS],
  ['profile pythia', { says: ['pythia-1.4b', 'pythia-12b'], never: ['did you mean'] }],
  ['profile phi-5', { says: ['minimind list'], never: ['phi-4', 'phi-2'] }],
  ['profile kimi-k2', AS_IT_IS],
  ['profile vicuna', { says: ['not built in', 'hf:lmsys/vicuna-7b'], never: ['did you mean'] }],
  ['profile llama', { says: ['llama-3.2-1b', 'smollm2-135m'] }],
];

/** Cards as drivers and clouds print them, and as people say them. */
const CARDS: readonly Guess[] = [
  ['fit my.yaml --gpu "NVIDIA H100 80GB HBM3"', says('H100 SXM5 80 GB')],
  ['fit my.yaml --gpu "NVIDIA A100-SXM4-80GB"', says('A100')],
  ['fit my.yaml --gpu "NVIDIA GeForce RTX 4090"', AS_IT_IS],
  ['fit my.yaml --gpu "Tesla V100-SXM2-16GB"', AS_IT_IS],
  ['fit my.yaml --gpu "NVIDIA RTX 6000 Ada Generation"', AS_IT_IS],
  ['fit my.yaml --gpu "AMD Instinct MI300X"', AS_IT_IS],
  ['fit my.yaml --gpu "NVIDIA A100 80GB PCIe"', AS_IT_IS],
  ['fit my.yaml --gpu 4090x2', says('2 ×')],
  ['fit my.yaml --gpu h100:8', says('8 ×')],
  ['fit my.yaml --gpu "2 4090"', says('2 ×')],
  ['fit my.yaml --gpu "colab T4"', AS_IT_IS],
  ['fit my.yaml --gpu "kaggle 2xT4"', says('2 ×')],
  ['fit my.yaml --gpu g5.xlarge', says('A10G')],
  ['fit my.yaml --gpu macbook', { says: ['m4-', 'm3-', 'm2-'], never: ['did you mean'] }],
  ['fit my.yaml --gpu "M2 Pro"', AS_IT_IS],
  ['fit my.yaml --gpu "laptop 4060"', says('RTX 4060 Laptop')],
  ['fit my.yaml --gpu 4060', says('rtx-4060-ti-16gb')],
  ['fit my.yaml --gpu "GTX 980 Ti"', { says: ['--hardware'], never: ['1080', '2080'] }],
  [
    'fit my.yaml --gpus h100:8',
    is('fit my.yaml --gpu h100:8', 'fit my.yaml --gpu 8xh100', 'fit my.yaml --gpu h100 --gpus 8'),
  ],
  ['fit my.yaml h100 8', is('fit my.yaml --gpu h100 --gpus 8')],
];

export const GUESSES: readonly Guess[] = [
  ...OWN,
  ...SERVING,
  ...TRAINING,
  ...TEXT,
  ...FILES,
  ...MODELS,
  ...CARDS,
];
