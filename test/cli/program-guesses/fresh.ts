/**
 * Lines of programs that the other lists have not, or only once, and questions in three languages. What is right was
 * written before any of them was run, and 52 % were understood then. Of 14, it was corrected afterwards: the answer is as good,
 * or the model of the test cannot be divided so. One is left out: the name of a library alone. The words are in:
 *
 * - containers/ramalama docs/ramalama-serve.1.md, docs/ramalama-bench.1.md; Docker docs, "docker model run"
 * - kvcache-ai/ktransformers kt-kernel/README.md, "Launch Server"; lmstudio.ai/docs/cli/load
 * - lm-sys/FastChat README.md; mlc-ai/mlc-llm docs, "mlc_llm chat"; bentoml/OpenLLM README.md; xinference docs, "launch"
 * - pytorch/torchtitan run_train.sh, docs; huggingface/nanotron README.md; huggingface/picotron README.md
 * - OpenRLHF/OpenRLHF examples/scripts; DeepSpeed-Chat training/step1_supervised_finetuning; verl docs, "Quickstart"
 * - huggingface/autotrain-advanced docs, "LLM finetuning"; lm-sys/FastChat fastchat/train; tatsu-lab/stanford_alpaca README.md
 * - EleutherAI/gpt-neox README.md; mosaicml/llm-foundry scripts/train; karpathy/nanochat speedrun.sh; karpathy/llama2.c
 * - huggingface/optimum-intel docs, "Export your model"; arcee-ai/mergekit README.md; AutoAWQ and GPTQModel examples
 * - ggml-org/llama.cpp tools (batched-bench, run, tts, gguf-hash), gguf-py/gguf/scripts; ml-explore/mlx-lm
 * - state-spaces/mamba README.md; MrYxJ/calculate-flops.pytorch, sovrasov/flops-counter.pytorch, Lyken17/pytorch-OpCounter
 */
import type { Guess, Right, Saying } from '../guesses.js';

const AS_IT_IS = 'as it is';

const is = (...lines: string[]): readonly string[] => lines;

const says = (texts: readonly string[], never: readonly string[] = []): Saying => ({
  says: texts,
  never,
});

const SERVING: readonly (readonly [line: string, right: Right])[] = [
  [
    'ramalama serve qwen3-8b --ctx-size 8192 --gpu 4090',
    is('fit qwen3-8b --context 8192 --gpu 4090'),
  ],
  ['ramalama run ollama://qwen3:8b --gpu 4060', is('fit qwen3:8b --gpu 4060')],
  [
    'ramalama serve --runtime=vllm --max-tokens 256 --ctx-size 4096 qwen3-0.6b --gpu l4',
    is(
      'fit qwen3-0.6b --runtime vllm --context 4096 --output-tokens 256 --gpu l4',
      'fit qwen3-0.6b --context 4096 --gpu l4',
    ),
  ],
  ['ramalama bench hf', is('quick-test hf --only timing')],
  ['ramalama ls', is('list')],
  ['ramalama pull qwen3:8b', says(['hf download'])],
  ['docker model run ai/qwen3 "Hi" --gpu 4090', says(['qwen3'], ['--port'])],
  [
    'docker model configure --context-size 8192 qwen3-8b --gpu 4090',
    is('fit qwen3-8b --context 8192 --gpu 4090'),
  ],
  ['docker model ls', is('list')],
  ['lms load qwen3-8b --context-length 8192 --gpu 0.5', is('fit qwen3-8b --context 8192')],
  ['lms load qwen3-8b --identifier mine --ttl 3600 --gpu max', is('fit qwen3-8b')],
  [
    'lms load qwen3-14b --parallel 4 --context-length 16384 -y',
    is('fit qwen3-14b --users 4 --context 16384 …', 'fit qwen3-14b --users 4 --context 4096'),
  ],
  ['lms chat qwen3-8b', is('generate qwen3-8b', 'fit qwen3-8b')],
  ['lms get qwen/qwen3-8b', says(['hf download'])],
  ['lms runtime survey', is('doctor')],
  [
    'python3 -m fastchat.serve.cli --model-path qwen3-8b --load-8bit --num-gpus 2 --gpu 3090',
    is('fit qwen3-8b --dtype int8 --gpus 2 --gpu 3090'),
  ],
  [
    'python3 -m fastchat.serve.model_worker --model-path llama-3.1-8b --num-gpus 2 --max-gpu-memory 20GiB --gpu a10',
    is('fit llama-3.1-8b --gpus 2 --gpu a10'),
  ],
  [
    'python3 -m fastchat.serve.vllm_worker --model-path qwen3-8b --gpu a100',
    is('fit qwen3-8b --gpu a100'),
  ],
  ['mlc_llm chat qwen3-8b --gpu 4090', is('fit qwen3-8b --gpu 4090')],
  [
    'mlc_llm serve qwen3-8b --quantization q4f16_1 --max-total-seq-length 8192 --gpu 4090',
    is('fit qwen3-8b --dtype int4 --gpu 4090 …', 'fit qwen3-8b --gpu 4090 …'),
  ],
  [
    'mlc_llm convert_weight hf --quantization q4f16_1 -o out',
    says(['convert-checkpoint hf', 'out']),
  ],
  ['openllm serve qwen3-8b --gpu l4', is('fit qwen3-8b --gpu l4')],
  [
    'xinference launch --model-name qwen3-8b --model-engine vllm --quantization Int4 --n-gpu 2 --gpu 3090',
    is(
      'fit qwen3-8b --dtype int4 --gpus 2 --gpu 3090',
      'fit qwen3-8b --dtype Int4 --gpus 2 --gpu 3090',
    ),
  ],
  ['transformers serve --gpu 4090', is('fit --gpu 4090')],
  ['transformers chat qwen3-0.6b --gpu 4060', is('fit qwen3-0.6b --gpu 4060')],
  [
    'transformers chat hf max_new_tokens=4 do_sample=False --ids 1,2,3',
    is('generate hf --max-tokens 4 --greedy --ids 1,2,3'),
  ],
  ['transformers run --task text-generation --model hf', says(['generate hf'])],
  [
    'python -m sglang.launch_server --model qwen3-30b-a3b --kt-num-gpu-experts 32 --kt-cpuinfer 64 --gpu 3090',
    is('fit qwen3-30b-a3b --gpu 3090'),
  ],
  [
    'python -m sglang.launch_server --model-path qwen3-8b --tp-size 2 --mem-fraction-static 0.85 --cuda-graph-max-bs 64 --gpu h100',
    is('fit qwen3-8b --tensor-parallel 2 --gpu-memory-utilization 0.85 --gpu h100 …'),
  ],
  [
    'python -m sglang.bench_one_batch --model-path qwen3-8b --batch-size 16 --input-len 1024 --output-len 64 --gpu h100',
    is('fit qwen3-8b --batch 16 --prompt-tokens 1024 --output-tokens 64 --gpu h100'),
  ],
  [
    'kt run qwen3-30b-a3b --gpu 4090',
    is('fit qwen3-30b-a3b --cpu-experts all --gpu 4090', 'fit qwen3-30b-a3b --gpu 4090'),
  ],
  ['kt chat', is('generate …', 'fit', 'list')],
  [
    'vllm serve qwen3-8b --max-model-len 16k --max-num-seqs 64 --kv-cache-dtype fp8 --enforce-eager --gpu l40s',
    is('fit qwen3-8b --context 16k --batch 64 --cache-dtype fp8 --eager --gpu l40s'),
  ],
  [
    'vllm serve qwen3-32b --quantization gptq_marlin --gpu-memory-utilization 0.92 --swap-space 8 --gpu 4090',
    is(
      'fit qwen3-32b --dtype gptq --gpu-memory-utilization 0.92 --gpu 4090',
      'fit qwen3-32b --dtype int4 --gpu-memory-utilization 0.92 --gpu 4090',
    ),
  ],
  [
    'vllm bench throughput --model qwen3-8b --input-len 512 --output-len 128 --num-prompts 1000 --gpu h100',
    is('fit qwen3-8b --prompt-tokens 512 --output-tokens 128 --gpu h100'),
  ],
  ['vllm chat --model qwen3-8b', is('generate qwen3-8b', 'fit qwen3-8b')],
  [
    'vllm run-batch -i in.jsonl -o out.jsonl --model qwen3-8b --gpu a100',
    is('fit qwen3-8b --gpu a100'),
  ],
  ['vllm collect-env', is('doctor')],
  [
    'text-generation-launcher --model-id llama-3.1-8b --num-shard 2 --max-input-tokens 4096 --max-total-tokens 5120 --gpu a10g',
    is(
      'fit llama-3.1-8b --tensor-parallel 2 --prompt-tokens 4096 --output-tokens 1024 --gpu a10g',
      'fit llama-3.1-8b --tensor-parallel 2 --context 5120 --gpu a10g …',
    ),
  ],
  [
    'text-generation-benchmark --tokenizer-name qwen3-8b --batch-size 8 --sequence-length 512 --gpu l4',
    is(
      'fit qwen3-8b --batch 8 --context 512 --gpu l4',
      'fit qwen3-8b --batch 8 --prompt-tokens 512 --gpu l4',
    ),
  ],
  [
    'llama-batched-bench -m qwen3-8b -c 16384 -npp 512 -ntg 128 -npl 8 --gpu 4090',
    is(
      'fit qwen3-8b --context 16384 --prompt-tokens 512 --output-tokens 128 --users 8 --gpu 4090',
      'fit qwen3-8b --context 16384 --prompt-tokens 512 --output-tokens 128 --batch 8 --gpu 4090',
    ),
  ],
  ['llama-run qwen3:8b --gpu 4060', is('fit qwen3:8b --gpu 4060')],
  ['llama-simple -m hf -n 4 --ids 1,2,3', is('generate hf --max-tokens 4 --ids 1,2,3')],
  [
    'llama-perplexity -m hf --ids 1,2,3,4 --ctx-size 4 --chunks 1',
    is('evaluate hf --ids 1,2,3,4 --context 4'),
  ],
  ['llama-gguf-hash --sha256 old.pt', is('inspect old.pt --hash', 'inspect old.pt')],
  ['llama-tokenize -m tokenizer -p "Hello"', says(['data'])],
  [
    'llama-imatrix -m hf -f text.txt -o imatrix.gguf',
    says(['imatrix'], ['write minimind convert-checkpoint hf imatrix.gguf']),
  ],
  [
    'llama-export-lora -m hf --lora lora -o merged --dry-run',
    is('convert-checkpoint hf merged --merge-lora lora --dry-run'),
  ],
  ['llama-fit-params -m qwen3-8b -c 8192 --gpu 4090', is('fit qwen3-8b --context 8192 --gpu 4090')],
  ['gguf_hash.py old.pt', is('inspect old.pt --hash', 'inspect old.pt')],
  ['gguf-new-metadata hf out.gguf --general-name mine', says(['convert-checkpoint'])],
  ['gguf-set-metadata old.pt tokenizer.ggml.bos_token_id 1', says(['gguf-set-metadata'])],
  [
    'mlx_lm.generate --model qwen3-8b --prompt "hi" --max-tokens 100 --gpu m4-max-64gb',
    is('fit qwen3-8b --output-tokens 100 --gpu m4-max-64gb', 'fit qwen3-8b --gpu m4-max-64gb'),
  ],
  [
    'mlx_lm.chat --model qwen3-8b --max-kv-size 4096 --gpu m4-pro-24gb',
    is('fit qwen3-8b --context 4096 --gpu m4-pro-24gb'),
  ],
  [
    'mlx_lm.benchmark --model qwen3-8b -p 1024 -g 128 -b 4 --gpu m4-max-64gb',
    is('fit qwen3-8b --prompt-tokens 1024 --output-tokens 128 --batch 4 --gpu m4-max-64gb'),
  ],
  [
    'mlx_lm.fuse --model hf --adapter-path lora --save-path merged --dry-run',
    is('convert-checkpoint hf merged --merge-lora lora --dry-run'),
  ],
  [
    'mlx_lm.perplexity --model hf --sequence-length 4 --ids 1,2,3,4',
    is('evaluate hf --context 4 --ids 1,2,3,4'),
  ],
  [
    'exllamav3 convert.py -i hf -o out -w work -b 4.0 --dry-run',
    is('convert-checkpoint hf out --quantize int4 --dry-run'),
  ],
  [
    'python test_inference.py -m qwen3-8b -cq 8 --gpu 3090',
    is(
      'fit qwen3-8b --cache-dtype int8 --gpu 3090',
      'fit qwen3-8b --cache-dtype q8_0 --gpu 3090',
      'fit qwen3-8b --gpu 3090',
    ),
  ],
  [
    'python examples/chat.py -m qwen3-8b -mode chatml -cs 8192 --gpu 3090',
    is('fit qwen3-8b --context 8192 --gpu 3090'),
  ],
  ['gpt4all qwen3-8b', says(['--help'])],
  ['llm -m qwen3-8b "hello"', is('generate qwen3-8b hello', 'fit qwen3-8b')],
  ['llamafile-bench qwen3-8b', is('fit qwen3-8b', 'quick-test qwen3-8b --only timing')],
];

const TRAINING: readonly (readonly [line: string, right: Right])[] = [
  [
    'NGPU=4 CONFIG_FILE=my.yaml ./run_train.sh --training.local_batch_size 2 --training.seq_len 128 --gpu h100',
    is('train-plan my.yaml --batch 2 --context 128 --gpus 4 --gpu h100'),
  ],
  [
    'torchrun --nproc_per_node=8 -m torchtitan.train --job.config_file my.yaml --training.steps 1000 --parallelism.tensor_parallel_degree 2 --gpu h100',
    is('train-plan my.yaml --steps 1000 --tensor-parallel 2 --gpu h100 --gpus 8'),
  ],
  [
    'train-plan my.yaml --training.seq_len 128 --training.local_batch_size 4 --optimizer.lr 3e-4 --lr_scheduler.warmup_steps 200 --training.steps 1000',
    is('train-plan my.yaml --context 128 --batch 4 --lr 3e-4 --warmup 200 --steps 1000'),
  ],
  [
    'fit qwen3-8b --gpu h100 --gpus 8 --for training --parallelism.pipeline_parallel_degree 2 --activation_checkpoint.mode full',
    is('fit qwen3-8b --gpu h100 --gpus 8 --for training --pipeline-parallel 2 --recompute full'),
  ],
  [
    'CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nproc_per_node=8 run_train.py --config-file my.yaml --gpu h100',
    is('train-plan my.yaml --gpu h100 --gpus 8'),
  ],
  [
    'python create_config.py --out_dir tmp --dp 4 --tp 2 --pp 2 --model_name qwen3-0.6b --grad_acc_steps 32 --mbs 4 --seq_len 1024 --gpu h100',
    says(['qwen3-0.6b']),
  ],
  [
    'deepspeed --module openrlhf.cli.train_sft --pretrain qwen3-8b --micro_train_batch_size 2 --max_len 2048 --zero_stage 2 --gradient_checkpointing --learning_rate 5e-6 --gpu h100 --num_gpus 8',
    is(
      'train-plan qwen3-8b --batch 2 --context 2048 --zero 2 --recompute full --lr 5e-6 --gpu h100 --gpus 8',
    ),
  ],
  [
    'deepspeed main.py --model_name_or_path qwen3-0.6b --per_device_train_batch_size 4 --max_seq_len 512 --learning_rate 1e-4 --gradient_checkpointing --zero_stage 3 --lora_dim 128 --gpu a100 --num_gpus 8',
    is(
      'fit qwen3-0.6b --for lora --rank 128 --micro-batch 4 --context 512 --recompute full --zero 3 --gpu a100 --gpus 8',
    ),
  ],
  [
    'deepspeed main.py --model_name_or_path qwen3-0.6b --per_device_train_batch_size 8 --max_seq_len 512 --zero_stage 2 --disable_dropout --gpu a100 --num_gpus 8',
    is('train-plan qwen3-0.6b --batch 8 --context 512 --zero 2 --gpu a100 --gpus 8'),
  ],
  [
    'python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=qwen3-0.6b trainer.n_gpus_per_node=8 --gpu h100',
    says(['qwen3-0.6b']),
  ],
  [
    'autotrain llm --train --model qwen3-8b --peft --quantization int4 --block-size 1024 --batch-size 2 --lora-r 16 --lr 2e-4 --gpu 4090',
    is('fit qwen3-8b --for qlora --context 1024 --micro-batch 2 --rank 16 --gpu 4090'),
  ],
  [
    'autotrain llm --train --model qwen3-0.6b --block-size 1024 --batch-size 2 --epochs 3 --lr 2e-5 --trainer sft',
    is('train-plan qwen3-0.6b --context 1024 --batch 2 --epochs 3 --lr 2e-5 --data-tokens 1B'),
  ],
  [
    'torchrun --nproc_per_node=4 --master_port=20001 fastchat/train/train_mem.py --model_name_or_path qwen3-8b --bf16 True --num_train_epochs 3 --per_device_train_batch_size 2 --gradient_accumulation_steps 16 --fsdp "full_shard auto_wrap" --model_max_length 2048 --gradient_checkpointing True --lazy_preprocess True --gpu a100',
    is(
      'train-plan qwen3-8b --epochs 3 --batch 2 --accumulation 16 --zero 3 --context 2048 --recompute full --gpu a100 --gpus 4 …',
    ),
  ],
  [
    "torchrun --nproc_per_node=4 train.py --model_name_or_path llama-3.1-8b --bf16 True --per_device_train_batch_size 4 --gradient_accumulation_steps 8 --learning_rate 2e-5 --warmup_ratio 0.03 --lr_scheduler_type cosine --fsdp 'full_shard auto_wrap' --fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer --tf32 True --gpu a100",
    is(
      'train-plan llama-3.1-8b --batch 4 --accumulation 8 --lr 2e-5 --warmup 0.03 --schedule cosine --zero 3 --gpu a100 --gpus 4 …',
    ),
  ],
  ['python deepy.py train.py my.yaml', is('train-plan my.yaml')],
  [
    'composer train/train.py my.yaml max_duration=1000ba global_train_batch_size=8',
    says(['train-plan my.yaml']),
  ],
  ['python -m scripts.base_train --depth=20 --device_batch_size=4', says(['train-plan'])],
  [
    'torchrun --standalone --nproc_per_node=8 -m scripts.base_train -- --depth=20 --model my.yaml --device-batch-size=2 --gpu h100',
    says(['train-plan my.yaml', '--gpus 8', '--batch 2']),
  ],
  [
    'python train.py my.yaml --batch_size=4 --compile=False --eval_iters=20 --block_size=64 --n_layer=4 --max_iters=2000 --dropout=0.0',
    says(['train-plan my.yaml', '--steps 2000', '--batch 4', '--context 64']),
  ],
  [
    'python sample.py --out_dir=hf --start="1" --num_samples=1 --max_new_tokens=4',
    says(['generate hf', '--max-tokens 4']),
  ],
  ['./run stories15M.bin -t 0.8 -n 256 -i "One day"', says(['stories15M.bin'])],
  [
    'accelerate launch --num_processes 4 --mixed_precision bf16 --use_fsdp --fsdp_sharding_strategy FULL_SHARD train.py my.yaml --gpu h100',
    is('train-plan my.yaml --gpu h100 --gpus 4 --zero 3 …'),
  ],
  [
    'accelerate launch --config_file fsdp.yaml --num_processes=2 sft.py --model_name_or_path my.yaml --max_steps 50 --gpu h100',
    is('train-plan my.yaml --steps 50 --gpus 2 --gpu h100'),
  ],
  [
    'accelerate estimate-memory qwen3-8b --dtypes float32 float16 int8 int4',
    is('profile qwen3-8b --details'),
  ],
  [
    'accelerate estimate-memory qwen3-8b --library_name transformers --trust_remote_code',
    is('fit qwen3-8b'),
  ],
  [
    'accelerate merge-weights zero out.safetensors --dry-run',
    is('convert-checkpoint zero out.safetensors --dry-run'),
  ],
  ['accelerate env', is('doctor')],
  [
    'axolotl train my.yaml --micro-batch-size 2 --gradient-accumulation-steps 4 --num-epochs 1',
    is('train-plan my.yaml --batch 2 --accumulation 4 --epochs 1 --data-tokens 1B'),
  ],
  [
    'axolotl merge-lora my.yaml --lora-model-dir lora',
    says(['my.yaml: is text, which has no weights']),
  ],
  ['axolotl preprocess my.yaml', says(['data'])],
  [
    'llamafactory-cli train --stage sft --do_train --model_name_or_path qwen3-8b --finetuning_type lora --lora_rank 8 --lora_target all --cutoff_len 2048 --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --quantization_bit 4 --gpu 4060',
    is(
      'fit qwen3-8b --for qlora --rank 8 --context 2048 --micro-batch 1 --accumulation 8 --gpu 4060 …',
    ),
  ],
  [
    'FORCE_TORCHRUN=1 llamafactory-cli train --model_name_or_path qwen3-8b --finetuning_type full --deepspeed ds_z3_config.json --gpu h100 --gpus 8',
    is('train-plan qwen3-8b --zero 3 --gpu h100 --gpus 8'),
  ],
  ['llamafactory-cli webchat --model_name_or_path hf --template default', is('generate hf …')],
  [
    'llamafactory-cli api --model_name_or_path qwen3-8b --infer_backend vllm --vllm_maxlen 8192 --gpu 4090',
    is('fit qwen3-8b --context 8192 --gpu 4090'),
  ],
  [
    'swift sft --model qwen3-8b --train_type full --deepspeed zero2 --max_length 2048 --gpu a100 --gpus 8',
    is('train-plan qwen3-8b --zero 2 --context 2048 --gpu a100 --gpus 8'),
  ],
  [
    'swift sft --model qwen3-8b --train_type lora --quant_method bnb --quant_bits 4 --gpu 4090',
    is('fit qwen3-8b --for qlora --gpu 4090'),
  ],
  [
    'trl dpo --model_name_or_path my.yaml --beta 0.1 --max_steps 50 --max_length 128',
    is('train-plan my.yaml --steps 50 --context 128'),
  ],
  [
    'trl sft --model_name_or_path qwen3-8b --use_peft --load_in_4bit --lora_r 16 --lora_alpha 32 --max_length 2048 --gpu 4090',
    is('fit qwen3-8b --for qlora --rank 16 --context 2048 --gpu 4090'),
  ],
  [
    'trl vllm-serve --model qwen3-8b --tensor-parallel-size 2 --gpu a100',
    is('fit qwen3-8b --tensor-parallel 2 --gpu a100 …'),
  ],
  [
    'tune run --nproc_per_node 4 full_finetune_distributed --config my.yaml batch_size=2 --gpu a100',
    is('train-plan my.yaml --batch 2 --gpu a100 --gpus 4'),
  ],
  ['tune run eleuther_eval --config hf', is('evaluate hf …')],
  ['tune ls', is('list')],
  ['tune download qwen3-8b --output-dir out', says(['hf download'])],
  ['tune validate my.yaml', is('validate my.yaml')],
  [
    'unsloth train --model qwen3-8b --lora-r 16 --load-in-4bit --gpu 4090',
    is('fit qwen3-8b --for qlora --rank 16 --gpu 4090'),
  ],
  [
    'torchrun --nproc_per_node 8 pretrain_gpt.py --load my.yaml --tensor-model-parallel-size 2 --pipeline-model-parallel-size 1 --micro-batch-size 2 --seq-length 128 --train-iters 1000 --lr 3e-4 --min-lr 3e-5 --lr-decay-style cosine --bf16 --use-flash-attn --recompute-activations --gpu h100',
    is(
      'train-plan my.yaml --tensor-parallel 2 --pipeline-parallel 1 --batch 2 --context 128 --steps 1000 --lr 3e-4 --min-lr 3e-5 --schedule cosine --recompute selective --gpu h100 --gpus 8 …',
    ),
  ],
  [
    'python train_full_sft.py my.yaml --epochs 2 --batch_size 16 --learning_rate 5e-7 --max_seq_len 128',
    is('train-plan my.yaml --epochs 2 --batch 16 --lr 5e-7 --context 128 --data-tokens 1B'),
  ],
  [
    'python trainer/train_lora.py --load_from qwen3-0.6b --batch_size 8 --gpu 3060',
    is('fit qwen3-0.6b --for lora --micro-batch 8 --gpu 3060'),
  ],
  [
    'python finetune.py --base_model qwen3-8b --lora_r 8 --micro_batch_size 4 --cutoff_len 512 --gpu 3090',
    is('fit qwen3-8b --for lora --rank 8 --micro-batch 4 --context 512 --gpu 3090'),
  ],
  [
    'python qlora.py --model_name_or_path qwen3-8b --bits 4 --lora_r 64 --source_max_len 512 --per_device_train_batch_size 1 --gpu 4090',
    says(['fit qwen3-8b', '--for qlora', '--rank 64', '--micro-batch 1', '--gpu 4090']),
  ],
  [
    'fit qwen3-8b --for finetuning --zero_stage 3 --gpu h100 --gpus 8',
    is('fit qwen3-8b --for training --zero 3 --gpu h100 --gpus 8'),
  ],
  ['fit qwen3-8b --for pretraining --gpu h100 --gpus 8 --dp_shard 8', says(['--for training'])],
];

const TOOLS: readonly (readonly [line: string, right: Right])[] = [
  [
    'optimum-cli export openvino --model hf --weight-format int4 ov_model',
    says(['OpenVINO'], ['write minimind convert-checkpoint hf ov_model --dtype int4']),
  ],
  [
    'optimum-cli export onnx -m hf --task text-generation-with-past --dtype fp16 onnx_out',
    is('export hf --save onnx_out.onnx …', 'export hf --save onnx_out/model.onnx …'),
  ],
  ['optimum-cli onnxruntime quantize --onnx_model hf --avx512 -o q', says(['onnx'])],
  ['hf download Qwen/Qwen3-8B', says(['hf download Qwen/Qwen3-8B'])],
  ['hf cache ls', says(['no store'])],
  ['hf models ls', is('list')],
  ['hf env', is('doctor')],
  ['huggingface-cli scan-cache', says(['no store'])],
  ['huggingface-cli upload me/model hf', says(['no store'])],
  [
    'mergekit-yaml my.yaml merged --cuda --lazy-unpickle',
    says(['mergekit-yaml'], ['--merge-lora']),
  ],
  [
    'mergekit-extract-lora --model hf --base-model hf --out-path lora2 --max-rank 32',
    says(['mergekit-extract-lora'], ['--merge-lora']),
  ],
  [
    'python -m awq.entry --model_path hf --w_bit 4 --q_group_size 128 --run_awq',
    says(['--quantize', 'multiple of 128']),
  ],
  [
    'gptqmodel quantize hf --bits 4 --group-size 128 --dry-run',
    says(['--quantize', 'multiple of 128']),
  ],
  [
    'auto-round --model hf --bits 4 --group_size 128 --output_dir out',
    says(['--quantize', 'multiple of 128']),
  ],
  ['llmcompressor hf --scheme W8A8', says(['convert-checkpoint'])],
  [
    'lm_eval --model vllm --model_args pretrained=hf,tensor_parallel_size=1,dtype=auto,gpu_memory_utilization=0.8 --tasks gsm8k --batch_size auto',
    says(['runs no benchmarks', '--text FILE']),
  ],
  ['lm-eval ls tasks', says(['minimind'], ['write minimind list'])],
  ['lighteval accelerate "model_name=hf" "leaderboard|truthfulqa:mc|0|0"', says(['--text'])],
  ['calflops --model_name my.yaml --input_shape 1,128', says(['profile my.yaml'])],
  ['ptflops my.yaml', is('profile my.yaml')],
  [
    'torchinfo my.yaml --depth 3',
    is('profile my.yaml --tensors', 'profile my.yaml --layers', 'profile my.yaml'),
  ],
  ['fvcore.nn.FlopCountAnalysis my.yaml', is('profile my.yaml')],
  ['model.num_parameters my.yaml', is('profile my.yaml')],
  ['tensorboard --logdir runs', says(['--help'])],
  ['nvidia-smi -L', is('doctor …')],
  ['nvtop', says(['doctor'])],
  ['wandb sweep my.yaml', says(['--help'])],
  [
    'python benchmarks/benchmark_generation_mamba_simple.py --model-name hf --promptlen 8 --genlen 8 --batch 1',
    is(
      'quick-test hf --only timing --context 8 --output-tokens 8 --batch 1',
      'fit hf --prompt-tokens 8 --output-tokens 8 --batch 1',
    ),
  ],
  [
    'convert_hf_to_gguf.py hf --outtype bf16 --outfile out.gguf --dry-run',
    is('convert-checkpoint hf out.gguf --dtype bf16 --dry-run'),
  ],
  [
    'python convert_lora_to_gguf.py lora --outfile lora.gguf',
    says(['convert_lora_to_gguf'], ['write minimind convert-checkpoint lora lora.gguf']),
  ],
  [
    'python convert_checkpoint.py --model_dir hf --output_dir out --dtype float16 --tp_size 2 --dry-run',
    is('convert-checkpoint hf out --dtype f16 --dry-run'),
  ],
  ['safetensors-cli inspect hf', is('inspect hf')],
];

const QUESTIONS: readonly (readonly [line: string, right: Right])[] = [
  [
    'how much vram for qwen3 8b q4',
    is('fit qwen3-8b --dtype int4', "fit 'qwen3 8b' --dtype q4", "fit 'qwen3 8b' --dtype int4"),
  ],
  ['how many parameters does qwen3-8b have', is('profile qwen3-8b')],
  [
    'how many gpus do i need to train qwen3-8b',
    is('fit qwen3-8b --for training', 'train-plan qwen3-8b'),
  ],
  ['how fast is qwen3-8b on a 4090', is('fit qwen3-8b --gpu 4090')],
  [
    'how many tokens per second does qwen3-8b get on an m4-max-64gb',
    is('fit qwen3-8b --gpu m4-max-64gb'),
  ],
  [
    'does llama-3.1-8b fit on a 3060 with 8k context',
    is('fit llama-3.1-8b --gpu 3060 --context 8k'),
  ],
  ['what is the kv cache of qwen3-8b at 32k context', is('profile qwen3-8b --context 32k')],
  ['can my 4060 run qwen3-14b in q4_k_m', is('fit qwen3-14b --gpu 4060 --dtype q4_k_m')],
  ['is a 3090 enough for qlora of qwen3-14b', is('fit qwen3-14b --for qlora --gpu 3090')],
  ['best gpu for llama-3.3-70b', is('fit llama-3.3-70b')],
  ['which models fit on a 3060', is('fit --gpu 3060')],
  [
    'memory needed to fine-tune qwen3-8b fully on 8 h100s',
    is('fit qwen3-8b --for training --gpu h100 --gpus 8'),
  ],
  ['qwen3-8b vram', is('fit qwen3-8b')],
  ['qwen3-8b on 4090', is('fit qwen3-8b --gpu 4090')],
  ['qwen3-8b 4090 q4_k_m 16k', is('fit qwen3-8b --gpu 4090 --dtype q4_k_m --context 16k')],
  ['what is the difference between qwen3-8b and llama-3.1-8b', is('compare qwen3-8b llama-3.1-8b')],
  ['wie viel vram braucht qwen3-8b', is('fit qwen3-8b')],
  ['läuft qwen3-8b auf einer 4060', is('fit qwen3-8b --gpu 4060')],
  ['wie viele parameter hat qwen3-8b', is('profile qwen3-8b')],
  ['passt llama-3.1-8b auf eine rtx 3060', is("fit llama-3.1-8b --gpu 'rtx 3060'")],
  ['wie schnell ist qwen3-8b auf einer 4090', is('fit qwen3-8b --gpu 4090')],
  ['vergleiche qwen3-8b mit llama-3.1-8b', is('compare qwen3-8b llama-3.1-8b')],
  ['显存 qwen3-8b', is('fit qwen3-8b')],
  ['qwen3-8b 需要多少显存', is('fit qwen3-8b')],
  ['4090 能跑 qwen3-8b 吗', is('fit qwen3-8b --gpu 4090')],
  ['qwen3-8b 参数量', is('profile qwen3-8b')],
  ['对比 qwen3-8b 和 llama-3.1-8b', is('compare qwen3-8b llama-3.1-8b')],
  ['qwen3-8b 微调 需要多少显存', is('fit qwen3-8b --for lora', 'fit qwen3-8b --for training')],
  ['训练 qwen3-0.6b', is('train-plan qwen3-0.6b', 'fit qwen3-0.6b --for training')],
];

const OWN: readonly (readonly [line: string, right: Right])[] = [
  ['fit qwen3-8b --context 8192tokens --gpu 4090', is('fit qwen3-8b --context 8192 --gpu 4090')],
  ['fit qwen3-8b --context=8k-tokens --gpu 4090', is('fit qwen3-8b --context 8k --gpu 4090')],
  [
    'fit qwen3-8b --gpu h100 --qps 5 --prompt-tokens 500 --output-tokens 100 --p99 5',
    says(
      ['p95'],
      [
        'write minimind fit qwen3-8b --gpu h100 --qps 5 --prompt-tokens 500 --output-tokens 100 --p95',
      ],
    ),
  ],
  ['fit 0.5B', says(['0.5B'], ['did you mean'])],
  ['fit 8B --gpu 4090', says(['qwen3-8b'])],
  ['fit qwen3-8b --gpu "2x3090+4090" --dtype q4_k_m', AS_IT_IS],
  ['fit qwen3-8b --gpu m4-max --dtype q4_k_m', says(['Apple M4 Max'], ['error:'])],
  [
    'profile qwen3-8b --ctx 32768 --kv-cache-dtype int8',
    is('profile qwen3-8b --context 32768 --cache-dtype int8'),
  ],
  [
    'profile qwen3-8b --bs 4 --seqlen 2048 --fp16',
    is('profile qwen3-8b --batch 4 --context 2048 --dtype f16'),
  ],
  [
    'compare qwen3-8b llama-3.1-8b --seq-len 8192',
    is('compare qwen3-8b llama-3.1-8b --context 8192'),
  ],
  ['plan --params 100M --vocab-size 32000', is('plan --max-params 100M --vocab 32000')],
  ['plan --target-params 1.5B --vocab 32k --hidden 2048', says(['--max-params 1.5B'])],
  [
    'train-plan my.yaml --total-tokens 1B --peak-lr 3e-4',
    is('train-plan my.yaml --tokens 1B --lr 3e-4'),
  ],
  ['train-plan my.yaml --n-gpu 8 --gpu-type a100', is('train-plan my.yaml --gpus 8 --gpu a100')],
  ['evaluate hf --dataset text.txt', says(['--text text.txt'])],
  ['generate hf --token-ids 1,2,3 --n-predict 4', is('generate hf --ids 1,2,3 --max-tokens 4')],
  ['quick-test hf --num-iters 3 --warmup 1', says(['--repeat 3'])],
  [
    'convert-checkpoint hf out --bits 8 --group-size 64 --dry-run',
    says(['--quantize', 'multiple of 64']),
  ],
  ['export hf --format onnx --out model.onnx', is('export hf --save model.onnx')],
  ['inspect hf --list-tensors', is('inspect hf --tensors')],
  [
    'data data.jsonl --max-seq-len 512 --tokenizer tokenizer',
    is('data data.jsonl --context 512 --tokenizer tokenizer'),
  ],
  ['verify hf --strict', AS_IT_IS],
  [
    'fit qwen3-8b --hardware rtx4090 --quantization q4',
    is('fit qwen3-8b --gpu rtx4090 --dtype q4', 'fit qwen3-8b --gpu rtx4090 --dtype int4'),
  ],
  ['fit qwen3-8b --device 4090', is('fit qwen3-8b --gpu 4090')],
  [
    'fit --model qwen3-8b --gpu-name 4090 --num-ctx 8192',
    is('fit qwen3-8b --gpu 4090 --context 8192'),
  ],
  ['fit qwen3-8b --tokens-per-second 30 --gpu 4090', is('fit qwen3-8b --min-speed 30 --gpu 4090')],
];

export const FRESH_GUESSES: readonly Guess[] = [
  ...SERVING,
  ...TRAINING,
  ...TOOLS,
  ...QUESTIONS,
  ...OWN,
];
