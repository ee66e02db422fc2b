/**
 * Lines of further tools, and of further habits: launchers before a script, modules of Python, overrides without dashes,
 * sentences. Each has the tool and what is right. They were written before any of them was run, from:
 *
 * - ollama/ollama 0164192 docs/cli.mdx; ggml-org/llama.cpp 003fb84 README.md, tools
 * - vllm-project/vllm 0dedfa2 docs/cli/README.md; sgl-project/sglang docs; InternLM/lmdeploy 1263d5c docs/en
 * - LostRuins/koboldcpp 2da346a koboldcpp.py; turboderp-org/exllamav3 0445820 README.md
 * - triton-inference-server/perf_analyzer 263c5f6 genai-perf/README.md; NVIDIA/TensorRT-LLM docs
 * - huggingface/trl f2cd577 docs/source/clis.md; huggingface/accelerate 00e4d26 docs/source/usage_guides
 * - deepspeedai/DeepSpeed docs/_tutorials/getting-started.md
 * - axolotl-ai-cloud/axolotl 067b021 README.md, docs; hiyouga/LLaMA-Factory ff6d4d1 README.md, examples/README.md
 * - pytorch/torchtune bd2a0fc docs/source/tune_cli.rst; Lightning-AI/litgpt 2685705 README.md, litgpt/__main__.py
 * - karpathy/nanoGPT 0110f3c README.md; karpathy/nanochat 92d63d4 README.md, scripts/base_train.py
 * - EleutherAI/lm-evaluation-harness 4e7e0d4 docs/interface.md; ml-explore/mlx-lm 0130d3b README.md
 */
import type { Guess, Right, Saying } from './guesses.js';

const AS_IT_IS = 'as it is';

const is = (...lines: string[]): readonly string[] => lines;

const says = (...texts: string[]): Saying => ({ says: texts });

const LINES: readonly (readonly [tool: string, line: string, right: Right])[] = [
  ['ollama', 'ollama run hf --verbose --ids 1,2,3', is('generate hf --ids 1,2,3 …')],
  ['ollama', 'ollama show hf --modelfile', is('profile hf')],
  ['ollama', 'ollama ps', is('list', 'doctor')],
  ['ollama', 'ollama serve', is('fit')],
  ['ollama', 'ollama create mine -f Modelfile', says('no store of models')],
  [
    'ollama',
    'generate hf --ids 1,2,3 --num_ctx 64 --num_predict 4 --repeat_penalty 1.1 --seed 42',
    is('generate hf --ids 1,2,3 --context 64 --max-tokens 4 --repetition-penalty 1.1 --seed 42'),
  ],

  ['llama.cpp', 'llama serve -m llama-3.2-1b --gpu 4090', is('fit llama-3.2-1b --gpu 4090')],
  ['llama.cpp', 'llama cli -m hf --ids 1,2,3', is('generate hf --ids 1,2,3')],
  [
    'llama.cpp',
    'llama-server -hf ggml-org/gemma-3-1b-it-GGUF --gpu 4090',
    says('gemma-3-1b', '--gpu 4090'),
  ],
  [
    'llama.cpp',
    'llama-server -m qwen3-8b --gpu 4060 -ngl 99 -c 32768 -fa on -ctk q8_0 -ctv q8_0 --jinja -t 8',
    is('fit qwen3-8b --gpu 4060 --context 32768 --attention fused --cache-dtype q8_0 …'),
  ],
  [
    'llama.cpp',
    'llama-bench -m hf -p 32 -n 8 -r 3',
    is('quick-test hf --only timing --context 32 --output-tokens 8 --repeat 3'),
  ],
  [
    'llama.cpp',
    'llama-perplexity -m hf --ids 1,2,3,4,5 --ctx-size 4 --ppl-stride 2',
    is('evaluate hf --ids 1,2,3,4,5 --context 4 --stride 2'),
  ],
  ['llama.cpp', 'llama-imatrix -m hf -f text.txt -o imatrix.gguf', says('--imatrix')],
  [
    'llama.cpp',
    'llama-gguf-split --split --split-max-size 1MB hf sharded --dry-run',
    is('convert-checkpoint hf sharded --shard-size 1MB --dry-run'),
  ],
  [
    'llama.cpp',
    'llama-server --model llama-3.2-1b --n-gpu-layers 99 --ctx-size 8192 --parallel 2 --cont-batching --gpu 4090',
    is('fit llama-3.2-1b --gpu 4090 --context 4096 --users 2'),
  ],
  [
    'llama.cpp',
    'llama-cli -m hf -no-cnv -n 4 --top-k 40 --top-p 0.95 --min-p 0.05 --ids 1,2,3',
    is('generate hf --max-tokens 4 --top-k 40 --top-p 0.95 --min-p 0.05 --ids 1,2,3'),
  ],
  [
    'llama.cpp',
    'llama-server -m gpt-oss-120b --gpu 3090 --n-cpu-moe 24 -ub 2048 -b 2048 -c 8192',
    is('fit gpt-oss-120b --gpu 3090 --cpu-experts 24 --context 8192'),
  ],
  [
    'llama.cpp',
    'fit qwen3-30b-a3b --gpu 3090 -ot ".ffn_.*_exps.=CPU" -ngl 99 --dtype q4_k_m',
    is('fit qwen3-30b-a3b --gpu 3090 --cpu-experts all --dtype q4_k_m'),
  ],
  [
    'llama.cpp',
    'fit qwen3-8b --gpu 4090 -md qwen3-0.6b --draft-max 8',
    is('fit qwen3-8b --gpu 4090 --draft qwen3-0.6b --draft-tokens 8 …'),
  ],
  [
    'llama.cpp',
    'fit llama-3.3-70b --gpu 3090 --gpus 2 -sm row -ts 1,1 --dtype q4_k_m',
    is('fit llama-3.3-70b --gpu 3090 --gpus 2 --tensor-split 1,1 --dtype q4_k_m'),
  ],

  [
    'vllm',
    'python -m vllm.entrypoints.openai.api_server --model qwen3-0.6b --max-model-len 4096 --gpu l4',
    is('fit qwen3-0.6b --context 4096 --gpu l4'),
  ],
  [
    'vllm',
    'vllm serve qwen3-0.6b -tp 2 -pp 2 --gpu h100',
    is('fit qwen3-0.6b --tensor-parallel 2 --pipeline-parallel 2 --gpu h100 …'),
  ],
  [
    'vllm',
    'vllm serve qwen3-0.6b --max-model-len 8k --kv-cache-dtype fp8_e4m3 --gpu l4',
    is('fit qwen3-0.6b --context 8k --cache-dtype fp8_e4m3 --gpu l4'),
  ],
  [
    'vllm',
    `vllm serve qwen3-8b --speculative-config '{"model":"qwen3-0.6b","num_speculative_tokens":4}' --gpu h100`,
    says('--draft'),
  ],
  [
    'vllm',
    'vllm serve deepseek-v3 --enable-expert-parallel -tp 8 --gpu h200',
    is('fit deepseek-v3 --tensor-parallel 8 --gpu h200 …'),
  ],
  [
    'vllm',
    'vllm bench serve --model qwen3-0.6b --random-input-len 512 --random-output-len 128 --request-rate 4 --num-prompts 100 --gpu l4',
    is('fit qwen3-0.6b --prompt-tokens 512 --output-tokens 128 --qps 4 --gpu l4'),
  ],
  [
    'vllm',
    'vllm bench throughput --model hf --input-len 32 --output-len 8 --load-format dummy --enforce-eager',
    is('fit hf --prompt-tokens 32 --output-tokens 8 --eager --gpu h100-80gb'),
  ],
  ['vllm', 'vllm serve qwen3-0.6b --gpu l4 --cpu-offload-gb 4', is('fit qwen3-0.6b --gpu l4 …')],
  [
    'vllm',
    'vllm serve qwen3-0.6b --gpu l4 --max-num-seqs=64 --max-model-len=4096 --dtype=bfloat16 --api-key abc --host 0.0.0.0',
    is('fit qwen3-0.6b --gpu l4 --batch 64 --context 4096 --dtype bfloat16'),
  ],
  ['vllm', 'vllm collect-env', is('doctor')],

  [
    'sglang',
    'python3 -m sglang.launch_server --model-path qwen3-0.6b --tp 2 --port 30000 --gpu h100',
    is('fit qwen3-0.6b --tensor-parallel 2 --gpu h100 …'),
  ],
  [
    'sglang',
    'python -m sglang.bench_one_batch --model-path hf --batch 2 --input-len 32 --output-len 8',
    is('quick-test hf --only timing --batch 2 --context 32 --output-tokens 8'),
  ],
  [
    'sglang',
    'serve --model-path qwen3-0.6b --mem-fraction-static 0.8 --kv-cache-dtype fp8_e5m2 --max-running-requests 16 --gpu l4',
    is('fit qwen3-0.6b --gpu-memory-utilization 0.8 --cache-dtype fp8_e5m2 --batch 16 --gpu l4'),
  ],

  [
    'lmdeploy',
    'lmdeploy serve api_server qwen3-0.6b --tp 2 --session-len 8192 --gpu h100',
    is('fit qwen3-0.6b --tensor-parallel 2 --context 8192 --gpu h100 …'),
  ],
  ['lmdeploy', 'lmdeploy chat hf --ids 1,2,3', is('generate hf --ids 1,2,3 …')],
  [
    'lmdeploy',
    'lmdeploy serve api_server qwen3-0.6b --quant-policy 8 --cache-max-entry-count 0.8 --gpu l4',
    is('fit qwen3-0.6b --cache-dtype int8 --gpu l4 …'),
  ],
  [
    'lmdeploy',
    'lmdeploy lite auto_awq hf --w-bits 4 --w-group-size 32 --work-dir out --dry-run',
    is('convert-checkpoint hf out --quantize int4 --group 32 --dry-run'),
  ],

  [
    'trtllm',
    'trtllm-serve qwen3-0.6b --tp_size 2 --max_batch_size 64 --max_seq_len 4096 --kv_cache_free_gpu_memory_fraction 0.9 --gpu h100',
    is('fit qwen3-0.6b --tensor-parallel 2 --batch 64 --context 4096 --gpu h100 …'),
  ],
  [
    'genaiperf',
    'genai-perf profile -m qwen3-0.6b --concurrency 8 --isl 512 --osl 128 --gpu l4',
    is('fit qwen3-0.6b --users 8 --prompt-tokens 512 --output-tokens 128 --gpu l4'),
  ],
  [
    'koboldcpp',
    'koboldcpp.py --model llama-3.2-1b --contextsize 8192 --gpulayers 99 --usecublas --flashattention --quantkv 1 --gpu 4090',
    is(
      'fit llama-3.2-1b --context 8192 --attention fused --cache-dtype q8_0 --gpu 4090',
      'fit llama-3.2-1b --context 8192 --gpu-layers 99 --attention fused --cache-dtype q8_0 --gpu 4090',
    ),
  ],
  [
    'koboldcpp',
    'koboldcpp qwen3-8b --gpulayers 20 --contextsize 4096 --gpu 4060 --dtype q4_k_m',
    is('fit qwen3-8b --gpu-layers 20 --context 4096 --gpu 4060 --dtype q4_k_m'),
  ],
  [
    'webui',
    'python server.py --model llama-3.2-1b --loader llama.cpp --ctx-size 8192 --cache-type q8_0 --gpu 4090',
    is('fit llama-3.2-1b --context 8192 --cache-dtype q8_0 --gpu 4090'),
  ],
  [
    'exllama',
    'python convert.py -i hf -o out -w work -b 4.0 --dry-run',
    is('convert-checkpoint hf out --quantize int4 --dry-run'),
  ],

  ['transformers', 'transformers serve qwen3-0.6b --gpu l4', is('fit qwen3-0.6b --gpu l4')],
  ['transformers', 'transformers chat hf --ids 1,2,3', is('generate hf --ids 1,2,3 …')],
  ['transformers', 'transformers env', is('doctor')],
  [
    'transformers',
    'fit llama-3.2-1b --gpu 4090 --torch-dtype auto --attn-implementation sdpa --device-map cuda:0',
    is('fit llama-3.2-1b --gpu 4090 --attention fused'),
  ],
  [
    'transformers',
    'generate hf --ids 1,2,3 --max-new-tokens=4 --num-beams=4',
    is('generate hf --ids 1,2,3 --max-tokens 4'),
  ],
  [
    'transformers',
    'generate hf --ids 1,2,3 --max_new_tokens 4 --no_repeat_ngram_size 3 --length_penalty 1.0',
    is('generate hf --ids 1,2,3 --max-tokens 4'),
  ],
  [
    'transformers',
    'train-plan my.yaml --per_device_train_batch_size=2 --lr_scheduler_type=constant_with_warmup --warmup_steps=100 --max_steps=1000',
    is(
      'train-plan my.yaml --batch 2 --schedule constant --warmup 100 --steps 1000',
      'train-plan my.yaml --batch 2 --schedule constant_with_warmup --warmup 100 --steps 1000',
    ),
  ],
  [
    'transformers',
    'train-plan my.yaml --lr_scheduler_type warmup_stable_decay --max_steps 1000 --num_decay_steps 100 --num_warmup_steps 50',
    is(
      'train-plan my.yaml --schedule wsd --steps 1000 --decay 100 --warmup 50',
      'train-plan my.yaml --schedule warmup_stable_decay --steps 1000 --decay 100 --warmup 50',
    ),
  ],
  [
    'transformers',
    'fit my.yaml --gpu h100 --for training --optim adafactor --bf16 --gradient_checkpointing --torch_compile True',
    is(
      'fit my.yaml --gpu h100 --for training --optimizer adafactor --precision mixed --recompute full',
    ),
  ],
  [
    'transformers',
    'fit my.yaml --gpu 3090 --for training --optim adamw_8bit --auto_find_batch_size true',
    is('fit my.yaml --gpu 3090 --for training --optimizer adamw-8bit'),
  ],
  [
    'transformers',
    'fit my.yaml --gpu h100 --for training --use_liger_kernel True --per_device_train_batch_size 2 --max_length 128',
    is('fit my.yaml --gpu h100 --for training --loss chunked --micro-batch 2 --context 128'),
  ],
  [
    'transformers',
    'fit my.yaml --gpu h100 --gpus 4 --for training --fsdp "full_shard auto_wrap offload"',
    is('fit my.yaml --gpu h100 --gpus 4 --for training --zero 3 …'),
  ],
  [
    'transformers',
    'fit my.yaml --gpu h100 --for training --bf16 --tf32 True --ddp_find_unused_parameters False',
    is('fit my.yaml --gpu h100 --for training --precision mixed'),
  ],

  [
    'trl',
    'trl sft --model_name_or_path my.yaml --max_steps 100 --num_processes 4 --gpu h100',
    is('train-plan my.yaml --steps 100 --gpus 4 --gpu h100'),
  ],
  [
    'trl',
    'trl dpo --model_name_or_path my.yaml --max_steps 100 --beta 0.1',
    is('train-plan my.yaml --steps 100'),
  ],
  [
    'trl',
    'trl grpo --model_name_or_path my.yaml --max_steps 100 --num_generations 8',
    is('train-plan my.yaml --steps 100'),
  ],
  [
    'trl',
    'trl sft --model_name_or_path my.yaml --use_peft --lora_r 16 --lora_alpha 32 --max_steps 100',
    is('fit my.yaml --for lora --rank 16'),
  ],
  [
    'peft',
    'fit llama-3.2-1b --gpu 4090 --use_peft --lora_r 16 --lora_alpha 32 --lora_target_modules q_proj,v_proj',
    is('fit llama-3.2-1b --gpu 4090 --for lora --rank 16 --targets q_proj,v_proj'),
  ],
  ['trl', 'trl vllm-serve --model qwen3-0.6b --gpu l4', is('fit qwen3-0.6b --gpu l4')],
  ['trl', 'trl env', is('doctor')],
  [
    'accelerate',
    'accelerate launch --num_processes 8 --mixed_precision bf16 train.py my.yaml --gpu h100',
    is('train-plan my.yaml --gpus 8 --gpu h100 …', 'fit my.yaml --gpus 8 --gpu h100 …'),
  ],
  [
    'accelerate',
    'accelerate estimate-memory llama-3.2-1b --dtypes float32 float16 int8',
    is('profile llama-3.2-1b --details'),
  ],
  ['accelerate', 'accelerate env', is('doctor')],

  [
    'torchrun',
    'torchrun --nproc_per_node=8 --nnodes=2 train.py my.yaml --gpu h100',
    is('train-plan my.yaml --gpus 16 --gpu h100'),
  ],
  [
    'deepspeed',
    'deepspeed --num_gpus 8 train.py my.yaml --per_device_train_batch_size 4 --gpu h100',
    is('train-plan my.yaml --gpus 8 --batch 4 --gpu h100'),
  ],
  [
    'deepspeed',
    'deepspeed --num_gpus=4 --num_nodes=2 train.py --model_name_or_path my.yaml --deepspeed ds_zero3.json --max_steps 100 --gpu h100',
    is('train-plan my.yaml --gpus 8 --zero 3 --steps 100 --gpu h100'),
  ],
  [
    'deepspeed',
    'fit my.yaml --gpu h100 --gpus 8 --for training --zero-stage 3 --offload_optimizer cpu',
    is('fit my.yaml --gpu h100 --gpus 8 --for training --zero 3 --offload optimizer'),
  ],
  ['deepspeed', 'ds_report', is('doctor')],
  [
    'megatron',
    'fit my.yaml --gpu h100 --gpus 16 --for training --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --use-distributed-optimizer --bf16 --micro-batch-size 2',
    is(
      'fit my.yaml --gpu h100 --gpus 16 --for training --tensor-parallel 2 --pipeline-parallel 2 --zero 1 --precision mixed --micro-batch 2',
    ),
  ],
  [
    'megatron',
    'train-plan my.yaml --train-iters 1000 --micro-batch-size 8 --global-batch-size 64 --seq-length 128',
    is('train-plan my.yaml --steps 1000 --batch 8 --accumulation 8 --context 128'),
  ],

  ['axolotl', 'axolotl merge-lora hf --lora-model-dir lora --dry-run', says('--merge-lora lora')],
  [
    'axolotl',
    'axolotl train my.yaml --learning-rate 2e-4 --micro-batch-size 2 --gradient-accumulation-steps 4 --num-epochs 1 --data-tokens 1M',
    is('train-plan my.yaml --lr 2e-4 --batch 2 --accumulation 4 --epochs 1 --data-tokens 1M'),
  ],
  ['axolotl', 'axolotl inference hf --ids 1,2,3', is('generate hf --ids 1,2,3')],
  ['axolotl', 'axolotl evaluate hf --ids 1,2,3,4', is('evaluate hf --ids 1,2,3,4')],
  [
    'axolotl',
    'axolotl train my.yaml --gpu h100 --launcher torchrun -- --nproc_per_node=2',
    is('train-plan my.yaml --gpu h100 --gpus 2'),
  ],
  [
    'llama-factory',
    'llamafactory-cli train my.yaml learning_rate=1e-5 logging_steps=1',
    is('train-plan my.yaml --lr 1e-5'),
  ],
  [
    'llama-factory',
    'llamafactory-cli chat hf --ids 1,2,3 --template qwen3_nothink',
    is('generate hf --ids 1,2,3 …'),
  ],
  ['llama-factory', 'llamafactory-cli webchat hf --ids 1,2,3', is('generate hf --ids 1,2,3 …')],
  [
    'llama-factory',
    'llamafactory-cli api qwen3-0.6b infer_backend=vllm vllm_enforce_eager=true --gpu l4',
    is('fit qwen3-0.6b --gpu l4 …'),
  ],
  [
    'llama-factory',
    'fit llama-3.2-1b --gpu 4090 --finetuning_type lora --lora_rank 8 --lora_target all --quantization_bit 4',
    is('fit llama-3.2-1b --gpu 4090 --for qlora --rank 8 …'),
  ],
  ['llama-factory', 'llamafactory-cli version', is('--version')],
  [
    'unsloth',
    'unsloth-cli.py --model_name llama-3.2-1b --max_seq_length 2048 --load_in_4bit --r 16 --gpu 4090',
    is('fit llama-3.2-1b --context 2048 --for qlora --rank 16 --gpu 4090'),
  ],

  [
    'torchtune',
    'tune run lora_finetune_single_device --config my.yaml epochs=1 --data-tokens 1M',
    is('fit my.yaml --for lora'),
  ],
  [
    'torchtune',
    'tune run --nproc_per_node 2 full_finetune_distributed --config my.yaml --gpu h100',
    is('train-plan my.yaml --gpus 2 --gpu h100'),
  ],
  ['torchtune', 'tune validate my.yaml', is('validate my.yaml')],
  ['torchtune', 'tune cp tiny mine.yaml', is('init tiny --save mine.yaml')],
  ['torchtune', 'tune cat tiny', is('init tiny --save -', 'init tiny', 'profile tiny')],
  [
    'torchtune',
    'fit my.yaml --gpu 4090 --for training enable_activation_checkpointing=True batch_size=2',
    is('fit my.yaml --gpu 4090 --for training --recompute full --micro-batch 2'),
  ],
  [
    'litgpt',
    'litgpt pretrain my.yaml --train.max_tokens 10_000_000 --train.micro_batch_size 4 --train.global_batch_size 64',
    is('train-plan my.yaml --tokens 10_000_000 --batch 4 --accumulation 16'),
  ],
  [
    'litgpt',
    'litgpt finetune_lora my.yaml --lora_r 8 --train.epochs 1 --data-tokens 1M --precision bf16-true',
    is(
      'train-plan my.yaml --epochs 1 --data-tokens 1M',
      'fit --for lora my.yaml --rank 8 --precision bf16-true',
    ),
  ],
  [
    'litgpt',
    'litgpt serve qwen3-0.6b --devices 2 --gpu l4',
    is('fit qwen3-0.6b --gpus 2 --gpu l4'),
  ],
  [
    'litgpt',
    'litgpt generate hf --ids 1,2,3 --max_new_tokens 4 --top_k 50 --quantize bnb.nf4',
    is('generate hf --ids 1,2,3 --max-tokens 4 --top-k 50 --weights int4'),
  ],
  ['litgpt', 'litgpt convert_pretrained_checkpoint hf out --dry-run', says('expected a change')],

  [
    'nanogpt',
    'python train.py my.yaml --device=cpu --compile=False --block_size=64 --batch_size=12 --max_iters=2000 --dropout=0.0',
    is('train-plan my.yaml --context 64 --batch 12 --steps 2000'),
  ],
  [
    'nanogpt',
    'python sample.py --out_dir=hf --ids 1,2,3 --max_new_tokens=4',
    is('generate hf --ids 1,2,3 --max-tokens 4'),
  ],
  [
    'nanochat',
    'train-plan my.yaml --device-batch-size=2 --max-seq-len 128 --num-iterations 1000 --warmup-steps 40',
    is('train-plan my.yaml --batch 2 --context 128 --steps 1000 --warmup 40'),
  ],
  [
    'lm-eval',
    'lm_eval run --model hf --model_args pretrained=hf,dtype=float32 --ids 1,2,3,4 --device cuda:0 --batch_size auto',
    is('evaluate hf --ids 1,2,3,4', 'evaluate hf --ids 1,2,3,4 --device cuda'),
  ],
  ['lm-eval', 'lm-eval ls tasks', says('benchmarks')],
  [
    'lm-eval',
    'lm_eval --model hf --model_args pretrained=hf --tasks lambada_openai --limit 10',
    says('--text'),
  ],
  [
    'mlx',
    'python -m mlx_lm convert --hf-path hf --mlx-path out -q --q-bits 4 --q-group-size 32 --dry-run',
    is('convert-checkpoint hf out --quantize int4 --group 32 --dry-run'),
  ],
  [
    'mlx',
    'mlx_lm.lora --model my.yaml --train --iters 600 --batch-size 2 --learning-rate 1e-5',
    is('fit my.yaml --for lora --micro-batch 2'),
  ],
  [
    'mlx',
    'mlx_lm.fuse --model hf --adapter-path lora --save-path merged --dry-run',
    is('convert-checkpoint hf merged --merge-lora lora --dry-run'),
  ],
  ['mlx', 'mlx_lm.perplexity --model hf --ids 1,2,3,4', is('evaluate hf --ids 1,2,3,4')],

  // Sequences of a whole step, adapters, and types of weights beside others.
  [
    'megatron',
    'train-plan my.yaml --global-batch-size 64 --tokens 1B --gpus 8 --gpu h100',
    is('train-plan my.yaml --batch 8 --accumulation 1 --tokens 1B --gpus 8 --gpu h100'),
  ],
  [
    'megatron',
    'train-plan my.yaml --global-batch-size 64 --micro-batch-size 4 --tokens 1B --gpus 8 --gpu h100',
    is('train-plan my.yaml --accumulation 2 --batch 4 --tokens 1B --gpus 8 --gpu h100'),
  ],
  [
    'megatron',
    'train-plan my.yaml --micro-batch-size 4 --global-batch-size 64 --tensor-model-parallel-size 2 --gpus 8 --gpu h100',
    // 4 sequences, 4 accumulated, 4 replicas.
    is('train-plan my.yaml --batch 4 --accumulation 4 --tensor-parallel 2 --gpus 8 --gpu h100'),
  ],
  [
    'llama-factory',
    'llamafactory-cli train --model_name_or_path qwen3-8b --finetuning_type lora --lora_rank 8 --quantization_bit 4 --cutoff_len 2048 --gpu 4090',
    is('fit qwen3-8b --rank 8 --context 2048 --gpu 4090 --for qlora'),
  ],
  [
    'transformers',
    'train-plan my.yaml --optim paged_adamw_8bit --gpu 4090 --max_steps 100',
    says('--optim paged_adamw_8bit is counted by minimind fit, not here'),
  ],
  [
    'axolotl',
    'axolotl train qwen3-8b --adapter qlora --load_in_4bit true --lora_r 32 --sequence_len 4096 --gpu 4090',
    is('fit qwen3-8b --rank 32 --context 4096 --gpu 4090 --for qlora'),
  ],
  [
    'mlx',
    'mlx_lm.lora --model qwen3-8b --train --iters 600 --num-layers 16',
    is('fit qwen3-8b --for lora'),
  ],
  [
    'sglang',
    'python3 -m sglang.launch_server --model-path deepseek-v3 --tp 8 --dp 8 --enable-dp-attention --gpu 8xh200',
    is('fit deepseek-v3 --gpu 8xh200 --dp-attention 8'),
  ],
  [
    'sglang',
    'python3 -m sglang.launch_server --model-path deepseek-v3 --tp 16 --dp 8 --enable-dp-attention --gpu h200 --gpus 16',
    is('fit deepseek-v3 --gpu h200 --gpus 16 --dp-attention 8 --tensor-parallel 2'),
  ],
  ...['blk.(1[0-9]).ffn_.*_exps.=CPU', '.ffn_(up|down)_exps.=CPU', 'exps=CPU,shexp=CUDA0'].map(
    (rule): readonly [string, string, Right] => [
      'llama.cpp',
      `fit qwen3-30b-a3b --gpu 3090 -ot "${rule}" --dtype q4_k_m`,
      says('has no counterpart here: write minimind fit qwen3-30b-a3b --gpu 3090 --dtype q4_k_m'),
    ],
  ),
  [
    'llama.cpp',
    'fit qwen3-30b-a3b --gpu 3090 -ot ".ffn_(gate|up|down)_exps.=CPU" --dtype q4_k_m',
    is('fit qwen3-30b-a3b --gpu 3090 --cpu-experts all --dtype q4_k_m'),
  ],
  [
    'ollama',
    'run llama3.1:8b --num-ctx 8192 --gpu 4090',
    is('fit llama3.1:8b --context 8192 --gpu 4090'),
  ],
  [
    'vllm',
    'vllm bench throughput --model qwen3-8b --input-len 32 --output-len 8 --gpu h100',
    is('fit qwen3-8b --prompt-tokens 32 --output-tokens 8 --gpu h100'),
  ],
  ['llama.cpp', 'llama-server -hf qwen3-8b --gpu 4090', is('fit qwen3-8b --gpu 4090')],
  ...[
    '--dtype bfloat16 --quantization fp8',
    '--quantization fp8 --dtype half',
    '--dtype auto --quantization fp8',
  ].map((types): readonly [string, string, Right] => [
    'vllm',
    `vllm serve qwen3-8b ${types} --gpu h100`,
    is('fit qwen3-8b --dtype fp8 --gpu h100'),
  ]),

  ['habit', 'minimind profile my.yaml', is('profile my.yaml')],
  ['habit', 'npx minimind profile my.yaml', is('profile my.yaml')],
  ['habit', '--json profile my.yaml', is('profile my.yaml --json')],
  ['habit', 'Profile my.yaml', is('profile my.yaml')],
  ['habit', 'profile -f my.yaml', is('profile my.yaml')],
  ['habit', 'profile model=my.yaml', is('profile my.yaml')],
  ['habit', 'fit qwen3-8b on 4090', is('fit qwen3-8b --gpu 4090')],
  ['habit', 'fit qwen3-8b on a 4090', is('fit qwen3-8b --gpu 4090')],
  ['habit', 'compare qwen3-8b vs llama-3.1-8b', is('compare qwen3-8b llama-3.1-8b')],
  ['habit', 'qwen3-8b', is('profile qwen3-8b')],
  [
    'habit',
    'fit qwen3-8b --gpu RTX4090 --quant 4bit --ctx 8192',
    is('fit qwen3-8b --gpu RTX4090 --dtype 4bit --context 8192'),
  ],
  [
    'habit',
    'convert old.pt to new.safetensors --dry-run',
    is('convert-checkpoint old.pt new.safetensors --dry-run'),
  ],
  ['habit', 'export hf to model.onnx', is('export hf --save model.onnx')],
  ['habit', 'profile my.yaml --output-format json', is('profile my.yaml --format json')],
  ['habit', 'profile my.yaml --no-colour', is('profile my.yaml --no-color')],
  ['habit', 'fit my.yaml -g h100', is('fit my.yaml --gpu h100')],
  ['habit', 'plan 500m for 4090', is('plan --max-params 500m --gpu 4090')],
  [
    'habit',
    'train-plan my.yaml --tokens 1B --gpu 8xh100 --bs 2 --ga 2',
    is('train-plan my.yaml --tokens 1B --gpu 8xh100 --batch 2 --accumulation 2'),
  ],
  ['habit', 'hf/config.json', is('profile hf/config.json')],
  ['habit', 'quick-test --config my.yaml old.pt', is('quick-test my.yaml --checkpoint old.pt')],
  [
    'habit',
    'evaluate old.pt --model_config=my.yaml --text a.txt',
    is('evaluate my.yaml --text a.txt --checkpoint old.pt'),
  ],
  ['habit', 'profile my.yaml -o=out.json', AS_IT_IS],
];

export const HABIT_GUESSES: readonly Guess[] = LINES.map(([, line, right]) => [line, right]);
