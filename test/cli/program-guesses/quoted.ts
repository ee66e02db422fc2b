/**
 * Further lines as people publish them, in documentation, issues and notes. Names of files and projects are changed.
 *
 * - names of models with the type of their weights: `-FP8`, `-AWQ`, `-GPTQ-Int4`, `-4bit`, `-GGUF`
 * - `vllm serve`, `vllm bench`, `sglang.launch_server`, `text-generation-launcher`, `docker run`, `ktransformers`
 * - `llama-server`, `llama-cli`, `llama-speculative`, `llama-tokenize`, `koboldcpp.py`, `mlx_lm`, `lms load`
 * - `tune run`, `trl sft`, `swift sft`, `deepspeed`, `accelerate launch`, `openrlhf`, `verl`, `xtuner`, `nanochat`
 * - `helm`, `kubectl`, `sbatch`, `lm_eval`, `lmms_eval`
 */
import type { Guess, Saying } from '../guesses.js';

const is = (...lines: string[]): readonly string[] => lines;

const says = (...texts: string[]): Saying => ({ says: texts });

/** Models whose names have the type of their weights. */
const QUANTIZED: readonly Guess[] = [
  [
    'vllm serve Qwen/Qwen3-30B-A3B-FP8 --served-model-name mine --port 8000',
    is('fit Qwen/Qwen3-30B-A3B --dtype fp8'),
  ],
  ['vllm serve /models/Qwen3-32B-AWQ', is('fit Qwen3-32B --dtype awq')],
  [
    'python -m vllm.entrypoints.openai.api_server --model /root/qwen/Qwen2-7B-Instruct-GPTQ-Int4 --quantization gptq',
    is('fit qwen/Qwen2-7B-Instruct --dtype gptq'),
  ],
  [
    'vllm serve RedHatAI/Qwen3-32B-quantized.w4a16 --max-model-len 4096',
    is('fit Qwen3-32B --dtype int4 --context 4096'),
  ],
  [
    'text-generation-launcher --model-id someone/gemma-2b-GPTQ --lora-ids someone/math --quantize gptq',
    is('fit gemma-2b --dtype gptq'),
  ],
  [
    'uv run python -m mlx_lm server --model mlx-community/Qwen2.5-7B-Instruct-4bit --port 8080',
    is('fit Qwen2.5-7B-Instruct --dtype int4'),
  ],
  [
    'python -m mlx_lm lora --model mlx-community/Qwen2.5-1.5B-Instruct-4bit --data data/chat --train --iters 600 --batch-size 1 --num-layers 8 --grad-checkpoint',
    is('fit Qwen2.5-1.5B-Instruct --base-dtype int4 --for lora --micro-batch 1 --recompute full'),
  ],
  [
    'trl sft --model_name_or_path unsloth/Qwen3-8B-bnb-4bit --use_peft',
    is('fit Qwen3-8B --base-dtype int4 --for lora'),
  ],
  [
    'llama-server -hf unsloth/Qwen3.5-9B-GGUF:Q4_K_M --no-mmproj -c 8192 --port 8080',
    is('fit Qwen3.5-9B --context 8192 --dtype Q4_K_M'),
  ],
  [
    'llama-server -hf ggml-org/gpt-oss-20b-GGUF --ctx-size 0 --jinja -ub 2048 -b 2048',
    is('fit gpt-oss-20b --dtype mxfp4'),
  ],
  ['vllm serve google/gemma-3-27b-it-qat-q4_0-gguf', is('fit google/gemma-3-27b-it --dtype q4_0')],
  ['ollama run hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M', is('fit Qwen3-8B --dtype Q4_K_M')],
  [
    'python server.py --model TheBloke_Llama-2-7B-GPTQ --loader autogptq',
    is('fit Llama-2-7B --dtype gptq'),
  ],
  ['fit /data/Qwen3-8B-GPTQ-Int4', is('fit Qwen3-8B --dtype gptq')],
  ['profile /data/Qwen3-8B-GPTQ-Int8', is('profile Qwen3-8B --dtype int8')],
  [
    'vllm serve someone/unknown-llm-7b-AWQ --max-model-len 2048',
    is('fit hf:someone/unknown-llm-7b-AWQ --context 2048'),
  ],
];

const SERVERS: readonly Guess[] = [
  [
    'python3 -m vllm.entrypoints.openai.api_server --allowed-local-media-path / --mm-encoder-tp-mode data --max-model-len 25480 --limit-mm-per-prompt \'{"image":10}\' --model qwen3-8b',
    says('--allowed-local-media-path / is not needed', 'fit qwen3-8b --context 25480'),
  ],
  ['vllm serve qwen3-8b --some-unknown-path /', says('--some-unknown-path / has no counterpart')],
  ['vllm serve my.yaml --some-path folder', is('fit my.yaml')],
  [
    'vllm serve moonshotai/Kimi-K2-Instruct --quantization compressed-tensors --max-model-len 32768 --enable-expert-parallel',
    is('fit moonshotai/Kimi-K2-Instruct --context 32768 --expert-parallel all --gpu h100-80gb'),
  ],
  [
    'vllm serve qwen3-8b --cudagraph-capture-sizes 1 2 4 8 16 32 --max-num-seqs 1 --language-model-only',
    is('fit qwen3-8b --batch 1'),
  ],
  [
    'vllm serve /model --quantization gptq --dtype float16 --cudagraph-capture-sizes 1 2 4 8 16 32 --max-num-seqs 1',
    says('there is no file "/model"'),
  ],
  ['vllm serve my-own-model --max-model-len 4096', says('there is no model "my-own-model"')],
  [
    'text-generation-launcher --model-id meta-llama/Llama-2-7b-chat-hf --max-input-length 4000 --max-total-tokens 4096',
    is('fit meta-llama/Llama-2-7b-chat-hf --prompt-tokens 4000 --output-tokens 96 --gpu h100-80gb'),
  ],
  [
    'vllm bench throughput --model Qwen/Qwen3-8B --input-len=1024 --output-len=1024 -tp 4 --enforce-eager',
    is(
      'fit Qwen/Qwen3-8B --prompt-tokens 1024 --output-tokens 1024 --tensor-parallel 4 --eager --gpu h100-80gb',
    ),
  ],
  [
    'python3 -m sglang.bench_offline_throughput --model-path qwen3-8b --num-prompts 10 --speculative-algorithm EAGLE --speculative-draft-model-path someone/EAGLE-8B --speculative-num-draft-tokens 64 --mem-fraction 0.7',
    is('fit qwen3-8b --gpu-memory-utilization 0.7 --gpu h100-80gb'),
  ],
  [
    'python -m sglang.launch_server --model-path qwen3-8b --speculative-num-draft-tokens 2',
    says('--draft-tokens 2 requires --draft', 'fit qwen3-8b'),
  ],
  [
    'python -m ktransformers.server.main --model_path ../kimi-k2-instruct --gguf_path ../gguf --max_new_tokens 512 --cache_lens 4096 --max_batch_size 1',
    is(
      'fit kimi-k2-instruct --cpu-experts all --output-tokens 512 --context 4096 --batch 1 --gpu rtx-4090',
    ),
  ],
  [
    '/usr/bin/python3 koboldcpp.py --model qwen3-32b-q4_k_m.gguf --usecublas --contextsize 16384 --quantkv 1',
    is('fit qwen3-32b --dtype q4_k_m --context 16384 --cache-dtype q8_0'),
  ],
  [
    'GGML_HEXAGON_NDEV=2 llama-cli -m llama-3.2-3b-Q4_0.gguf --device HTP0,HTP1 -ngl 99 -c 4096 -p "Hello"',
    is('fit llama-3.2-3b --dtype q4_0 --context 4096'),
  ],
  [
    'numactl --interleave=all llama-speculative -m Qwen2.5-Coder-32B-Q4_K_M.gguf -md Qwen2.5-Coder-0.5B-Instruct-Q8_0.gguf --draft-max 24',
    is(
      'fit Qwen2.5-Coder-32B --dtype q4_k_m --draft Qwen2.5-Coder-0.5B-Instruct --draft-tokens 24 --acceptance 0.7 --gpu rtx-4090',
    ),
  ],
  [
    'llama-server -m qwen3-8b --port 11434 --lora /home/me/lora.gguf',
    { says: ['--lora /home/me/lora.gguf has no counterpart', 'fit qwen3-8b'], never: ['--for'] },
  ],
  [
    '~/.cache/lm-studio/bin/lms load --gpu max --context-length 4096 qwen3-8b',
    { says: ['--gpu max has no', 'fit --context 4096 qwen3-8b'], never: ['--gpu-offload'] },
  ],
  [
    'accelerate estimate-memory qwen3-8b --dtypes float16 int8 int4',
    says('profile shows float16 and int8 and int4', 'minimind profile qwen3-8b --details'),
  ],
  ['./llama-tokenize -m llama-2-7b.Q4_0.gguf -f text.txt', says('minimind data text.txt')],
  ['llama-tokenize -m model.gguf -p "some text" --ids', says('no single texts as tokens')],
  [
    './bin/llama-quantize --leave-output-tensor model.f16.gguf model.gguf Q4_K_M',
    is('convert-checkpoint model.f16.gguf model.gguf --dtype q4_k_m'),
  ],
  [
    'llama-gguf-split --merge model-00001-of-00002.gguf model.gguf',
    { says: ['convert-checkpoint model-00001-of-00002.gguf model.gguf'], never: ['--merge mean'] },
  ],
  [
    'python merge_peft_adapters.py --base_model_name_or_path hf --peft_model_path lora --output_dir merged --device cpu',
    is('convert-checkpoint hf --merge-lora lora merged'),
  ],
];

const TRAININGS: readonly Guess[] = [
  [
    'tune run --nproc_per_node 4 lora_finetune_distributed --config llama3_1/8B_lora device=xpu dtype=bf16',
    is('fit llama3.1-8B --for lora --base-dtype bf16 --gpus 4 --gpu h100-80gb'),
  ],
  [
    'tune run --nproc_per_node 8 qat_distributed --config llama3/8B_qat_full',
    says('qat_distributed is read as', 'train-plan llama3-8B --gpus 8'),
  ],
  [
    'trl sft --model_name_or_path Qwen/Qwen2.5-7B --dataset_name d --load_in_4bit --use_peft --lora_r 16 --dtype bfloat16',
    is('fit Qwen/Qwen2.5-7B --rank 16 --for qlora'),
  ],
  [
    'deepspeed --include localhost:0 train/train_mem.py --deepspeed ./zero3.json --lora_enable True --model_name_or_path ./base/Llama-2-7b --per_device_train_batch_size 8',
    is('fit Llama-2-7b --zero 3 --for lora --micro-batch 8 --gpu h100-80gb'),
  ],
  [
    'deepspeed --include localhost:6,7 train.py --model_path /data/Llama-2-7b-chat-hf --max_epoch 2000 --max_steps 10000',
    is('train-plan Llama-2-7b-chat-hf --steps 10000 --gpus 2'),
  ],
  [
    'deepspeed --num_gpus 8 train_bash.py --deepspeed ds_z3_offload_config.json --do_train --model_name_or_path qwen3-8b --num_train_epochs 3.0',
    says('there is no file "ds_z3_offload_config.json"', '--zero 3', '--data-tokens 1B'),
  ],
  [
    'python finetune.py --model_name_or_path gpt2 --output_dir ./ft --epochs 3 --per_device_train_batch_size 4',
    is('train-plan gpt2 --epochs 3 --batch 4 --data-tokens 1B'),
  ],
  [
    'python finetune.py --model_name_or_path=/root/models/Llama-2-7b-chat-hf --model_family=llama2 --learning_rate=2e-5',
    is('train-plan Llama-2-7b-chat-hf --lr 2e-5'),
  ],
  [
    'accelerate launch --config_file my.yaml train.py --config recipe.yaml --learning_rate 1e-5',
    says('there is no file "recipe.yaml"'),
  ],
  [
    'accelerate launch --config_file zero3.yaml train.py --config my.yaml --max_steps 10',
    is('train-plan my.yaml --steps 10 --zero 3'),
  ],
  [
    'torchrun --nproc_per_node 8 -m test_fsdp2 --model_name_or_path unsloth/gpt-oss-120b-BF16 --rank 16 --alpha 32',
    is('fit gpt-oss-120b --base-dtype bf16 --rank 16 --gpus 8 --for lora --gpu h100-80gb'),
  ],
  [
    'swift sft --model Qwen/Qwen3-1.7B --model_type qwen3 --torch_dtype bfloat16 --max_length 8192 --max_new_tokens 4096 --lora_rank 16',
    is('fit Qwen/Qwen3-1.7B --base-dtype bfloat16 --context 8192 --rank 16 --for lora'),
  ],
  [
    'python3 -m verl.trainer.main_ppo data.train_batch_size=256 actor_rollout_ref.model.path=Qwen/Qwen3-8B trainer.n_gpus_per_node=8',
    is('train-plan Qwen/Qwen3-8B --batch 32 --accumulation 1 --gpus 8'),
  ],
  [
    'deepspeed --module openrlhf.cli.train_dpo --pretrain /data/mine --zero_stage 2 --optimizer adamw_torchao_4bit --gradient_checkpointing',
    says('there is no file "/data/mine"'),
  ],
  [
    'srun torchrun --nnodes 2 --nproc_per_node 2 train.py --cfg-path ./configs/stage2.yaml',
    says('there is no file "./configs/stage2.yaml"'),
  ],
  [
    'xtuner train internlm2_chat_7b_qlora_oasst1_e3 --deepspeed deepspeed_zero2',
    says('there is no model "internlm2-chat-7b"'),
  ],
  [
    'python3 -u -m scripts.base_train --depth=12 --max-seq-len=2048 --device-batch-size=64 --num-iterations=1700 --eval-every=100',
    is('train-plan minimind2-small --set model.depth=12 --context 2048 --batch 64 --steps 1700'),
  ],
];

/** Lines for something that is not here, with an answer that says so. */
const ELSEWHERE: readonly Guess[] = [
  ['helm install vllm vllm/vllm-stack -f values.yaml', says('reads no manifests')],
  ['kubectl apply -f vllm-deployment.yaml', says('reads no manifests')],
  ['sbatch train.sh --gpus 4', says('reads no scripts of a scheduler')],
  [
    'accelerate launch --num_processes=4 -m lmms_eval --model qwen2_5_vl --tasks task1',
    says('runs no benchmarks'),
  ],
];

export const QUOTED_GUESSES: readonly Guess[] = [
  ...QUANTIZED,
  ...SERVERS,
  ...TRAININGS,
  ...ELSEWHERE,
];
