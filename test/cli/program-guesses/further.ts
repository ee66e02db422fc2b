/**
 * Further lines of the same programs, written before any of them was run, after the first ones were understood: further
 * flags, and other orders of the same words.
 * Of a few, it was corrected afterwards: what depends on the machine, and lines that would not run.
 */
import type { Guess, Right, Saying } from '../guesses.js';

const AS_IT_IS = 'as it is';

const is = (...lines: string[]): readonly string[] => lines;

const says = (...texts: string[]): Saying => ({ says: texts });

const LINES: readonly (readonly [line: string, right: Right])[] = [
  // Serving.
  ['ollama run qwen3:8b "why is the sky blue" --gpu 4090', is('fit qwen3:8b --gpu 4090 …')],
  ['ollama serve --gpu 3060', is('fit --gpu 3060')],
  ['ollama rm llama3.2', says('no store')],
  [
    'ollama run hf.co/Qwen/Qwen3-8B-GGUF:Q4_K_M --gpu 4060',
    is('fit Qwen/Qwen3-8B --dtype Q4_K_M --gpu 4060'),
  ],
  [
    'llama-server --hf-repo ggml-org/gemma-3-4b-it-GGUF --ctx-size 8192 --gpu 4060',
    says('gemma-3-4b-it-GGUF', '--context 8192'),
  ],
  [
    'llama-server -m qwen3-8b -ngl auto -c 16k --parallel 2 -fa auto --gpu 4070',
    is('fit qwen3-8b --context 16k --users 2 --gpu 4070'),
  ],
  [
    'llama-server -m qwen3-235b-a22b --n-cpu-moe 60 --no-mmap --ram 192GB --gpu 5090 --dtype q4_k_m',
    is('fit qwen3-235b-a22b --cpu-experts 60 --ram 192GB --gpu 5090 --dtype q4_k_m'),
  ],
  [
    'llama-bench -m hf -p 32 -n 8 -t 2 -o md',
    is(
      'quick-test hf --only timing --context 32 --output-tokens 8 --threads 2 --format md',
      'quick-test hf --only timing --context 32 --output-tokens 8 --threads 2 --format markdown',
    ),
  ],
  ['llama-gguf old.pt r', is('inspect old.pt')],
  ['gguf_dump.py --json old.pt', is('inspect --json old.pt')],
  [
    'vllm serve qwen3-8b --dtype auto --max-model-len 8192 --gpu l4',
    is('fit qwen3-8b --context 8192 --gpu l4'),
  ],
  [
    'vllm serve qwen3-32b --tensor-parallel-size=2 --pipeline-parallel-size=1 --max-num-seqs=16 --gpu a6000',
    is('fit qwen3-32b --tensor-parallel 2 --pipeline-parallel 1 --batch 16 --gpu a6000 …'),
  ],
  [
    'vllm serve qwen3-8b --speculative-model qwen3-0.6b --num-speculative-tokens 5 --gpu a100',
    is('fit qwen3-8b --draft qwen3-0.6b --draft-tokens 5 --gpu a100 …'),
  ],
  [
    'vllm serve llama-3.1-8b --enable-lora --max-lora-rank 64 --gpu a10g',
    is('fit llama-3.1-8b --gpu a10g'),
  ],
  [
    'vllm serve qwen3-8b --max-model-len 32768 --rope-scaling \'{"rope_type":"yarn","factor":4.0}\' --gpu a100',
    is('fit qwen3-8b --context 32768 --gpu a100'),
  ],
  [
    'vllm serve deepseek-r1 --trust-remote-code -dp 8 --enable-expert-parallel --gpu 8xh200',
    is('fit deepseek-r1 --dp-attention 8 --expert-parallel all --gpu 8xh200'),
  ],
  ['uv run vllm serve qwen3-8b --gpu l40s', is('fit qwen3-8b --gpu l40s')],
  ['uvx vllm serve qwen3-8b --gpu l40s', is('fit qwen3-8b --gpu l40s')],
  [
    'docker run -it --rm --gpus \'"device=0,1"\' -e HF_TOKEN=x vllm/vllm-openai --model qwen3-32b -tp 2 --gpu a100',
    is('fit qwen3-32b --tensor-parallel 2 --gpu a100 --gpus 2'),
  ],
  [
    'docker run -d --gpus=all -v ollama:/root/.ollama -p 11434:11434 --name ollama ollama/ollama',
    is('fit', 'doctor', 'list'),
  ],
  [
    'docker run --gpus all ghcr.io/ggml-org/llama.cpp:server-cuda -m qwen3-8b -c 4096 --gpu 4090',
    is('fit qwen3-8b --context 4096 --gpu 4090'),
  ],
  [
    'python -m sglang.launch_server --model-path qwen3-8b --tp-size 2 --ep-size 2 --max-running-requests 64 --context-length 8192 --gpu h100 --gpus 2',
    says('--tensor-parallel 2', '--batch 64', '--context 8192', 'fit qwen3-8b'),
  ],
  [
    'python -m sglang_router.launch_server --model-path qwen3-8b --dp 2 --tp 2 --gpu h100',
    says('fit qwen3-8b', '--tensor-parallel 2'),
  ],
  [
    'text-generation-launcher --model-id qwen3-8b --sharded true --num-shard 2 --dtype bfloat16 --gpu a10g',
    is('fit qwen3-8b --tensor-parallel 2 --dtype bfloat16 --gpu a10g …'),
  ],
  ['text-generation-server serve qwen3-8b --gpu l4', is('fit qwen3-8b --gpu l4')],
  [
    'trtllm-serve qwen3-8b --backend pytorch --max_seq_len 8192 --free_gpu_memory_fraction 0.9 --gpu h100',
    is('fit qwen3-8b --context 8192 --gpu h100'),
  ],
  [
    'trtllm-bench --model qwen3-8b --model_path /models/q latency --concurrency 8 --gpu h100',
    is('fit qwen3-8b --users 8 --gpu h100'),
  ],
  [
    'lmdeploy serve api_server internlm/internlm2_5-7b-chat --server-port 23333 --gpu a100',
    says('internlm2_5-7b-chat', '--gpu a100'),
  ],
  [
    'lmdeploy lite auto_gptq hf --work-dir out --w-bits 4 --dry-run',
    is('convert-checkpoint hf out --quantize int4 --dry-run'),
  ],
  ['lms load qwen3-8b --gpu 0.5 --context-length 4096', is('fit qwen3-8b --context 4096')],
  ['lms get qwen/qwen3-8b@q4_k_m', says('Qwen/Qwen3-8B')],
  ['lms import model.gguf', says('no store')],
  ['lms status', is('doctor')],
  [
    'koboldcpp --model qwen3-8b --gpulayers -1 --contextsize 8192 --quantkv 2 --flashattention --gpu 3060',
    says('fit qwen3-8b', '--context 8192', '--cache-dtype q4_0', '--attention fused'),
  ],
  [
    'llamafile --server -m qwen3-8b --ctx-size 8192 --gpu 4060',
    is(
      'fit qwen3-8b --context 8192 --gpu 4060',
      'fit qwen3-8b --for serving --context 8192 --gpu 4060',
    ),
  ],
  [
    'mistralrs-server --isq q8_0 --port 1234 plain -m qwen3-8b --gpu 4090',
    is('fit qwen3-8b --dtype q8_0 --gpu 4090'),
  ],
  [
    'mistralrs serve --max-seq-len 8192 -m Qwen/Qwen3-8B --isq 8 --gpu 4090',
    is('fit Qwen/Qwen3-8B --context 8192 --dtype int8 --gpu 4090'),
  ],
  ['mistralrs tune -m Qwen/Qwen3-8B --gpu 4090', is('fit Qwen/Qwen3-8B --gpu 4090')],
  [
    'mistralrs quantize -m hf --isq 4 -o out --dry-run',
    is('convert-checkpoint hf out --quantize int4 --dry-run'),
  ],
  [
    'aphrodite run qwen3-8b --max-model-len 8192 --kv-cache-dtype fp8_e4m3 -gmu 0.9 --gpu 3090',
    is(
      'fit qwen3-8b --context 8192 --cache-dtype fp8_e4m3 --gpu-memory-utilization 0.9 --gpu 3090',
    ),
  ],
  [
    'python main.py --model-name qwen3-8b --max-seq-len 8192 --gpu 3090',
    is('fit qwen3-8b --context 8192 --gpu 3090'),
  ],
  [
    'python -m exllamav2.convert -i hf -o work -cf out -b 8.0 --dry-run',
    is('convert-checkpoint hf out --quantize int8 --dry-run'),
  ],
  ['kt run qwen3-30b-a3b --gpu 4090', is('fit qwen3-30b-a3b --gpu 4090 …')],
  ['gpustack deploy qwen3-8b --gpu 4090', is('fit qwen3-8b --gpu 4090')],
  [
    'genai-perf profile -m qwen3-8b --service-kind openai --request-rate 2 --synthetic-input-tokens-mean 200 --output-tokens-mean 100 --gpu l40s',
    is('fit qwen3-8b --qps 2 --prompt-tokens 200 --output-tokens 100 --gpu l40s'),
  ],
  [
    'vllm bench serve --model qwen3-8b --dataset-name random --random-input-len 1024 --random-output-len 128 --max-concurrency 16 --gpu h100',
    is('fit qwen3-8b --prompt-tokens 1024 --output-tokens 128 --users 16 --gpu h100'),
  ],

  // Training.
  [
    'swift sft --model my.yaml --train_type full --max_steps 100 --learning_rate 1e-5 --deepspeed zero3 --gpu h100 --gpus 8',
    is('train-plan my.yaml --steps 100 --lr 1e-5 --zero 3 --gpu h100 --gpus 8'),
  ],
  [
    'swift sft --model qwen3-8b --tuner_type lora --quant_bits 4 --quant_method bnb --lora_rank 16 --gpu 4090',
    is('fit qwen3-8b --for qlora --rank 16 --gpu 4090'),
  ],
  [
    'swift rollout --model qwen3-8b --vllm_tensor_parallel_size 2 --gpu a100',
    is('fit qwen3-8b --tensor-parallel 2 --gpu a100 …'),
  ],
  ['swift app --model hf --ids 1,2,3', is('generate hf --ids 1,2,3')],
  [
    'swift sample --model hf --ids 1,2,3 --max_new_tokens 4',
    is('generate hf --ids 1,2,3 --max-tokens 4'),
  ],
  ['unsloth train my.yaml --max-steps 60', is('train-plan my.yaml --steps 60')],
  [
    'tune run full_finetune_single_device --config my.yaml optimizer=bitsandbytes.optim.PagedAdamW8bit batch_size=4',
    says('train-plan my.yaml', '--batch 4'),
  ],
  [
    'tune run --nnodes 2 --nproc_per_node 8 lora_finetune_distributed --config qwen3-8b --gpu h100',
    is('fit qwen3-8b --for lora --gpu h100 --gpus 16'),
  ],
  ['tune run quantize --config hf', says('convert-checkpoint')],
  ['tune run qat_distributed --config my.yaml --gpu h100', is('train-plan my.yaml --gpu h100')],
  [
    'litgpt finetune qwen3-8b --train.max_steps 100 --train.global_batch_size 16 --train.micro_batch_size 2 --devices 4 --gpu a100',
    is('train-plan qwen3-8b --steps 100 --accumulation 2 --batch 2 --gpus 4 --gpu a100'),
  ],
  [
    'litgpt generate hf --ids 1,2,3 --temperature 0.8 --top_p 0.9 --max_new_tokens 4',
    is('generate hf --ids 1,2,3 --temperature 0.8 --top-p 0.9 --max-tokens 4'),
  ],
  ['litgpt merge_lora out/lora/final', says('--merge-lora')],
  ['litgpt evaluate hf --tasks hellaswag', says('--text')],
  ['mlx_lm.chat --model hf --ids 1,2,3', is('generate hf --ids 1,2,3')],
  [
    'mlx_lm.fuse --model hf --adapter-path lora --save-path merged --dequantize --dry-run',
    says('remove --dequantize'),
  ],
  ['mlx_lm.evaluate --model hf --task mmlu_pro', says('--text')],
  [
    'mlx_lm.convert --model hf -q --q-bits 8 --mlx-path out --dry-run',
    is('convert-checkpoint hf out --quantize int8 --dry-run'),
  ],
  [
    'python -m mlx_lm.lora --model qwen3-8b --train --batch-size 1 --gpu "m3 max 64gb"',
    is("fit qwen3-8b --for lora --micro-batch 1 --gpu 'm3 max 64gb'"),
  ],
  [
    'accelerate launch --config_file fsdp.yaml --num_processes=8 sft.py --model_name_or_path my.yaml --max_steps 10 --gpu h100',
    says('train-plan my.yaml', '--gpus 8', '--steps 10'),
  ],
  [
    'accelerate launch --mixed_precision=fp16 --num_processes=2 run_clm_no_trainer.py --model_name_or_path my.yaml --max_train_steps 100 --gpu t4',
    is('train-plan my.yaml --gpus 2 --steps 100 --gpu t4'),
  ],
  [
    'accelerate merge-weights zero out.safetensors --dry-run',
    is('convert-checkpoint zero out.safetensors --dry-run'),
  ],
  ['accelerate estimate-memory qwen3-8b --dtypes float16 int4', is('profile qwen3-8b --details')],
  [
    'deepspeed --num_gpus=8 run_clm.py --deepspeed ds_config_zero3.json --model_name_or_path my.yaml --max_steps 100 --gpu a100',
    is('train-plan my.yaml --gpus 8 --zero 3 --steps 100 --gpu a100'),
  ],
  [
    'torchrun --nproc_per_node=8 --master_port=1234 finetune.py --model_name_or_path my.yaml --bf16 True --num_train_epochs 3 --data-tokens 1M --fsdp "full_shard auto_wrap" --gpu a100',
    is('train-plan my.yaml --gpus 8 --epochs 3 --data-tokens 1M --zero 3 --gpu a100'),
  ],
  [
    'NCCL_P2P_DISABLE=1 torchrun --nproc_per_node 2 train.py my.yaml --gpu 4090',
    is('train-plan my.yaml --gpus 2 --gpu 4090'),
  ],
  [
    'srun --nodes=2 torchrun --nnodes=2 --nproc_per_node=4 train.py my.yaml --gpu a100',
    is('train-plan my.yaml --gpus 8 --gpu a100'),
  ],
  [
    'trl dpo --model_name_or_path qwen3-0.6b --use_peft --load_in_4bit --lora_r 16 --per_device_train_batch_size 2 --gpu 3060',
    is('fit qwen3-0.6b --for qlora --rank 16 --micro-batch 2 --gpu 3060'),
  ],
  [
    'axolotl train my.yaml --deepspeed deepspeed_configs/zero2.json --gpu h100 --gpus 4',
    is('train-plan my.yaml --zero 2 --gpu h100 --gpus 4'),
  ],
  ['axolotl quantize hf --dry-run', says('convert-checkpoint hf')],
  [
    'axolotl preprocess data.jsonl --tokenizer tokenizer',
    is('data data.jsonl --tokenizer tokenizer'),
  ],
  [
    'llamafactory-cli train --model_name_or_path my.yaml --cutoff_len 128 --num_train_epochs 3.0 --data-tokens 1M --lr_scheduler_type cosine --warmup_ratio 0.1 --bf16 true --flash_attn fa2',
    is(
      'train-plan my.yaml --context 128 --epochs 3.0 --data-tokens 1M --schedule cosine --warmup 0.1',
    ),
  ],
  [
    'python src/train.py --model_name_or_path my.yaml --max_steps 100',
    is('train-plan my.yaml --steps 100'),
  ],
  [
    'python train.py --config my.yaml --lr 1e-3 --steps 500',
    is('train-plan my.yaml --lr 1e-3 --steps 500'),
  ],

  // Conversions, evaluations, views.
  ['optimum-cli export onnx -m hf onnx_out/', is('export hf --save onnx_out.onnx')],
  ['python -m transformers.onnx --model=hf onnx/', is('export hf --save onnx.onnx')],
  ['torch.onnx.export hf model.onnx', is('export hf --save model.onnx')],
  [
    'python zero_to_fp32.py zero out.safetensors --dry-run',
    is('convert-checkpoint zero out.safetensors --dry-run'),
  ],
  ['mergekit-yaml merge.yaml out', says('minimind')],
  ['safetensors-info hf/model.safetensors', is('inspect hf/model.safetensors')],
  ['lm_eval --model hf --model_args pretrained=hf --tasks wikitext --batch_size 4', says('--text')],
  [
    'lm-eval --model hf --model_args pretrained=hf,trust_remote_code=True --ids 1,2,3,4 --device cpu',
    is('evaluate hf --ids 1,2,3,4 --device cpu', 'evaluate hf --ids 1,2,3,4'),
  ],
  ['hf download Qwen/Qwen3-8B config.json', says('hf download Qwen/Qwen3-8B')],
  ['git clone https://huggingface.co/Qwen/Qwen3-8B', says('hf download Qwen/Qwen3-8B')],
  ['torchinfo my.yaml', is('profile my.yaml --tensors')],
  ['calflops --model my.yaml --seq_len 128', is('profile my.yaml --context 128')],
  ['nvidia-smi', is('doctor')],

  // Our own.
  [
    'fit qwen3-8b --gpu 2x4090 --tp 2 --ctx 32k --kv q8_0 --n_users 8',
    is('fit qwen3-8b --gpu 2x4090 --tensor-parallel 2 --context 32k --cache-dtype q8_0 --users 8'),
  ],
  [
    'fit qwen3-8b --gpu=rtx4090 --num-ctx=8192 --quantization=q4_k_m',
    is('fit qwen3-8b --gpu rtx4090 --context 8192 --dtype q4_k_m'),
  ],
  ['fit qwen3-8b --device 4090', is('fit qwen3-8b --gpu 4090')],
  [
    'fit --model-id Qwen/Qwen3-8B --gpu-name "RTX 3090" --batch_size 4',
    is("fit Qwen/Qwen3-8B --gpu 'RTX 3090' --batch 4"),
  ],
  [
    'fit qwen3-8b --gpu 4090 --training --batch_size 2 --grad_accum 4 --optim adamw_8bit',
    is(
      'fit qwen3-8b --gpu 4090 --for training --micro-batch 2 --accumulation 4 --optimizer adamw-8bit',
    ),
  ],
  [
    'profile qwen3-8b --seqlen 2048 --bs 4 --precision bf16',
    says('profile qwen3-8b', '--context 2048', '--batch 4'),
  ],
  [
    'train-plan my.yaml --epochs=3 --bsz 8 --lr 3e-4 --warmup_ratio=0.05 --data_tokens=10M',
    is('train-plan my.yaml --epochs 3 --batch 8 --lr 3e-4 --warmup 0.05 --data-tokens 10M'),
  ],
  [
    'convert-checkpoint hf out.gguf --quant q4_k_m --dry-run',
    is('convert-checkpoint hf out.gguf --dtype q4_k_m --dry-run'),
  ],
  [
    'convert-checkpoint --model hf --outfile out.gguf --outtype q8_0 --dry_run',
    is('convert-checkpoint hf out.gguf --dtype q8_0 --dry-run'),
  ],
  [
    'generate hf --ids 1,2,3 --n_predict=4 --temp=0.7 --top_k=40 --repeat_penalty=1.1',
    is(
      'generate hf --ids 1,2,3 --max-tokens 4 --temperature 0.7 --top-k 40 --repetition-penalty 1.1',
    ),
  ],
  ['quick-test hf --batch_size=2 --max_seq_len=32 --device=cuda:0', says('cuda')],
  ['profile --pretrained_model_name_or_path Qwen/Qwen3-0.6B', is('profile Qwen/Qwen3-0.6B')],
  ['profile qwen3-8b --json --indent 2', says('minimind profile qwen3-8b --json')],
  ['list --family qwen3', says('qwen3')],
  ['fit qwen3-8b --list-devices', says('--list-gpus')],

  // Names and cards.
  ['profile qwen/qwen3-0.6b', AS_IT_IS],
  ['profile llama3.1', AS_IT_IS],
  ['profile mixtral:8x7b', AS_IT_IS],
  ['profile deepseek-r1:671b', AS_IT_IS],
  ['profile "Llama 3.1 8B Instruct"', AS_IT_IS],
  ['profile gemma3:4b', AS_IT_IS],
  ['profile Qwen3-30B-A3B-Instruct-2507', AS_IT_IS],
  ['profile hf.co/Qwen/Qwen3-0.6B', AS_IT_IS],
  ['fit my.yaml --gpu "NVIDIA RTX A6000"', AS_IT_IS],
  ['fit my.yaml --gpu "GeForce GTX 1660 Super"', AS_IT_IS],
  ['fit my.yaml --gpu "Radeon Instinct MI210"', AS_IT_IS],
  ['fit my.yaml --gpu a3-highgpu-8g', says('H100')],
  ['fit my.yaml --gpu "lambda 8xA100"', says('A100')],
  ['fit my.yaml --gpu "runpod h100"', says('H100')],
  ['fit my.yaml --gpu "Apple M2 Ultra"', AS_IT_IS],
  ['fit my.yaml --gpu "RTX PRO 6000 Blackwell"', AS_IT_IS],
  ['fit my.yaml --gpu tpu-v5e', says('v5e')],
  ['fit my.yaml --gpu "DGX Spark"', AS_IT_IS],

  // Sentences.
  ['how many gpus do i need for llama-3.3-70b', is('fit llama-3.3-70b')],
  ['how much memory to train qwen3-8b', is('train-plan qwen3-8b', 'fit qwen3-8b --for training')],
  [
    'can a 4090 run qwen3-32b in 4bit',
    is('fit qwen3-32b --gpu 4090 --dtype 4bit', 'fit qwen3-32b --gpu 4090 --dtype int4'),
  ],
  ['does qwen3-8b fit in 16GB', says('fit --list-gpus 16GB')],
  ['what is the kv cache of qwen3-8b', is('profile qwen3-8b')],
  ['show me qwen3-8b', is('profile qwen3-8b')],
  ['what can i run on a 3060', is('fit --gpu 3060')],
  ['qlora qwen3-8b on a 3090', is('fit qwen3-8b --for qlora --gpu 3090')],
  ['export hf as onnx', is('export hf --save hf.onnx')],
  [
    'compare qwen3-8b and llama-3.1-8b on h100',
    { says: ['error: '], never: ['llama-3.1-8b h100'] },
  ],
  ['fit qwen3-8b into 24gb', says('fit --list-gpus 24gb')],
  ['is qwen3-8b bigger than llama-3.1-8b', is('compare qwen3-8b llama-3.1-8b')],
  ['plan a 1B model', is('plan --max-params 1B')],
  ['please fit qwen3-8b --gpu 4090', is('fit qwen3-8b --gpu 4090')],
];

export const FURTHER_GUESSES: readonly Guess[] = LINES;
