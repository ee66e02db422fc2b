/**
 * Lines of published scripts and documents, and of newcomers. Names of files and projects are changed.
 *
 * - `vllm serve` and its containers, `sglang.launch_server`, TGI, LMDeploy, TensorRT-LLM, `mlx_lm`
 * - `llama-server`, `llama-cli`, `llama-bench`, `convert_hf_to_gguf.py`, `nsys profile`
 * - `torchrun`, `deepspeed`, `accelerate launch`, ms-swift, torchtune, verl, OpenRLHF, LitGPT, llm.c, nanochat, MiniMind
 */
import type { Guess, Saying } from '../guesses.js';

const is = (...lines: string[]): readonly string[] => lines;

const says = (...texts: string[]): Saying => ({ says: texts });

/** Lines that a scheduler starts, programs by their older names, and scripts whose model is not named. */
const STARTED: readonly Guess[] = [
  [
    'srun --nodes=4 --gpus-per-node=8 --partition gpu python train.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 1',
    is('train-plan Qwen/Qwen3-8B --batch 1 --gpus 32'),
  ],
  [
    'srun --gres gpu:a100:4 python train.py --model gpt2 --batch_size 8',
    is('train-plan gpt2 --batch 8 --gpus 4'),
  ],
  [
    'srun -N 2 --gres=gpu:8 python pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 --global-batch-size 64',
    says('--batch 4 --accumulation 1 --gpus 16'),
  ],
  ['./quantize old.gguf out.gguf q4_0', is('convert-checkpoint old.gguf out.gguf --dtype q4_0')],
  ['./server -m model.gguf -c 2048', says('there is no file "model.gguf"')],
  [
    'python generate.py --prompt Hello --max_new_tokens 50 --temperature 0.8',
    is('generate minimind2-small --random --max-tokens 50 --temperature 0.8 --ids 1,2,3'),
  ],
  [
    'python sample.py --start=hi --num_samples=2 --max_new_tokens=100',
    is('generate minimind2-small --random --max-tokens 100 --ids 1,2,3'),
  ],
  ['python -m auto_gptq.quantize --model x --bits 4', says('there is no model "x"')],
  [
    'python convert_hf_to_gguf.py ./model --outfile out.gguf --outtype q8_0',
    says('there is no file "./model"'),
  ],
];

const OF_TOOLS: readonly Guess[] = [
  [
    'python -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 8 --ep-size 4',
    is('fit Qwen/Qwen3-235B-A22B --tensor-parallel 8 --expert-parallel all …'),
  ],
  [
    'python -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp 8 --ep-size 1',
    is('fit Qwen/Qwen3-235B-A22B --tensor-parallel 8 …'),
  ],
  [
    'vllm serve openai/gpt-oss-120b --dtype auto --port 8000 --host 0.0.0.0 --config settings.yaml',
    says('fit openai/gpt-oss-120b', 'settings.yaml'),
  ],
  [
    'vllm serve --omni Qwen/Qwen3-Omni-30B-A3B-Instruct',
    is('fit hf:Qwen/Qwen3-Omni-30B-A3B-Instruct'),
  ],
  [
    'docker exec serving python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-235B-A22B-GPTQ-Int4 --tensor-parallel-size 2 --distributed-executor-backend ray --gpu-memory-utilization 0.7 --max-model-len 32768 --host 0.0.0.0 --port 8000',
    is(
      'fit Qwen/Qwen3-235B-A22B --dtype gptq --tensor-parallel 2 --gpu-memory-utilization 0.7 --context 32768 …',
    ),
  ],
  [
    'vllm bench latency --model Qwen/Qwen3-8B --input-len 512 --output-len 128 --batch-size 8 --num-iters 2 --num-iters-warmup 1 --max-num-batched-tokens 4096',
    is('fit Qwen/Qwen3-8B --prompt-tokens 512 --output-tokens 128 --batch 8 …'),
  ],
  [
    'vllm bench throughput --model Qwen/Qwen3-8B --input-tokens 128 --output-tokens 256 --num-prompts 100',
    is('fit Qwen/Qwen3-8B --prompt-tokens 128 --output-tokens 256 …'),
  ],
  [
    'python -m sglang.launch_server --model-path /models/DeepSeek-R1-FP4 --quantization modelopt_fp4 --moe-runner-backend flashinfer_trtllm --disable-flashinfer-autotune',
    is('fit DeepSeek-R1 --dtype nvfp4 …'),
  ],
  [
    'python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp-size 8 --dp-size 1 --enable-prefill-cp --cp-strategy zigzag --attn-cp-size 4',
    says('fit deepseek-ai/DeepSeek-R1 --tensor-parallel 8', 'attn-cp-size'),
  ],
  [
    'trtllm-bench --model nvidia/DeepSeek-V3.1-NVFP4 latency --dataset ./dataset.jsonl --tp 8 --config config.yaml --report_json ./bench_bs_1.json --backend pytorch',
    is(
      'fit DeepSeek-V3.1 --dtype nvfp4 --tensor-parallel 8 …',
      'fit hf:nvidia/DeepSeek-V3.1-NVFP4 --tensor-parallel 8 …',
    ),
  ],
  [
    "./llama-cli -m llama-2-7b.Q4_0.gguf --color -i -c 4096 -t 8 --temp 0.5 --top_k 40 --top_p 0.9 --repeat_penalty 1.1 --in-prefix-bos -ngl 40 --in-prefix ' [INST] ' --in-suffix ' [/INST]' -p \"hi\"",
    is('fit llama-2-7b --dtype q4_0 --context 4096 …'),
  ],
  [
    'llama-bench -m /input_dir/llama-2-13b-chat.Q4_K_M.gguf -pg 512,128 -t 8 -r 40 -o csv',
    is('fit llama-2-13b-chat --dtype q4_k_m --prompt-tokens 512 --output-tokens 128 …'),
  ],
  [
    './bin/llama-bench -m /path/to/llama-3-8b.gguf -p 512,1024,2048',
    is('fit llama-3-8b --prompt-tokens 512 …', 'fit llama-3-8b --prompt-tokens 2048 …'),
  ],
  [
    './build/bin/llama-bench -m qwen3-8b-q4_k_m.gguf -ctk q8_0 -ctv q8_0 -fa 1 -p 8192 -r 1',
    is('fit qwen3-8b --dtype q4_k_m --cache-dtype q8_0 --attention fused --prompt-tokens 8192 …'),
  ],
  [
    './build/bin/llama-server -hf unsloth/gemma-4-E4B-it-GGUF:UD-Q4_K_XL --port 3000 --host 0.0.0.0',
    is('fit gemma-4-E4B-it --dtype Q4_K_M'),
  ],
  ['llama-mtmd-cli -hf ggml-org/gemma-3-4b-it-GGUF', is('fit gemma-3-4b-it --dtype q4_k_m')],
  [
    './llama-server --model ./models/phi-3-mini-4k-instruct-q4.gguf --port 8080 --n-gpu-layers 32 --ctx-size 4096',
    is(
      'fit phi-3-mini-4k-instruct --dtype q4_0 --gpu-layers 32 --context 4096 …',
      'fit phi-3-mini-4k-instruct --dtype int4 --gpu-layers 32 --context 4096 …',
      'fit phi-3-mini-4k-instruct --dtype q4_k_m --gpu-layers 32 --context 4096 …',
      'fit phi-3-mini-4k-instruct --dtype q4 --gpu-layers 32 --context 4096 …',
    ),
  ],
  [
    "/app/llama-server --model qwen3.6-27b-q4_k_m.gguf --alias x --host 0.0.0.0 --port 8080 --n-gpu-layers 999 --fit off --override-tensor '.*=CUDA0' --ctx-size 8192 --parallel 1 --batch-size 512 --ubatch-size 128 --flash-attn on --cache-type-k q8_0 --cache-type-v q8_0",
    is(
      'fit qwen3.6-27b --dtype q4_k_m --context 8192 --users 1 --attention fused --cache-dtype q8_0',
      'fit qwen3.6-27b --dtype q4_k_m --context 8192 --users 1 --attention fused --cache-dtype q8_0 --gpu rtx-4090',
      'fit qwen3.6-27b --dtype q4_k_m --context 8192 --users 1 --attention fused --cache-dtype q8_0 --gpu-layers all --gpu rtx-4090',
    ),
  ],
  [
    './llama-imatrix -m model-f16.gguf -f calibration.txt -o model.imatrix',
    says('importance matri'),
  ],
  [
    'python -m mlx_lm.generate --model microsoft/Phi-3-mini-4k-instruct --max-token 2048 --prompt "<|user|>Can you introduce yourself<|end|><|assistant|>"',
    is('fit microsoft/Phi-3-mini-4k-instruct --output-tokens 2048 …'),
  ],
  [
    'python -m mlx_lm.generate --model microsoft/Phi-3-mini-4k-instruct --adapter-path ./adapters --max-token 2048 --prompt "Why" --eos-token "<|end|>"',
    is('fit microsoft/Phi-3-mini-4k-instruct --output-tokens 2048 …'),
  ],
  [
    'torchrun --standalone --nproc_per_node=1 train_gpt2.py --input_bin "data/fineweb10B/fineweb_train_*.bin" --output_dir out --model d12 --batch_size 16 --grad_accumulation_steps 32 --sequence_length 1024 --val_loss_every 128 --num_iterations 6000',
    is('train-plan gpt2 --batch 16 --accumulation 32 --context 1024 --steps 6000'),
  ],
  [
    'accelerate launch --config_file accelerate.yaml PPO_training.py --train.epochs 1256 --train.batch_size 128 --train.minibatch_size 2 --train.seq_length 512 --train.total_steps 1256 --model.model_path gpt2-medium --tokenizer.tokenizer_path gpt2-medium',
    is('train-plan gpt2-medium --context 512 --steps 1256 …'),
  ],
  [
    'deepspeed --num_gpus=2 --module swift.cli.sft --model Qwen/Qwen3-8B --dataset train.jsonl --val_dataset val.jsonl --output_dir out --per_device_train_batch_size 1 --gradient_accumulation_steps 16 --learning_rate 1e-4 --lr_scheduler_type cosine --warmup_ratio 0.05 --max_length 4096',
    is('fit Qwen/Qwen3-8B --for lora --micro-batch 1 --accumulation 16 --context 4096 --gpus 2 …'),
  ],
  [
    'tune run full_finetune_single_device --config llama2/7B_full_low_memory batch_size=4 gradient_accumulation_steps=1 dataset.max_seq_len=2048 log_peak_memory_stats=True device=xpu optimizer._component_=torch.optim.AdamW checkpointer.checkpoint_dir=/workspace/m',
    is('train-plan llama2-7B --batch 4 --accumulation 1 --context 2048 …'),
  ],
  [
    'python -m verl.trainer.main_ppo algorithm.adv_estimator=rloo data.train_batch_size=256 data.max_prompt_length=33792 data.max_response_length=8192 actor_rollout_ref.model.path=Qwen/Qwen3-4B-Instruct-2507 actor_rollout_ref.actor.optim.lr=2e-6 actor_rollout_ref.actor.ppo_mini_batch_size=256 actor_rollout_ref.model.enable_gradient_checkpointing=True actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.actor.fsdp_config.param_offload=False trainer.n_gpus_per_node=4 trainer.nnodes=1',
    is(
      'train-plan Qwen/Qwen3-4B-Instruct-2507 --lr 2e-6 --recompute full --batch 2 --accumulation 32 --gpus 4 …',
    ),
  ],
  [
    'PYTHONUNBUFFERED=1 python3 -m verl.trainer.main_ppo data.train_files=/data/gsm8k/train.parquet data.train_batch_size=256 data.max_prompt_length=512 data.max_response_length=512 actor_rollout_ref.model.path=Qwen/Qwen2.5-32B-Instruct actor_rollout_ref.actor.optim.lr=1e-5 actor_rollout_ref.rollout.tensor_model_parallel_size=8 actor_rollout_ref.actor.strategy=fsdp2 trainer.n_gpus_per_node=8 trainer.nnodes=2 trainer.total_epochs=15',
    is('train-plan Qwen/Qwen2.5-32B-Instruct --lr 1e-5 --gpus 16 --epochs 15 …'),
  ],
  ['python train_lora.py --lora_name lora_medical', is('fit minimind2-small --for lora')],
  [
    'python training/train_lora.py --model Qwen/Qwen2.5-1.5B-Instruct --train data.jsonl --output out --rank 16 --learning-rate 1e-4',
    is('fit Qwen/Qwen2.5-1.5B-Instruct --for lora --rank 16'),
  ],
  [
    'python benchmarks/benchmark_generation_mamba_simple.py --model-name "state-spaces/mamba-130m" --batch 128 --promptlen 100 --genlen 100',
    is('fit state-spaces/mamba-130m --batch 128 --prompt-tokens 100 --output-tokens 100 …'),
  ],
  [
    'litgpt pretrain --model_name pythia-160m --tokenizer_dir checkpoints/EleutherAI/pythia-160m --data TextFiles --data.train_data_path "texts/" --train.max_tokens 10_000_000 --out_dir out/custom-model',
    is('train-plan pythia-160m --tokens 10_000_000'),
  ],
  [
    'CUDA_VISIBLE_DEVICES=0 swift infer --model ./models/Qwen3-4B-Thinking-2507-FP8 --stream true --infer_backend pt --max_new_tokens 2048 --temperature 0.7',
    is('fit Qwen3-4B-Thinking-2507 --dtype fp8 --output-tokens 2048 …'),
  ],
  [
    'python -m scripts.base_train --depth=4 --max-seq-len=512 --device-batch-size=1 --eval-tokens=512 --core-metric-every=-1 --total-batch-size=512 --num-iterations=20',
    is(
      'train-plan minimind2-small --set model.depth=4 --context 512 --batch 1 --accumulation 1 --steps 20',
    ),
  ],
  [
    'vllm serve mistralai/Mistral-7B-Instruct-v0.3 --port 8000',
    is('fit mistralai/Mistral-7B-Instruct-v0.3'),
  ],
  [
    'vllm serve gradientai/Llama-3-8B-Instruct-Gradient-1048k --swap-space 16 --disable-log-requests --tensor_parallel_size 1 --max_model_len 65000',
    is('fit hf:gradientai/Llama-3-8B-Instruct-Gradient-1048k --context 65000 …'),
  ],
  [
    'vllm serve deepseek-ai/DeepSeek-V3 --tensor-parallel-size 1 --data-parallel-size 8 --enable-expert-parallel --all2all-backend deepep_low_latency --enable-eplb --eplb-config \'{"window_size":1000}\'',
    is('fit deepseek-ai/DeepSeek-V3 --dp-attention 8 --expert-parallel all …'),
  ],
  [
    'docker run --gpus 1 --shm-size 32g -p 30000:30000 -v cache:/root/.cache/huggingface --env "HF_TOKEN=XXXX" --ipc=host lmsysorg/sglang:latest python3 -m sglang.launch_server --model-path meta-llama/Meta-Llama-3-8B-Instruct --host 0.0.0.0 --port 30000',
    is('fit meta-llama/Meta-Llama-3-8B-Instruct'),
  ],
  [
    'python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3-0324 --speculative-algorithm EAGLE --speculative-draft-model-path lmsys/DeepSeek-V3-0324-NextN --speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2 --trust-remote-code --tp 8',
    is('fit deepseek-ai/DeepSeek-V3-0324 --tensor-parallel 8 …'),
  ],
  [
    'lmdeploy serve api_server ~/models/qwen2.5-7b-instruct --server-port 12580 --model-name qwen2.5',
    is('fit qwen2.5-7b-instruct'),
  ],
  [
    './llama-server -hf unsloth/Qwen3.6-27B-GGUF:Q8_0 --hf-file Qwen3.6-27B-Q8_0.gguf -ngl 99 --ctx-size 8192 --parallel 8 --cache-reuse 256 --jinja --port 8010',
    is('fit Qwen3.6-27B --dtype Q8_0 --context 1024 --users 8 …'),
  ],
  [
    'PYTHONPATH=gguf-py ~/venvs/vllm/bin/python convert_hf_to_gguf.py hf --outfile out-BF16.gguf --outtype bf16',
    is('convert-checkpoint hf out-BF16.gguf --dtype bf16'),
  ],
  [
    'mlx_lm.server --model mlx-community/Hermes-3-Llama-3.1-70B-4bit --port 8080',
    is('fit hf:mlx-community/Hermes-3-Llama-3.1-70B-4bit'),
  ],
  [
    'CUDA_VISIBLE_DEVICES=0,1 accelerate launch --config_file recipes/zero2.yaml --num_processes 2 --main_process_port 29500 src/grpo.py --config my.yaml --output_dir out --run_name mine --learning_rate 5e-6',
    is('train-plan my.yaml --lr 5e-6 --gpus 2 --zero 2'),
  ],
  [
    'CUDA_VISIBLE_DEVICES=0,1,2,3 llamafactory-cli train --stage sft --do_train True --model_name_or_path meta-llama/Llama-3.2-3B --preprocessing_num_workers 16 --finetuning_type full --template llama3 --flash_attn auto --dataset_dir data --dataset alpaca --cutoff_len 2048 --learning_rate 5e-05 --num_train_epochs 3.0 --max_samples 100000 --per_device_train_batch_size 6 --gradient_accumulation_steps 16 --lr_scheduler_type cosine --max_grad_norm 1.0 --logging_steps 5 --save_steps 1000 --warmup_steps 0 --packing False --report_to none --output_dir out --bf16 True --plot_loss True --ddp_timeout 180000000 --include_num_input_tokens_seen True --optim adamw_torch --deepspeed cache/ds_z3_config.json',
    is(
      'train-plan meta-llama/Llama-3.2-3B --context 2048 --lr 5e-05 --epochs 3.0 --data-tokens 1B --batch 6 --accumulation 16 --schedule cosine --warmup 0 --zero 3 --gpus 4',
    ),
  ],
  [
    'CUDA_VISIBLE_DEVICES=0,1,2,3 trl vllm-serve --model Qwen/Qwen2.5-7B --tensor-parallel-size 4',
    is('fit Qwen/Qwen2.5-7B --tensor-parallel 4 --gpus 4 …'),
  ],
  [
    'tune run --nnodes 1 --nproc_per_node 2 lora_finetune_distributed --config llama3/8B_lora epochs=1 batch_size=4 gradient_accumulation_steps=8',
    is('fit llama3-8B --for lora --gpus 2 --micro-batch 4 --accumulation 8 …'),
  ],
  [
    'litgpt finetune_lora meta-llama/Llama-2-7b-hf --devices 4 --data JSON --data.json_path data.jsonl',
    is('fit meta-llama/Llama-2-7b-hf --for lora --gpus 4 …'),
  ],
  [
    'vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 8 --max-model-len 25000 --gpu-memory-utilization 0.95',
    is(
      'fit meta-llama/Llama-3.3-70B-Instruct --tensor-parallel 8 --context 25000 --gpu-memory-utilization 0.95 …',
    ),
  ],
  [
    'vllm serve unsloth/Qwen3.6-27B-NVFP4 --tensor-parallel-size 2 --max-model-len 262144 --kv-cache-dtype fp8 --reasoning-parser qwen3',
    is(
      'fit Qwen3.6-27B --dtype nvfp4 --tensor-parallel 2 --context 262144 --cache-dtype fp8 …',
      'fit unsloth/Qwen3.6-27B --dtype nvfp4 --tensor-parallel 2 --context 262144 --cache-dtype fp8 …',
    ),
  ],
  [
    'CUDA_VISIBLE_DEVICES=0,1 vllm serve unsloth/QwQ-32B-unsloth-bnb-4bit --host 0.0.0.0 --port 8000 --tensor-parallel-size 2 --max-model-len 30000 --api-key API-KEY --quantization=bitsandbytes --load-format=bitsandbytes --gpu-memory-utilization=0.75',
    is(
      'fit QwQ-32B --dtype int4 --tensor-parallel 2 --context 30000 --gpu-memory-utilization 0.75 --gpus 2 …',
    ),
  ],
  [
    'vllm serve Qwen/Qwen3-0.6B-GGUF:Q8_0 --tokenizer Qwen/Qwen3-0.6B',
    is('fit Qwen/Qwen3-0.6B --dtype Q8_0', 'fit Qwen3-0.6B --dtype Q8_0'),
  ],
  ['vllm serve gpt2 --max-model-len 4096', says('1,024 positions')],
  [
    'docker run --gpus all -p 8000:80 -v $PWD/data:/data ghcr.io/huggingface/text-generation-inference:latest --model-id Qwen/Qwen2.5-72B-Instruct --num-shard 4 --max-input-length 32000 --max-total-tokens 32768 --max-batch-size 128 --quantize awq',
    is(
      'fit Qwen/Qwen2.5-72B-Instruct --tensor-parallel 4 --prompt-tokens 32000 --output-tokens 768 --batch 128 --dtype awq …',
    ),
  ],
  [
    'nsys profile --trace=cuda ./build/bin/llama-bench -m gpt-oss-20b-mxfp4.gguf -p 512 -n 128',
    is('fit gpt-oss-20b --dtype mxfp4 --prompt-tokens 512 --output-tokens 128 …'),
  ],
  [
    'lmdeploy chat Qwen/Qwen2.5-7B-Instruct --model-format awq --cache-max-entry-count 0.4',
    is('fit Qwen/Qwen2.5-7B-Instruct --dtype awq …'),
  ],
  [
    'deepspeed train.py --deepspeed --deepspeed_config ./configs/zero3_offload_config.json --model_name_or_path qwen3-0.6b --use_fp16 1 --max_steps 10',
    says('there is no file "./configs/zero3_offload_config.json"', '--zero 3'),
  ],
  [
    'CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset d.jsonl --val_dataset v.jsonl --output_dir out --max_length 2048',
    is('fit Qwen/Qwen2.5-7B-Instruct --for lora --context 2048 --gpus 8 …'),
  ],
  [
    'swift sft --model Qwen/Qwen2.5-7B-Instruct --deepspeed zero2 --train_type full',
    is('train-plan Qwen/Qwen2.5-7B-Instruct --zero 2'),
  ],
  [
    'deepspeed --num_gpus 8 --module openrlhf.cli.train_sft --model.model_name_or_path Qwen/Qwen3-1.7B --data.dataset d.jsonl --data.max_len 2048 --train.batch_size 128 --train.micro_batch_size 2 --train.max_epochs 1 --adam.lr 5e-6',
    is(
      'train-plan Qwen/Qwen3-1.7B --context 2048 --batch 2 --accumulation 8 --epochs 1 --lr 5e-6 --gpus 8 --data-tokens 1B',
    ),
  ],
  [
    'python3 -m openrlhf.cli.train_ppo_ray --actor_num_nodes 1 --actor_num_gpus_per_node 8 --ref_num_gpus_per_node 8 --ref_num_nodes 1 --vllm_num_engines 1 --vllm_tensor_parallel_size 4 --pretrain Qwen/Qwen2.5-7B-Instruct --micro_train_batch_size 2 --train_batch_size 128 --zero_stage 3',
    is('train-plan Qwen/Qwen2.5-7B-Instruct --batch 2 --accumulation 8 --zero 3 --gpus 8 …'),
  ],
  [
    'python3 -m verl.trainer.main_ppo data.train_files=$HOME/data/train.parquet data.train_batch_size=1024 data.max_prompt_length=1024 data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.actor.optim.lr=1e-6 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16 actor_rollout_ref.rollout.gpu_memory_utilization=0.6 critic.optim.lr=1e-5 trainer.n_gpus_per_node=8 trainer.nnodes=2 trainer.total_epochs=15',
    is(
      'train-plan Qwen/Qwen3-8B --batch 16 --accumulation 4 --context 2048 --lr 1e-6 --gpus 16 --epochs 15 --data-tokens 1B',
    ),
  ],
  ['compare-srte my.yaml --max_pos 128', is('compare-srte my.yaml --max-positions 128')],
];

/** Lines that newcomers type. */
const OF_NEWCOMERS: readonly Guess[] = [
  ['quick-test my.yaml --tokens 32 --trace', is('quick-test my.yaml --context 32 --trace')],
  ['quick-test my.yaml --train --steps 2', is('quick-test my.yaml --overfit --steps 2')],
  ['profile my.yaml --params-only', is('profile my.yaml')],
  ['compare my.yaml other.yaml --by memory', says('--sort memory')],
  ['compare folder', is('compare folder/a.yaml folder/b.yaml')],
  [
    'how long to train my.yaml on 1B tokens with 8 h100',
    is(
      'train-plan my.yaml --tokens 1B --gpu h100 --gpus 8',
      "train-plan my.yaml --tokens 1B --gpu '8 h100'",
    ),
  ],
  [
    'finetune my.yaml --data data.jsonl --epochs 1',
    is('train-plan my.yaml --epochs 1 --data-tokens 1B'),
  ],
  ['kv-projector my.yaml', says('convert, init, params, project, verify')],
  ['old.pt to new.safetensors', is('convert-checkpoint old.pt new.safetensors')],
];

export const PUBLISHED_GUESSES: readonly Guess[] = [...STARTED, ...OF_TOOLS, ...OF_NEWCOMERS];
