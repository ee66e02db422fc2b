/**
 * Lines as in the documentation of other tools, each with the tool and what is right. They were written before any of
 * them was run.
 */
import type { Guess, Right, Saying } from './guesses.js';

const AS_IT_IS = 'as it is';

const is = (...lines: string[]): readonly string[] => lines;

const says = (...texts: string[]): Saying => ({ says: texts });

const LINES: readonly (readonly [tool: string, line: string, right: Right])[] = [
  // ollama/ollama: docs/modelfile.md, cmd/cmd.go
  ['ollama', 'show llama3.2:1b --parameters', is('profile llama3.2:1b')],
  [
    'ollama',
    'fit llama3.2:1b --num_ctx 4096 --num_gpu 99 --gpu 4090',
    is('fit llama3.2:1b --context 4096 --gpu 4090'),
  ],
  [
    'ollama',
    'generate hf --ids 1,2,3 --num_thread 2 --num_predict 4',
    is('generate hf --ids 1,2,3 --threads 2 --max-tokens 4'),
  ],
  ['ollama', 'ollama list', is('list')],
  ['ollama', 'ollama show qwen3:0.6b', is('profile qwen3:0.6b')],

  // ggml-org/llama.cpp: README.md, tools/*/README.md
  [
    'llama.cpp',
    'llama-server -m llama-3.2-1b -c 8192 -ngl 99 --port 8080 --gpu 4090',
    is('fit llama-3.2-1b --context 8192 --gpu 4090 …'),
  ],
  [
    'llama.cpp',
    'llama-cli -m hf --ids 1,2,3 -n 8 --temp 0 --seed 1',
    is('generate hf --ids 1,2,3 --max-tokens 8 --temperature 0 --seed 1'),
  ],
  [
    'llama.cpp',
    'llama-bench -m hf -p 32 -n 8',
    is('quick-test hf --only timing --context 32 --output-tokens 8'),
  ],
  [
    'llama.cpp',
    'llama-quantize hf out.gguf Q4_0 --dry-run',
    is('convert-checkpoint hf out.gguf --dtype q4_0 --dry-run'),
  ],
  [
    'llama.cpp',
    'convert-checkpoint hf out.gguf Q4_K_M --dry-run',
    is('convert-checkpoint hf out.gguf --dtype q4_k_m --dry-run'),
  ],
  [
    'llama.cpp',
    'convert-checkpoint hf out.gguf --dtype q4_k_m --pure --dry-run',
    is('convert-checkpoint hf out.gguf --dtype q4_k --dry-run'),
  ],
  [
    'llama.cpp',
    'llama-perplexity -m hf -f text.txt -c 64 -b 64',
    is('evaluate hf --text text.txt --context 64'),
  ],
  [
    'llama.cpp',
    'fit llama-3.2-1b --gpu 4090 -c 8192 -b 2048 -ub 512',
    is('fit llama-3.2-1b --gpu 4090 --context 8192'),
  ],
  [
    'llama.cpp',
    'fit llama-3.2-1b --gpu 4090 --flash-attn on --mlock --no-mmap --parallel 4',
    is(
      'fit llama-3.2-1b --gpu 4090 --attention fused --users 4',
      'fit llama-3.2-1b --gpu 4090 --users 4',
    ),
  ],
  [
    'llama.cpp',
    'gguf-split --split-max-size 1MB hf sharded --dry-run',
    is('convert-checkpoint hf sharded --shard-size 1MB --dry-run'),
  ],
  [
    'llama.cpp',
    'convert_hf_to_gguf.py hf --outfile out.gguf --outtype bf16 --dry-run',
    is('convert-checkpoint hf out.gguf --dtype bf16 --dry-run'),
  ],
  [
    'llama.cpp',
    'llama-export-lora -m hf --lora lora -o merged --dry-run',
    is('convert-checkpoint hf merged --merge-lora lora --dry-run'),
  ],
  [
    'llama.cpp',
    'fit llama-3.2-1b --gpu 4090 --n-gpu-layers all --ctx-size 16384 --cache-type-k q8_0 --cache-type-v q8_0',
    is('fit llama-3.2-1b --gpu 4090 --context 16384 --cache-dtype q8_0'),
  ],

  // vllm-project/vllm: docs, "Engine Arguments", "vllm serve", "vllm bench latency"
  [
    'vllm',
    'vllm serve qwen3-0.6b --max-model-len 4096 --enforce-eager --gpu l4',
    is('fit qwen3-0.6b --context 4096 --gpu l4 …'),
  ],
  [
    'vllm',
    'vllm serve qwen3-0.6b --tensor-parallel-size 2 --enable-prefix-caching --served-model-name q --gpu h100',
    is('fit qwen3-0.6b --tensor-parallel 2 --gpu h100 …'),
  ],
  [
    'vllm',
    'vllm bench latency --model hf --input-len 32 --output-len 8 --batch-size 2',
    is('quick-test hf --only timing --context 32 --output-tokens 8 --batch 2'),
  ],
  [
    'vllm',
    'serve qwen3-0.6b -tp 2 --gpu h100',
    is('fit qwen3-0.6b --tensor-parallel 2 --gpu h100 …'),
  ],
  [
    'vllm',
    'serve qwen3-0.6b --max-num-batched-tokens 8192 --gpu l4',
    is('fit qwen3-0.6b --gpu l4'),
  ],
  [
    'vllm',
    'serve qwen3-0.6b --swap-space 4 --block-size 16 --gpu l4',
    is('fit qwen3-0.6b --gpu l4'),
  ],
  [
    'vllm',
    'serve qwen3-0.6b --load-format safetensors --trust-remote-code --gpu l4',
    is('fit qwen3-0.6b --gpu l4'),
  ],
  [
    'vllm',
    'serve qwen3-0.6b --quantization gptq --max-model-len 4k --gpu l4',
    is('fit qwen3-0.6b --dtype gptq --context 4k --gpu l4'),
  ],
  [
    'vllm',
    'serve qwen3-0.6b --data-parallel-size 2 --gpu h100',
    is('fit qwen3-0.6b --dp-attention 2 --gpu h100'),
  ],

  // sgl-project/sglang: docs, "Server Arguments"; text-generation-inference: docs, "launcher"
  [
    'sglang',
    'sglang serve --model-path qwen3-0.6b --tp-size 2 --chunked-prefill-size 4096 --gpu h100',
    is('fit qwen3-0.6b --tensor-parallel 2 --gpu h100 …'),
  ],
  [
    'sglang',
    'serve --model qwen3-0.6b --context-length 4096 --attention-backend flashinfer --gpu h100',
    is(
      'fit qwen3-0.6b --context 4096 --gpu h100',
      'fit qwen3-0.6b --context 4096 --attention fused --gpu h100',
    ),
  ],
  [
    'tgi',
    'text-generation-launcher --model-id qwen3-0.6b --num-shard 2 --max-total-tokens 2048 --gpu h100',
    is('fit qwen3-0.6b --tensor-parallel 2 --context 2048 --gpu h100 …'),
  ],

  // huggingface/transformers: TrainingArguments, GenerationConfig, BitsAndBytesConfig
  [
    'transformers',
    'train-plan my.yaml --num_train_epochs 3 --per_device_train_batch_size 8 --learning_rate 2e-5 --weight_decay 0.01 --warmup_steps 50 --data_tokens 1M',
    is(
      'train-plan my.yaml --epochs 3 --batch 8 --lr 2e-5 --weight-decay 0.01 --warmup 50 --data-tokens 1M',
    ),
  ],
  [
    'transformers',
    'train-plan my.yaml --output_dir out --logging_steps 10 --save_steps 500 --max_steps 1000',
    is('train-plan my.yaml --steps 1000'),
  ],
  [
    'transformers',
    'train-plan my.yaml --lr_scheduler_type linear --max_steps 1000 --eval_strategy steps',
    is('train-plan my.yaml --schedule linear --steps 1000'),
  ],
  [
    'transformers',
    'fit my.yaml --gpu a100-80gb --fp16 --gradient_accumulation_steps 4 --optim adamw_torch_fused --for training',
    is(
      'fit my.yaml --gpu a100-80gb --precision mixed --accumulation 4 --optimizer adamw-fused --for training',
    ),
  ],
  [
    'transformers',
    'generate hf --ids 1,2,3 --max_new_tokens 4 --num_beams 1 --do_sample True --top_p 0.9 --temperature 0.8',
    is('generate hf --ids 1,2,3 --max-tokens 4 --top-p 0.9 --temperature 0.8'),
  ],
  [
    'transformers',
    'generate hf --ids 1,2,3 --max_new_tokens 4 --pad_token_id 0',
    is('generate hf --ids 1,2,3 --max-tokens 4'),
  ],
  [
    'transformers',
    'fit llama-3.2-1b --gpu 4090 --torch_dtype bfloat16 --device_map auto',
    is('fit llama-3.2-1b --gpu 4090 --dtype bf16', 'fit llama-3.2-1b --gpu 4090 --dtype bfloat16'),
  ],
  [
    'transformers',
    'fit llama-3.2-1b --gpu 4090 --load_in_4bit True --bnb_4bit_use_double_quant True --bnb_4bit_quant_type nf4',
    is('fit llama-3.2-1b --gpu 4090 --dtype int4'),
  ],
  [
    'accelerate',
    'accelerate estimate-memory meta-llama/Llama-3.2-1B --dtypes float16',
    is('fit meta-llama/Llama-3.2-1B --dtype float16'),
  ],

  // axolotl: docs, "Config Reference", "CLI"; LLaMA-Factory: hparams, cli.py; unsloth-cli.py
  ['axolotl', 'axolotl train my.yaml', is('train-plan my.yaml')],
  [
    'axolotl',
    'train-plan my.yaml --sequence_len 128 --micro_batch_size 2 --gradient_accumulation_steps 4 --num_epochs 1 --data-tokens 1M --lr_scheduler cosine --learning_rate 0.0002 --sample_packing true --flash_attention true',
    is(
      'train-plan my.yaml --context 128 --batch 2 --accumulation 4 --epochs 1 --data-tokens 1M --schedule cosine --lr 0.0002',
    ),
  ],
  ['llama-factory', 'llamafactory-cli train my.yaml', is('train-plan my.yaml')],
  [
    'llama-factory',
    'llamafactory-cli export --model_name_or_path hf --adapter_name_or_path lora --export_dir merged --dry-run',
    is('convert-checkpoint hf merged --merge-lora lora --dry-run'),
  ],
  [
    'llama-factory',
    'train-plan my.yaml --cutoff_len 128 --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --stage sft',
    is('train-plan my.yaml --context 128 --batch 1 --accumulation 8'),
  ],
  [
    'unsloth',
    'fit my.yaml --gpu 4090 --max_seq_length 128 --use_gradient_checkpointing unsloth --for training',
    is('fit my.yaml --gpu 4090 --context 128 --recompute full --for training'),
  ],

  // DeepSpeed: docs, "DeepSpeed Configuration JSON"; FSDP: accelerate launch; Megatron-LM: arguments.py
  [
    'deepspeed',
    'fit my.yaml --gpu h100 --gpus 8 --stage 2 --train_micro_batch_size_per_gpu 4 --gradient_accumulation_steps 8',
    is('fit my.yaml --gpu h100 --gpus 8 --zero 2 --micro-batch 4 --accumulation 8 …'),
  ],
  ['deepspeed', 'fit my.yaml --gpu h100 --gpus 8 --deepspeed ds_z3_config.json', says('--zero')],
  [
    'accelerate',
    'fit my.yaml --gpu h100 --gpus 8 --fsdp_sharding_strategy FULL_SHARD',
    is('fit my.yaml --gpu h100 --gpus 8 --zero 3 …'),
  ],
  [
    'fsdp',
    'fit my.yaml --gpu h100 --gpus 8 --sharding_strategy SHARD_GRAD_OP --for training',
    is('fit my.yaml --gpu h100 --gpus 8 --zero 2 --for training'),
  ],
  [
    'megatron',
    'fit my.yaml --gpu h100 --gpus 8 --tensor-model-parallel-size 2 --sequence-parallel --micro-batch-size 1 --seq-length 128 --global-batch-size 64 --recompute-granularity full --for training',
    is(
      'fit my.yaml --gpu h100 --gpus 8 --tensor-parallel 2 --sequence-parallel --micro-batch 1 --context 128 --global-batch 8192 --recompute full --for training',
    ),
  ],
  [
    'megatron',
    'train-plan my.yaml --train-iters 1000 --lr 1e-4 --min-lr 1e-5 --lr-decay-style cosine --lr-warmup-fraction 0.01',
    is('train-plan my.yaml --steps 1000 --lr 1e-4 --min-lr 1e-5 --schedule cosine --warmup 0.01'),
  ],
  ['megatron', 'profile my.yaml --num-layers 4 --hidden-size 64', says('--set')],

  // karpathy/nanoGPT: README.md
  [
    'nanogpt',
    'train-plan my.yaml --batch_size=12 --block_size=128 --max_iters=2000 --dropout=0.0 --device=cpu --compile=False --eval_iters=20 --log_interval=1',
    is('train-plan my.yaml --batch 12 --context 128 --steps 2000'),
  ],
  [
    'nanogpt',
    'sample hf --num_samples 1 --max_new_tokens 4 --ids 1,2,3 --top_k 200',
    is('generate hf --max-tokens 4 --ids 1,2,3 --top-k 200'),
  ],

  // EleutherAI/lm-evaluation-harness: docs/interface.md
  [
    'lm-eval',
    'lm_eval --model hf --model_args pretrained=hf,dtype=float32 --tasks wikitext --batch_size 8',
    says('--text'),
  ],
  [
    'lm-eval',
    'lm-eval --model_args pretrained=hf --ids 1,2,3,4 --device cpu --batch_size 1',
    is('evaluate hf --ids 1,2,3,4 --device cpu'),
  ],

  // torchtune: docs, "tune CLI"; huggingface_hub: docs, "CLI"; mlx-lm: README.md; optimum: docs, "export"
  ['torchtune', 'tune ls', is('list')],
  [
    'torchtune',
    'tune download meta-llama/Llama-3.2-1B-Instruct',
    says('hf download meta-llama/Llama-3.2-1B-Instruct'),
  ],
  [
    'torchtune',
    'train-plan my.yaml batch_size=4 gradient_accumulation_steps=8',
    is('train-plan my.yaml --batch 4 --accumulation 8'),
  ],
  ['hub', 'huggingface-cli download Qwen/Qwen3-0.6B', says('hf download Qwen/Qwen3-0.6B')],
  [
    'mlx',
    'mlx_lm.convert --hf-path hf -q --mlx-path out --dry-run',
    is('convert-checkpoint hf out --quantize int4 --dry-run'),
  ],
  [
    'mlx',
    'mlx_lm.generate --model hf --ids 1,2,3 --max-tokens 4 --temp 0.5',
    is('generate hf --ids 1,2,3 --max-tokens 4 --temperature 0.5'),
  ],
  ['optimum', 'optimum-cli export onnx --model hf model.onnx', is('export hf --save model.onnx')],

  // Models by name
  ['name', 'profile meta-llama/Llama-3.1-8B-Instruct', AS_IT_IS],
  ['name', 'profile mistral', AS_IT_IS],
  ['name', 'profile "Gemma 3 270M"', AS_IT_IS],
  ['name', 'profile phi3:mini', AS_IT_IS],
  ['name', 'profile llama3.1:70b-instruct-q4_K_M', says('llama/llama-3.1-70b --dtype q4_K_M')],
  ['name', 'profile qwen3-coder:30b', AS_IT_IS],
  ['name', 'profile deepseek-r1:7b', AS_IT_IS],
  ['name', 'fit "Llama 3.3 70B" --gpu h100', AS_IT_IS],

  // Cards
  ['card', 'fit my.yaml --gpu "NVIDIA L40S"', AS_IT_IS],
  [
    'card',
    'fit my.yaml --gpu "NVIDIA GeForce RTX 3060 Laptop GPU"',
    { says: ['aptop'], never: ['did you mean'] },
  ],
  ['card', 'fit my.yaml --gpu p4d.24xlarge', says('A100')],
  ['card', 'fit my.yaml --gpu a2-highgpu-1g', says('A100')],
  ['card', 'fit my.yaml --gpu "Apple M3 Max"', AS_IT_IS],
  ['card', 'fit my.yaml --gpu "NVIDIA B200"', AS_IT_IS],
  ['card', 'fit my.yaml --gpu Standard_NC24ads_A100_v4', says('A100')],
  ['card', 'fit my.yaml --gpu 3090ti', says('3090')],
  ['card', 'fit my.yaml --gpu "Tesla T4"', AS_IT_IS],
  ['card', 'fit my.yaml --gpu "2x RTX 3090"', says('2 ×')],
];

export const TOOL_GUESSES: readonly Guess[] = LINES.map(([, line, right]) => [line, right]);
