/**
 * Lines as the pages of programs have them, which name no card of the user and often no model that is here:
 *
 * - vllm-project/vllm docs, "Quickstart", "vllm bench"; sgl-project/sglang docs; NVIDIA/TensorRT-LLM docs
 * - ggml-org/llama.cpp tools/server, tools/llama-bench, tools/gguf-split; LostRuins/koboldcpp README.md
 * - karpathy/nanoGPT README.md; jingyaogong/minimind README.md; deepspeedai/DeepSpeedExamples
 * - pytorch/torchtune README.md; Lightning-AI/litgpt README.md; ml-explore/mlx-lm README.md; hiyouga/LLaMA-Factory README.md
 */
import type { Guess, Saying } from '../guesses.js';

const is = (...lines: string[]): readonly string[] => lines;

const says = (...texts: string[]): Saying => ({ says: texts });

const SERVERS: readonly Guess[] = [
  [
    'vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32768 --gpu-memory-utilization 0.92 --tensor-parallel-size 4',
    is(
      'fit meta-llama/Llama-3.1-8B-Instruct --context 32768 --gpu-memory-utilization 0.92 --tensor-parallel 4 --gpu h100-80gb',
    ),
  ],
  [
    'vllm serve Qwen/Qwen3-235B-A22B --enable-expert-parallel --tensor-parallel-size 8',
    is('fit Qwen/Qwen3-235B-A22B --expert-parallel all --tensor-parallel 8 --gpu h100-80gb'),
  ],
  [
    'vllm bench serve --model Qwen/Qwen3-8B --request-rate 4 --random-input-len 512',
    is('fit Qwen/Qwen3-8B --qps 4 --prompt-tokens 512 --gpu h100-80gb'),
  ],
  [
    'sglang serve --model-path deepseek-ai/DeepSeek-V3 --tp 8 --enable-dp-attention --dp 8',
    is('fit deepseek-ai/DeepSeek-V3 --dp-attention 8 --gpu h100-80gb'),
  ],
  [
    'trtllm-serve meta-llama/Llama-3.1-8B --tp_size 2 --max_batch_size 64',
    is('fit meta-llama/Llama-3.1-8B --tensor-parallel 2 --batch 64 --gpu h100-80gb'),
  ],
  [
    'llama-server -hf ggml-org/gpt-oss-20b-GGUF -c 0 -fa on --jinja --n-cpu-moe 12',
    is('fit gpt-oss-20b --dtype mxfp4 --attention fused --cpu-experts 12 --gpu rtx-4090'),
  ],
  ['llama-server -m gpt-oss-20b -ngl 20', is('fit gpt-oss-20b --gpu-layers 20 --gpu rtx-4090')],
  ['llama-server -m models/7B/model.gguf -c 2048', says('there is no file "models/7B/model.gguf"')],
  [
    'koboldcpp --model hf --contextsize 64 --gpulayers 2',
    is('fit hf --context 64 --gpulayers 2 --gpu rtx-4090'),
  ],
  [
    'mlx_lm.generate --model mlx-community/Qwen3-8B-4bit --prompt "hi" --max-tokens 100',
    is('fit Qwen3-8B --dtype int4 --output-tokens 100 --gpu h100-80gb'),
  ],
  ['mlx_lm.generate --model talk --prompt "hi" -m 4', is('generate talk --max-tokens 4 hi')],
  ['mlx_lm.fuse --model hf', says('--merge-lora DIR')],
  ['accelerate config', says('docs/coming-from.md')],
];

const TRAININGS: readonly Guess[] = [
  ['torchrun --nproc_per_node=8 train.py', is('train-plan minimind2-small --tokens 1B --gpus 8')],
  [
    'torchrun --standalone --nproc_per_node=4 train.py --batch_size=32 --compile=False',
    is('train-plan minimind2-small --tokens 1B --batch 32 --gpus 4'),
  ],
  ['python train.py config/train_gpt2.py --block_size=1024', is('train-plan gpt2 --context 1024')],
  [
    'python train_pretrain.py --dim 512 --n_layers 8',
    is(
      'train-plan minimind2-small --tokens 1B --set model.hidden_size=512 --set model.num_layers=8',
    ),
  ],
  [
    'deepspeed train.py --deepspeed --zero_stage 2 --model_name_or_path facebook/opt-1.3b',
    is('train-plan facebook/opt-1.3b --zero 2'),
  ],
  [
    'deepspeed --num_gpus 8 train.py --deepspeed ds_config.json',
    says('there is no file "ds_config.json"'),
  ],
  ['python zero_to_fp32.py zero zero/model.bin', is('convert-checkpoint zero model.bin')],
  ['python eval_llm.py --load_from ./hf --max_new_tokens 4', is('generate ./hf --max-tokens 4 …')],
  [
    'python sample.py --init_from=gpt2-xl --max_new_tokens=100',
    is('fit gpt2-xl --output-tokens 100 --gpu h100-80gb'),
  ],
  [
    'litgpt finetune_lora meta-llama/Llama-3.2-1B --devices 2',
    is('fit --for lora meta-llama/Llama-3.2-1B --gpus 2 --gpu h100-80gb'),
  ],
  [
    'llamafactory-cli train --stage sft --model_name_or_path Qwen/Qwen3-4B --finetuning_type lora --lora_rank 16',
    is('fit Qwen/Qwen3-4B --for lora --rank 16'),
  ],
  ['llamafactory-cli export merge.yaml', says('--merge-lora DIR')],
  [
    'tune run lora_finetune_single_device --config llama3_1/8B_lora_single_device',
    is('fit llama3.1-8B --for lora'),
  ],
  [
    'tune run --nproc_per_node 4 full_finetune_distributed --config llama3_1/70B_full',
    is('train-plan llama3.1-70B --gpus 4'),
  ],
  ['tune cp llama3_1/8B_full my-8b.yaml', is('init llama3.1-8B --save my-8b.yaml')],
  ['CONFIG_FILE=llama3_8b.toml ./run_train.sh', says('there is no file "llama3_8b.toml"')],
  ['python convert_lora_to_gguf.py lora', says('--merge-lora DIR')],
  ['python merge_lora.py hf lora merged', is('convert-checkpoint hf merged --merge-lora lora')],
  // A script whose line has no model keeps that line.
  [
    'python inspect_model.py --device cpu',
    { says: ['write minimind inspect --help'], never: ['in the place of'] },
  ],
  [
    'llama-server -m llama-3.2-1b -ngl 8 --ram 64GB',
    is('fit llama-3.2-1b --gpu-layers 8 --ram 64GB --gpu rtx-4090'),
  ],
];

const SAID: readonly Guess[] = [
  ['safetensors info hf/model.safetensors', is('inspect hf/model.safetensors')],
  ['old.pt new.safetensors', is('convert-checkpoint old.pt new.safetensors')],
  ['upgrade old.pt new.pt', is('convert-checkpoint old.pt new.pt')],
  ['migrate old.pt new.safetensors', is('convert-checkpoint old.pt new.safetensors')],
  ['create 100M', is('plan --max-params 100M')],
  ['shrink my.yaml', says('compare-srte')],
  ['distill qwen3-8b qwen3-0.6b', is('compare qwen3-8b qwen3-0.6b')],
  ['encode "hello" --tokenizer tokenizer/tokenizer.json', says('minimind data FILE')],
  ['vram qwen3-8b 32k', is('fit qwen3-8b --context 32k')],
  ['tokens/s qwen3-8b 4090', is('fit qwen3-8b --gpu 4090')],
  ['can i run llama 70b on 4090', says('llama-3.3-70b', 'llama-3.1-70b')],
  ['fit llama-70b --gpu 4090', says('llama-3.3-70b', 'llama-3.1-70b')],
  ['fit llama 70b', says('llama-3.3-70b', 'llama-3.1-70b')],
  ['fit kimi', says('kimi-k2.5')],
  ['fit qwen 8b --gpu 4090', is('fit qwen3-8b --gpu 4090')],
  ['fit gemma 3 12b', is('fit gemma-3-12b')],
  ['fit qwen3-8b 4090 32k', is('fit qwen3-8b --gpu 4090 --context 32k')],
  ['profile qwen3-8b 32k', is('profile qwen3-8b --context 32k')],
  ['fit llama3.1 8b 4090 24gb', is("fit 'llama3.1 8b' --gpu '4090 24gb'")],
  ['fit qwen3-30b-a3b --cpu', is('fit qwen3-30b-a3b --cpu auto --gpu none')],
  ['fit qwen3-4b --gpu "gtx 1070"', 'as it is'],
  ['fit qwen3-8b --gpu "dual 3090"', 'as it is'],
  ['fit qwen3-8b --gpu 4060 --runtime ollama', 'as it is'],
  ['fit qwen3-8b --gpu 4060 --emit llama.cpp', 'as it is'],
];

export const CARDLESS_GUESSES: readonly Guess[] = [...SERVERS, ...TRAININGS, ...SAID];
