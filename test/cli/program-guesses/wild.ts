/**
 * Lines as they stand in scripts and notes that people publish: with variables, launchers, paths of other machines, files
 * that are not here, flags that nothing here knows. Names of files and projects are changed.
 *
 * - shell scripts that start `vllm serve`, `sglang.launch_server`, `trtllm-serve`, `llama-server`, `llama-cli`
 * - shell scripts that start `torchrun`, `accelerate launch`, `deepspeed`, `mpirun`, `swift sft`, `litgpt`, `tune run`
 * - shell scripts that start `llama-bench`, `mlx_lm`, `lmdeploy`, `vllm bench`, `genai-perf`, `axolotl`
 * - Megatron-LM and nanoGPT: sizes without a config
 */
import type { Guess, Saying } from '../guesses.js';

const is = (...lines: string[]): readonly string[] => lines;

const says = (...texts: string[]): Saying => ({ says: texts });

const SERVERS: readonly Guess[] = [
  [
    'timeout 90 vllm serve Qwen/Qwen2.5-0.5B-Instruct --port 8199 --max-model-len 4096 --max-num-seqs 16 --enable-sleep-mode',
    is('fit Qwen/Qwen2.5-0.5B-Instruct --context 4096 --batch 16'),
  ],
  [
    'vllm serve Qwen/Qwen-Image --omni --port 8091 --max-num-seqs 4',
    is('fit hf:Qwen/Qwen-Image --batch 4'),
  ],
  [
    'vllm serve Qwen/Qwen3-Embedding-0.6B --runner pooling --convert embed --max-model-len 8192',
    is('fit hf:Qwen/Qwen3-Embedding-0.6B --context 8192'),
  ],
  [
    'CUDA_VISIBLE_DEVICES=0,1 vllm serve /srv/models/Qwen/Qwen3-8B --tensor-parallel-size 2',
    is('fit Qwen/Qwen3-8B --tensor-parallel 2 --gpus 2 --gpu h100-80gb'),
  ],
  [
    'vllm serve runs/step_50/actor/huggingface --max-model-len 32768',
    says('there is no file "runs/step_50/actor/huggingface"'),
  ],
  [
    'srun -n 8 --partition gpu python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-32B',
    is('fit Qwen/Qwen3-32B --gpus 8 --gpu h100-80gb'),
  ],
  [
    'llama-server -m models/Qwen3-0.6B-Q8_0.gguf --ctx-size 4096 -t 4 --parallel 1 --metrics',
    is('fit Qwen3-0.6B --dtype q8_0 --context 4096 --users 1'),
  ],
  [
    'llama-server -m qwen3-4b-q4_k_m.gguf -c 8192 -ngl 999 --no-webui',
    is('fit qwen3-4b --dtype q4_k_m --context 8192'),
  ],
  [
    './build/bin/llama-cli -m models/llama-2-7b.Q4_0.gguf -p "Test" -n 100',
    is('fit llama-2-7b --dtype q4_0 --output-tokens 100 --gpu rtx-4090'),
  ],
  [
    'llama-bench -m /tmp/qwen3-0.6b-Q8_0.gguf -p 770 -n 32 -r 1',
    is('fit qwen3-0.6b --dtype q8_0 --prompt-tokens 770 --output-tokens 32 --gpu rtx-4090'),
  ],
  [
    'llama-server -m Qwen3.6-35B-A3B-UD-Q4_K_XL.gguf --n-cpu-moe 32 -c 131072',
    is('fit Qwen3.6-35B-A3B --dtype q4_k_m --cpu-experts 32 --context 131072 --gpu rtx-4090'),
  ],
  [
    'llama-server -m qwen3-8b -ctk q8_0 -ctv q4_0 -c 8192',
    is('fit qwen3-8b --cache-dtype q8_0 --context 8192'),
  ],
  [
    'lmdeploy serve api_server qwen3-8b --model-name qwen --device neuron --tp 2',
    is('fit qwen3-8b --tensor-parallel 2 --gpu h100-80gb'),
  ],
  [
    'vllm bench serve --model Qwen/Qwen3-8B --dataset-name random --random-input-len 1024 --num-prompt 100 --request-rate inf',
    is('fit Qwen/Qwen3-8B --prompt-tokens 1024 --gpu h100-80gb'),
  ],
  [
    'genai-perf profile -m meta/llama-3.1-8b-instruct --synthetic-input-tokens-mean 200 --concurrency 8',
    is('fit llama-3.1-8b-instruct --prompt-tokens 200 --users 8 --gpu h100-80gb'),
  ],
  [
    'llama-quantize model-f16.gguf out.gguf iq4_k',
    { says: ['iq4_k is read and counted, not written'], never: ['--dtype q4_k '] },
  ],
  [
    'mlx_lm.convert --hf-path google/gemma-4-E2B-it --mlx-path ./q4 -q',
    says('hf download google/gemma-4-E2B-it'),
  ],
  ['mlx_lm.lora --config lora_config.yaml', says('there is no file "lora_config.yaml"')],
  ['axolotl train config.yaml', says('there is no file "config.yaml"')],
  [
    'ollama create mine -f finetune/Modelfile',
    { says: ['no store of models'], never: ['--force'] },
  ],
  ['fit models/Qwen3-0.6B-Q8_0.gguf', is('fit Qwen3-0.6B --dtype q8_0')],
  ['profile /models/Qwen/Qwen3-8B', is('profile Qwen/Qwen3-8B')],
  ['python convert_hf_to_gguf.py hf', is('convert-checkpoint hf hf.gguf')],
  [
    'optimum-cli export onnx --model Helsinki-NLP/opus-mt-ja-en out.onnx',
    says('hf download Helsinki-NLP/opus-mt-ja-en'),
  ],
  [
    'lm_eval --model hf --model_args pretrained=/share/Qwen/Qwen2-0.5B --tasks ja/jaqket_v1 --device cuda:0',
    says('--text'),
  ],
];

const ADAPTERS: readonly Guess[] = [
  [
    'swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset train.jsonl --lora_rank 64',
    is('fit Qwen/Qwen2.5-7B-Instruct --for lora --rank 64'),
  ],
  [
    'accelerate launch src/train.py --model_name_or_path qwen3-8b --finetuning_type lora --quantization_bit 8 --num_train_epochs 3',
    is('fit qwen3-8b --for lora --base-dtype int8'),
  ],
  [
    'litgpt finetune lora --checkpoint_dir checkpoints/microsoft/phi-2 --data Alpaca2k --train.epochs 1',
    is('fit microsoft/phi-2 --for lora'),
  ],
  [
    'tune run lora_finetune_single_device --config llama2/7B_lora_single_device epochs=1',
    is('fit llama2-7B --for lora'),
  ],
  [
    'swift sft --model_id_or_path internvl --dataset d --lora_rank 128',
    says('there is no model "internvl"'),
  ],
];

const TRAININGS: readonly Guess[] = [
  [
    'torchrun --nproc_per_node=4 mle.py --per_device_train_batch_size 2 --gradient_accumulation_steps 32 --deepspeed ds_stage_2.json',
    is('train-plan minimind2-small --tokens 1B --batch 2 --accumulation 32 --zero 2 --gpus 4'),
  ],
  [
    'deepspeed --num_gpus 2 train.py --deepspeed ds_config_stage3.json',
    is('train-plan minimind2-small --tokens 1B --zero 3 --gpus 2'),
  ],
  [
    'mpirun -n 2 python finetune.py --base_model qwen3-0.6b --micro_batch_size 1 --batch_size 4',
    is('train-plan qwen3-0.6b --batch 1 --accumulation 2 --gpus 2'),
  ],
  [
    'python gaudi_spawn.py --world_size 8 --use_deepspeed sft.py --model_name_or_path qwen3-8b --per_device_train_batch_size 4',
    is('train-plan qwen3-8b --batch 4 --gpus 8'),
  ],
  [
    'torchrun --nproc_per_node=4 -m trainer.cli.train_cli run --model qwen3-0.6b --dataset data.jsonl',
    is('train-plan qwen3-0.6b --gpus 4'),
  ],
  [
    'litgpt finetune qwen3-0.6b --data JSON --data.json_path data.jsonl --train.micro_batch_size 1 --train.global_batch_size 16',
    is('train-plan qwen3-0.6b --batch 1 --accumulation 16'),
  ],
  [
    'torchrun --nproc_per_node=4 torchtitan/train.py --job.config_file llama3_8b.toml',
    says('there is no file "llama3_8b.toml"'),
  ],
  [
    'python trainer/train_full_sft.py --data_path data.jsonl --epochs 2 --batch_size 16',
    is('train-plan minimind2-small --epochs 2 --batch 16 --data-tokens 1B'),
  ],
  [
    'python trainer/train_sft.py --epochs 3 --save_weight edu_sft --use_wandb',
    is('train-plan minimind2-small --data-tokens 1B --epochs 3'),
  ],
  [
    'python trainer/train_pretrain.py --batch_size 16 --max_steps 500',
    is('train-plan minimind2-small --batch 16 --steps 500'),
  ],
  [
    'accelerate launch --config_file zero3.yaml scripts/run_sft.py recipes/sft.yaml',
    says('there is no file "recipes/sft.yaml"'),
  ],
  [
    'deepspeed train_bash.py --model_name_or_path Baichuan-13B-Chat-8bit --do_train',
    says('there is no model "Baichuan-13B-Chat-8bit"'),
  ],
];

const SIZES: readonly Guess[] = [
  [
    'python train.py --n_layer 6 --n_head 8 --n_embd 384 --block_size=256 --batch_size 64 --max_iters 6000',
    is(
      'train-plan gpt2 --set model.n_layer=6 --set model.n_head=8 --set model.n_embd=384 --set model.n_positions=256 --context 256 --batch 64 --steps 6000',
    ),
  ],
  [
    'torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 80 --hidden-size 8192 --num-attention-heads 64 --group-query-attention --num-query-groups 8 --ffn-hidden-size 28672 --use-rotary-position-embeddings --untie-embeddings-and-output-weights --swiglu --normalization RMSNorm --seq-length 2048 --micro-batch-size 1 --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4',
    is(
      'train-plan llama-2-7b --set model.num_hidden_layers=80 --set model.hidden_size=8192 --set model.num_attention_heads=64 --set model.num_key_value_heads=8 --set model.head_dim=128 --set model.intermediate_size=28672 --set model.tie_word_embeddings=false --context 2048 --batch 1 --tensor-parallel 4 --pipeline-parallel 4 --gpus 32',
    ),
  ],
  [
    'python pretrain_gpt.py --num-layers 10 --hidden-size 1024 --num-attention-heads 16 --max-position-embeddings 1024 --micro-batch-size 16 --global-batch-size 64 --seq-length 1024 --train-iters 5 --lr 0.00015',
    is(
      'train-plan gpt2 --set model.n_layer=10 --set model.n_embd=1024 --set model.n_head=16 --set model.n_inner=4096 --set model.n_positions=1024 --batch 16 --accumulation 4 --context 1024 --steps 5 --lr 0.00015',
    ),
  ],
  [
    'torchrun --nproc_per_node=8 pretrain_gpt.py --num-layers 48 --hidden-size 2048 --ffn-hidden-size 6144 --num-attention-heads 32 --group-query-attention --num-query-groups 4 --kv-channels 128 --qk-layernorm --swiglu --num-experts 128 --moe-router-topk 8 --moe-ffn-hidden-size 768 --untie-embeddings-and-output-weights --expert-model-parallel-size 8 --seq-length 4096',
    says('qwen3-30b-a3b', 'model.num_experts=128', 'model.num_experts_per_tok=8', '--gpus 8'),
  ],
];

export const WILD_GUESSES: readonly Guess[] = [...SERVERS, ...ADAPTERS, ...TRAININGS, ...SIZES];
