/**
 * Lines of programs that train, convert and evaluate. What is right was written before any of them was run. The words
 * are in:
 *
 * - modelscope/ms-swift 3602360 README.md, docs/source_en; unslothai/unsloth 066c227 unsloth-cli.py
 * - pytorch/torchtune bd2a0fc README.md, docs/source; Lightning-AI/litgpt 2685705 README.md, tutorials
 * - ml-explore/mlx-lm d78bf58 README.md, mlx_lm/*.md; huggingface/optimum 018b9db docs, "Export a model to ONNX"
 * - huggingface/trl f2cd577 docs/source/clis.md, trl/scripts/sft.py; huggingface/accelerate 16cb6eb docs/source
 * - deepspeedai/DeepSpeed edaa722 deepspeed/launcher/runner.py, docs/_tutorials
 * - NVIDIA/Megatron-LM d98e8a6 examples/gpt3; axolotl-ai-cloud/axolotl 067b021 docs; hiyouga/LLaMA-Factory ff6d4d1
 * - EleutherAI/lm-evaluation-harness 4e7e0d4 README.md; huggingface/lighteval 3fd1526 README.md
 */
import type { Guess, Right, Saying } from '../guesses.js';

const is = (...lines: string[]): readonly string[] => lines;

const says = (...texts: string[]): Saying => ({ says: texts });

const TRAINERS: readonly (readonly [line: string, right: Right])[] = [
  [
    'CUDA_VISIBLE_DEVICES=0 swift sft --model Qwen/Qwen3-4B --tuner_type lora --torch_dtype bfloat16 --per_device_train_batch_size 1 --learning_rate 1e-4 --lora_rank 8 --lora_alpha 32 --target_modules all-linear --gradient_accumulation_steps 16 --max_length 2048 --output_dir output --warmup_ratio 0.05 --gpu 3090',
    is(
      'fit Qwen/Qwen3-4B --for lora --rank 8 --micro-batch 1 --accumulation 16 --context 2048 --gpu 3090 …',
    ),
  ],
  [
    'swift infer --model hf --stream true --max_new_tokens 4 --ids 1,2,3',
    is('generate hf --max-tokens 4 --ids 1,2,3'),
  ],
  [
    'swift export --model hf --adapters lora --merge_lora true --output_dir merged --dry-run',
    is('convert-checkpoint hf merged --merge-lora lora --dry-run'),
  ],
  [
    'swift export --model hf --quant_method gptq --quant_bits 4 --output_dir out --dry-run',
    is('convert-checkpoint hf out --quantize int4 --dry-run'),
  ],
  [
    'swift deploy --model qwen3-8b --infer_backend vllm --vllm_max_model_len 8192 --gpu a10',
    is('fit qwen3-8b --context 8192 --gpu a10'),
  ],
  [
    'swift pt --model my.yaml --tuner_type full --max_steps 100 --per_device_train_batch_size 2',
    is('train-plan my.yaml --steps 100 --batch 2'),
  ],
  [
    'swift rlhf --rlhf_type dpo --model my.yaml --max_steps 100',
    is('train-plan my.yaml --steps 100'),
  ],
  // 16 sequences on 4 replicas of 2 GPUs.
  [
    'NPROC_PER_NODE=8 megatron sft --load my.yaml --tensor_model_parallel_size 2 --micro_batch_size 1 --global_batch_size 16 --max_length 128 --gpu h100',
    is(
      'train-plan my.yaml --tensor-parallel 2 --batch 1 --accumulation 4 --context 128 --gpu h100 --gpus 8',
    ),
  ],
  ['swift eval --model hf --eval_dataset gsm8k', says('--text')],
  [
    'python unsloth-cli.py --model_name "qwen3-8b" --max_seq_length 8192 --dtype None --load_in_4bit --r 64 --lora_alpha 32 --lora_dropout 0.1 --bias "none" --use_gradient_checkpointing "unsloth" --per_device_train_batch_size 4 --gradient_accumulation_steps 8 --optim "adamw_8bit" --gpu 4090',
    is(
      'fit qwen3-8b --for qlora --rank 64 --context 8192 --recompute full --micro-batch 4 --accumulation 8 --optimizer adamw-8bit --gpu 4090 …',
    ),
  ],
  [
    'tune run lora_finetune_single_device --config qwen3-8b batch_size=2 gradient_accumulation_steps=8 --gpu 4090',
    is('fit qwen3-8b --for lora --micro-batch 2 --accumulation 8 --gpu 4090'),
  ],
  [
    'tune run --nproc_per_node 4 full_finetune_distributed --config my.yaml max_steps_per_epoch=100 optimizer.lr=2e-5 --gpu a100',
    is('train-plan my.yaml --gpus 4 --gpu a100 --lr 2e-5 …'),
  ],
  ['tune run eleuther_eval --config hf --ids 1,2,3,4', is('evaluate hf --ids 1,2,3,4')],
  ['tune run knowledge_distillation_single_device --config my.yaml', is('train-plan my.yaml')],
  ['tune download Qwen/Qwen3-0.6B --output-dir /tmp/q', says('hf download Qwen/Qwen3-0.6B')],
  [
    'litgpt finetune_lora qwen3-8b --lora_r 16 --train.micro_batch_size 2 --train.max_seq_length 2048 --quantize bnb.nf4 --gpu 4090',
    is('fit qwen3-8b --for qlora --rank 16 --micro-batch 2 --context 2048 --gpu 4090'),
  ],
  [
    'litgpt pretrain my.yaml --train.max_tokens 1_000_000 --train.lr_warmup_steps=200 --optimizer.lr 0.005',
    is('train-plan my.yaml --tokens 1_000_000 --warmup 200 --lr 0.005'),
  ],
  [
    'litgpt download HuggingFaceTB/SmolLM2-135M-Instruct',
    says('hf download HuggingFaceTB/SmolLM2-135M-Instruct'),
  ],
  ['litgpt chat microsoft/phi-2', says('microsoft/phi-2')],
  [
    'mlx_lm.lora --model qwen3-8b --train --iters 600 --batch-size 2 --num-layers 16 --gpu "M4 Max 64GB"',
    is("fit qwen3-8b --for lora --micro-batch 2 --gpu 'M4 Max 64GB' …"),
  ],
  [
    'mlx_lm.lora --model my.yaml --train --fine-tune-type full --iters 100 --gpu h100',
    is('train-plan my.yaml --steps 100 --gpu h100'),
  ],
  [
    'mlx_lm.server --model Qwen/Qwen3-8B --port 8080 --gpu "M3 Max 64GB"',
    is("fit Qwen/Qwen3-8B --gpu 'M3 Max 64GB'"),
  ],
  [
    'mlx_lm.awq --model hf --mlx-path out --bits 4 --dry-run',
    is('convert-checkpoint hf out --quantize int4 --dry-run'),
  ],
  [
    'mlx_lm.benchmark --model qwen3-8b -p 2048 -g 128 --gpu "M4 Max 64GB"',
    is("fit qwen3-8b --prompt-tokens 2048 --output-tokens 128 --gpu 'M4 Max 64GB'"),
  ],
  [
    'python run_clm.py --model_name_or_path my.yaml --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --max_steps 500 --bf16 --do_train --output_dir out --overwrite_output_dir',
    is('train-plan my.yaml --batch 2 --accumulation 4 --steps 500'),
  ],
  [
    'train-plan my.yaml --max_steps=1e3 --learning_rate=5e-5 --lr_scheduler_type=cosine --optim=adamw_torch --fp16=False',
    is('train-plan my.yaml --steps 1e3 --lr 5e-5 --schedule cosine'),
  ],
  ['transformers-cli env', is('doctor')],
  [
    'accelerate launch --use_deepspeed --zero_stage 3 --num_processes 8 train.py --model_name_or_path my.yaml --max_steps 100 --gpu h100',
    is('train-plan my.yaml --gpus 8 --zero 3 --steps 100 --gpu h100'),
  ],
  [
    'accelerate launch --use_fsdp --fsdp_sharding_strategy FULL_SHARD --num_processes 4 --num_machines 1 train.py my.yaml --gpu a100',
    is('train-plan my.yaml --zero 3 --gpus 4 --gpu a100'),
  ],
  [
    'deepspeed --num_accelerators 4 train.py my.yaml --gpu h100',
    is('train-plan my.yaml --gpus 4 --gpu h100'),
  ],
  [
    'deepspeed -i localhost:0,1,2 train.py my.yaml --gpu h100',
    is('train-plan my.yaml --gpus 3 --gpu h100'),
  ],
  [
    'torchrun --standalone --nnodes=1 --nproc-per-node=4 train.py my.yaml --batch_size 8 --gpu a100',
    is('train-plan my.yaml --gpus 4 --batch 8 --gpu a100'),
  ],
  [
    'python -m torch.distributed.run --nproc_per_node=2 train.py my.yaml --gpu t4',
    is('train-plan my.yaml --gpus 2 --gpu t4'),
  ],
  [
    'FORCE_TORCHRUN=1 NNODES=2 NPROC_PER_NODE=8 llamafactory-cli train my.yaml --gpu h100',
    is('train-plan my.yaml --gpu h100 --gpus 16'),
  ],
  // 16 sequences on 2 replicas of 4 GPUs.
  [
    'torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 16 --train-iters 1000 --seq-length 128 --load qwen3-0.6b --gpu h100',
    is(
      'train-plan qwen3-0.6b --gpus 8 --tensor-parallel 2 --pipeline-parallel 2 --batch 1 --accumulation 8 --steps 1000 --context 128 --gpu h100',
    ),
  ],
  [
    "trl sft --model_name_or_path qwen3-0.6b --dataset_name trl-lib/Capybara --learning_rate 2.0e-4 --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --max_steps 1000 --eos_token '<|im_end|>' --eval_strategy steps --eval_steps 100 --packing --use_peft --lora_r 32 --lora_alpha 16 --output_dir out --push_to_hub",
    is('fit qwen3-0.6b --for lora --rank 32 --micro-batch 2 --accumulation 8 --gpu h100-80gb'),
  ],
  [
    'trl sft --model_name_or_path qwen3-0.6b --dataset_name trl-lib/Capybara --learning_rate 2.0e-4 --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --max_steps 1000 --packing --use_peft --lora_r 32 --lora_alpha 16 --output_dir out --gpu 4090',
    is('fit qwen3-0.6b --for lora --rank 32 --micro-batch 2 --accumulation 8 --gpu 4090 …'),
  ],
  [
    'trl grpo --model_name_or_path my.yaml --accelerate_config zero2 --max_steps 100 --num_processes 4 --gpu h100',
    is('train-plan my.yaml --zero 2 --steps 100 --gpus 4 --gpu h100'),
  ],
  [
    'python trl/scripts/sft.py --model_name_or_path my.yaml --max_steps 100 --gradient_checkpointing',
    is('train-plan my.yaml --steps 100 --recompute full'),
  ],
  [
    'axolotl merge-lora hf --lora-model-dir=lora --output-dir=merged --dry-run',
    is('convert-checkpoint hf merged --merge-lora lora --dry-run'),
  ],
  [
    'axolotl train my.yaml --num-processes 2 --gpu h100',
    is('train-plan my.yaml --gpus 2 --gpu h100'),
  ],
  ['accelerate launch -m axolotl.cli.train my.yaml', is('train-plan my.yaml')],
  [
    'llamafactory-cli train --model_name_or_path my.yaml --stage pt --finetuning_type full --deepspeed examples/deepspeed/ds_z3_config.json --bf16 true --max_steps 100 --gpu h100 --gpus 8',
    is('train-plan my.yaml --zero 3 --steps 100 --gpu h100 --gpus 8'),
  ],
  [
    'CUDA_VISIBLE_DEVICES=0,1 llamafactory-cli train my.yaml --gpu 3090',
    is('train-plan my.yaml --gpu 3090 --gpus 2'),
  ],
  [
    'python train.py my.yaml --n_layer=6 --n_embd=64 --batch_size=64 --block_size=128',
    says('--set model.num_layers=6', '--set model.hidden_size=64', '--batch 64', '--context 128'),
  ],
];

const CONVERTERS: readonly (readonly [line: string, right: Right])[] = [
  [
    'optimum-cli export onnx --model hf outdir',
    is('export hf --save outdir/model.onnx', 'export hf --save outdir.onnx'),
  ],
  [
    'optimum-cli export onnx --model hf --task text-generation-with-past --opset 17 model.onnx',
    is('export hf --save model.onnx'),
  ],
  ['python -m optimum.exporters.onnx --model hf model.onnx', is('export hf --save model.onnx')],
  ['ptflops my.yaml', is('profile my.yaml …')],
  ['fvcore my.yaml', is('profile my.yaml …')],
  ['netron my.yaml', is('profile my.yaml --tensors', 'draw my.yaml')],
  [
    'huggingface-cli download meta-llama/Llama-3.2-1B --include "*.safetensors" --local-dir l',
    says('hf download meta-llama/Llama-3.2-1B'),
  ],
  ['huggingface-cli login', says('no store')],
  ['hf auth login', says('no store')],
  [
    'lm_eval --model hf --model_args pretrained=EleutherAI/gpt-j-6B --tasks hellaswag --device cuda:0 --batch_size 8',
    says('--text', 'benchmarks'),
  ],
  [
    'python -m lm_eval --model hf --model_args pretrained=hf --ids 1,2,3,4 --batch_size auto',
    is('evaluate hf --ids 1,2,3,4'),
  ],
  [
    'accelerate launch -m lm_eval --model hf --model_args pretrained=hf --ids 1,2,3,4 --batch_size 16',
    is('evaluate hf --ids 1,2,3,4'),
  ],
  [
    'lm_eval --model vllm --model_args pretrained=hf,tensor_parallel_size=1,dtype=auto --ids 1,2,3,4',
    is('evaluate hf --ids 1,2,3,4'),
  ],
  [
    'lighteval accelerate "model_name=hf" "leaderboard|hellaswag|0|0"',
    says('--text', 'benchmarks'),
  ],
  ['lighteval vllm "model_name=qwen3-8b,dtype=float16" aime24', says('--text')],
];

export const TRAINING_GUESSES: readonly Guess[] = [...TRAINERS, ...CONVERTERS];
