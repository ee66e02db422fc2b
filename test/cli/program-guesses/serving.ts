/**
 * Lines of programs that serve and run models. What is right was written before any of them was run. The words are in:
 *
 * - ollama/ollama 00182b5 docs/faq.mdx, docs/import.mdx; ggml-org/llama.cpp tools/*, gguf-py/gguf/scripts a7a5081
 * - vllm-project/vllm docs, "Using Docker", "vllm serve"; sgl-project/sglang 004813e docs/advanced_features
 * - huggingface/text-generation-inference 01b82b5 README.md
 * - NVIDIA/TensorRT-LLM docs/source/commands: trtllm-serve, trtllm-bench, trtllm-eval; examples: trtllm-build
 * - kvcache-ai/ktransformers archive/README.md; theroyallab/tabbyAPI 004e837 docs/02.-Server-options.md
 * - turboderp-org/exllamav2 da07fac doc/convert.md, README.md; oobabooga/text-generation-webui README.md
 * - LostRuins/koboldcpp 2da346a README.md; mozilla-ai/llamafile 6b46419 README.md; LM Studio: docs, "lms"
 * - EricLBuehler/mistral.rs 9e92262 README.md, docs; InternLM/lmdeploy 1263d5c docs/en
 * - PygmalionAI/aphrodite-engine 1fac86c docs; exo-explore/exo README.md
 * Of a few, it was corrected afterwards: what depends on the machine, and lines that would not run.
 */
import type { Guess, Right, Saying } from '../guesses.js';

const is = (...lines: string[]): readonly string[] => lines;

const says = (...texts: string[]): Saying => ({ says: texts });

const LOCAL: readonly (readonly [line: string, right: Right])[] = [
  ['ollama run llama3.2:1b --verbose', is('fit llama3.2:1b …')],
  ['ollama show qwen3:8b --license', is('profile qwen3:8b')],
  ['ollama pull llama3.2', says('hf download meta-llama/Llama-3.2-3B')],
  ['ollama create --quantize q4_K_M mine', says('convert-checkpoint')],
  ['ollama cp llama3.2 mine', says('no store')],
  [
    'OLLAMA_NUM_PARALLEL=4 OLLAMA_CONTEXT_LENGTH=8192 ollama run qwen3:8b --gpu 4090',
    is('fit qwen3:8b --gpu 4090 --users 4 --context 8192'),
  ],
  [
    'OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0 ollama serve --gpu 4090',
    is('fit --gpu 4090 --attention fused --cache-dtype q8_0'),
  ],
  [
    'ollama run gemma3:12b --num_ctx 16384 --gpu 4090',
    is('fit gemma3:12b --context 16384 --gpu 4090'),
  ],
  [
    'llama-server -hf Qwen/Qwen3-8B-GGUF:Q4_K_M -c 16384 -ngl 99 --gpu 3090',
    is('fit Qwen/Qwen3-8B --gpu 3090 --context 16384 --dtype Q4_K_M'),
  ],
  [
    'llama-quantize --imatrix imatrix.gguf hf out.gguf Q4_K_M --dry-run',
    is('convert-checkpoint hf out.gguf --dtype q4_k_m --imatrix imatrix.gguf --dry-run'),
  ],
  [
    'llama-quantize hf out.gguf Q4_K_M 1 --dry-run',
    is(
      'convert-checkpoint hf out.gguf --dtype q4_k_m --threads 1 --dry-run',
      'convert-checkpoint hf out.gguf --dtype q4_k_m --dry-run',
    ),
  ],
  [
    'llama-quantize --leave-output-tensor hf out.gguf Q6_K --dry-run',
    is('convert-checkpoint hf out.gguf --dtype q6_k --dry-run'),
  ],
  [
    'llama-quantize --token-embedding-type q8_0 --output-tensor-type q8_0 hf out.gguf Q4_K_M --dry-run',
    is('convert-checkpoint hf out.gguf --dtype q4_k_m --dry-run'),
  ],
  [
    'llama-cli -m hf --ids 1,2,3 -c 32 --temp 0.6 --top-k 20 --top-p 0.95 --min-p 0 -n 4',
    is(
      'generate hf --ids 1,2,3 --context 32 --temperature 0.6 --top-k 20 --top-p 0.95 --min-p 0 --max-tokens 4',
    ),
  ],
  ['./llama-cli -m hf --ids 1,2,3 -n 4', is('generate hf --ids 1,2,3 --max-tokens 4')],
  [
    './build/bin/llama-server -m qwen3-8b --gpu 4090 -c 8192',
    is('fit qwen3-8b --gpu 4090 --context 8192'),
  ],
  [
    'llama-server -m qwen3-14b --gpu 3060 -ngl 20 --threads 8 -b 512',
    is('fit qwen3-14b --gpu 3060 --gpu-layers 20 …'),
  ],
  [
    'llama-server -m gpt-oss-20b --gpu "rtx 3060 12gb" --cpu-moe -c 0 --jinja',
    is("fit gpt-oss-20b --gpu 'rtx 3060 12gb' --cpu-experts all …"),
  ],
  [
    'llama-bench -m qwen3-8b -p 512 -n 128 -ngl 99 --gpu 4090',
    is('fit qwen3-8b --prompt-tokens 512 --output-tokens 128 --gpu 4090'),
  ],
  [
    'llama-perplexity -m hf -f text.txt --chunks 2 -c 64',
    is('evaluate hf --text text.txt --context 64'),
  ],
  [
    'llama-speculative -m qwen3-8b -md qwen3-0.6b --draft-max 16 --gpu 4090',
    is('fit qwen3-8b --draft qwen3-0.6b --draft-tokens 16 --gpu 4090 …'),
  ],
  [
    'python convert_hf_to_gguf.py hf --outtype q8_0 --outfile out.gguf --dry-run',
    is('convert-checkpoint hf out.gguf --dtype q8_0 --dry-run'),
  ],
  ['gguf-dump old.pt --no-tensors', is('inspect old.pt')],
  ['python -m gguf.scripts.gguf_dump old.pt', is('inspect old.pt')],
  [
    'koboldcpp.exe --model qwen3-8b --gpulayers 99 --contextsize 16384 --gpu 3060',
    is(
      'fit qwen3-8b --context 16384 --gpu 3060',
      'fit qwen3-8b --gpu-layers 99 --context 16384 --gpu 3060',
    ),
  ],
  [
    './koboldcpp-linux-x64 --model qwen3-8b --contextsize 8192 --gpu 4060',
    is('fit qwen3-8b --context 8192 --gpu 4060'),
  ],
  [
    'llamafile -m qwen3-8b -ngl 9999 -c 4096 --gpu 4060',
    is('fit qwen3-8b --context 4096 --gpu 4060'),
  ],
  [
    'llamafile -m hf --temp 0 -n 4 --ids 1,2,3',
    is('generate hf --temperature 0 --max-tokens 4 --ids 1,2,3'),
  ],
  ['lms load qwen3-8b --gpu=max --context-length=8192', is('fit qwen3-8b --context 8192 …')],
  ['lms get qwen3-8b', says('hf download Qwen/Qwen3-8B')],
  ['lms ls --json', is('list --json')],
  ['lms server start', is('fit', 'doctor')],
  ['lms unload --all', says('no store')],
  ['lms chat hf --ids 1,2,3', is('generate hf --ids 1,2,3 …')],
  ['jan serve qwen3-8b --gpu 4060', is('fit qwen3-8b --gpu 4060')],
  ['exo run llama-3.2-3b --gpu "M4 Pro 24GB"', is("fit llama-3.2-3b --gpu 'M4 Pro 24GB'")],
  [
    'mistralrs run -m Qwen/Qwen3-4B --quant 4 --gpu 3060',
    is('fit Qwen/Qwen3-4B --dtype int4 --gpu 3060'),
  ],
  [
    'mistralrs serve -p 1234 -m Qwen/Qwen3-4B --isq q4k --gpu 3060',
    is('fit Qwen/Qwen3-4B --dtype q4k --gpu 3060', 'fit Qwen/Qwen3-4B --dtype q4_k --gpu 3060'),
  ],
  [
    'mistralrs bench -m qwen3-8b --prompt-len 512 --gen-len 128 --gpu 4090',
    is('fit qwen3-8b --prompt-tokens 512 --output-tokens 128 --gpu 4090'),
  ],
  ['mistralrs doctor', is('doctor')],
  [
    'python -m ktransformers.local_chat --model_path qwen3-30b-a3b --gguf_path models --cpu_infer 33 --max_new_tokens 1000 --gpu 3090',
    is('fit qwen3-30b-a3b --gpu 3090 …'),
  ],
  [
    'ktransformers --model_path deepseek-v3 --gguf_path models --port 10002 --gpu 4090',
    is('fit deepseek-v3 --gpu 4090 …'),
  ],
  [
    'python convert.py -i hf -o work -cf out -b 4.0 --dry-run',
    is('convert-checkpoint hf out --quantize int4 --dry-run'),
  ],
  ['python test_inference.py -m hf --ids 1,2,3', is('generate hf --ids 1,2,3')],
  [
    'tabbyapi --model-name qwen3-8b --max-seq-len 16384 --cache-mode Q8 --gpu 3090',
    is(
      'fit qwen3-8b --context 16384 --cache-dtype q8_0 --gpu 3090',
      'fit qwen3-8b --context 16384 --cache-dtype int8 --gpu 3090',
    ),
  ],
  [
    'python server.py --model qwen3-8b --load-in-4bit --gpu 3060',
    is('fit qwen3-8b --dtype int4 --gpu 3060'),
  ],
  [
    'python server.py --model qwen3-8b --loader exllamav3 --ctx-size 16384 --cache-type q8 --gpu-split 20,20 --gpu 2x3090',
    is(
      'fit qwen3-8b --context 16384 --cache-dtype q8_0 --gpu 2x3090 …',
      'fit qwen3-8b --context 16384 --cache-dtype int8 --gpu 2x3090 …',
      'fit qwen3-8b --context 16384 --cache-dtype q8 --gpu 2x3090 …',
    ),
  ],
  [
    'text-generation-webui --model qwen3-8b --n-gpu-layers 20 --gpu 3060',
    is('fit qwen3-8b --gpu-layers 20 --gpu 3060'),
  ],
];

const SERVERS: readonly (readonly [line: string, right: Right])[] = [
  [
    'docker run --runtime nvidia --gpus all -v ~/.cache/huggingface:/root/.cache/huggingface -p 8000:8000 --ipc=host vllm/vllm-openai:latest --model qwen3-8b --gpu a100',
    is('fit qwen3-8b --gpu a100'),
  ],
  [
    'docker run --gpus all vllm/vllm-openai:latest --model Qwen/Qwen3-0.6B --tensor-parallel-size 2 --max-model-len 8192 --gpu h100',
    is('fit Qwen/Qwen3-0.6B --tensor-parallel 2 --context 8192 --gpu h100 …'),
  ],
  [
    'VLLM_USE_V1=1 vllm serve qwen3-8b --max-model-len=16k --gpu-memory-utilization=0.92 --gpu A100-SXM4-80GB',
    is('fit qwen3-8b --context 16k --gpu-memory-utilization 0.92 --gpu A100-SXM4-80GB'),
  ],
  [
    'CUDA_VISIBLE_DEVICES=0,1,2,3 vllm serve llama-3.3-70b --tensor-parallel-size 4 --gpu a100',
    is('fit llama-3.3-70b --tensor-parallel 4 --gpu a100 --gpus 4'),
  ],
  [
    'vllm serve qwen3-30b-a3b --enable-expert-parallel --data-parallel-size 8 --gpu h100 --gpus 8',
    is('fit qwen3-30b-a3b --expert-parallel all --dp-attention 8 --gpu h100 --gpus 8'),
  ],
  [
    'vllm serve qwen3-8b --kv_cache_dtype fp8 --max_num_seqs 128 --enable_prefix_caching --gpu l40s',
    is('fit qwen3-8b --cache-dtype fp8 --batch 128 --gpu l40s'),
  ],
  ['vllm chat --model hf --ids 1,2,3', is('generate hf --ids 1,2,3 …')],
  [
    'python -m vllm.entrypoints.api_server --model qwen3-0.6b --swap-space 16 --disable-log-requests --gpu t4',
    is('fit qwen3-0.6b --gpu t4'),
  ],
  [
    'vllm serve qwen3-8b --quantization bitsandbytes --load-format bitsandbytes --gpu "RTX 3080"',
    is("fit qwen3-8b --dtype int4 --gpu 'RTX 3080'"),
  ],
  ['vllm serve qwen3-8b -q fp8 --gpu h100', is('fit qwen3-8b --dtype fp8 --gpu h100')],
  [
    'python -m sglang.launch_server --model-path qwen3-8b --tp 4 --dp 2 --enable-dp-attention --gpu h100 --gpus 4',
    is('fit qwen3-8b --gpu h100 --gpus 4 --dp-attention 2 --tensor-parallel 2'),
  ],
  // The tokens of all sequences together.
  [
    'python3 -m sglang.launch_server --model qwen3-8b --mem-fraction-static 0.7 --chunked-prefill-size 4096 --max-total-tokens 65536 --gpu l40s',
    is('fit qwen3-8b --gpu-memory-utilization 0.7 --gpu l40s'),
  ],
  [
    'python3 -m sglang.bench_serving --backend sglang --model qwen3-8b --num-prompts 1000 --random-input 1024 --random-output 1024 --request-rate 8 --gpu h100',
    is('fit qwen3-8b --prompt-tokens 1024 --output-tokens 1024 --qps 8 --gpu h100'),
  ],
  [
    'docker run --gpus all --shm-size 32g -p 30000:30000 --ipc=host lmsysorg/sglang:latest python3 -m sglang.launch_server --model-path qwen3-8b --host 0.0.0.0 --port 30000 --gpu h100',
    is('fit qwen3-8b --gpu h100'),
  ],
  [
    'sglang serve qwen3-8b --quantization fp8 --kv-cache-dtype fp8_e4m3 --gpu h100',
    is('fit qwen3-8b --dtype fp8 --cache-dtype fp8_e4m3 --gpu h100'),
  ],
  [
    'docker run --gpus all --shm-size 1g -p 8080:80 ghcr.io/huggingface/text-generation-inference:2.3.1 --model-id mistralai/Mistral-7B-v0.1 --gpu l4',
    is('fit mistralai/Mistral-7B-v0.1 --gpu l4'),
  ],
  [
    'text-generation-launcher --model-id qwen3-8b --quantize bitsandbytes-nf4 --max-input-tokens 2048 --max-total-tokens 4096 --gpu 3090',
    is('fit qwen3-8b --dtype int4 --prompt-tokens 2048 --output-tokens 2048 --gpu 3090'),
  ],
  [
    'trtllm-serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --gpu l4',
    is('fit TinyLlama/TinyLlama-1.1B-Chat-v1.0 --gpu l4'),
  ],
  [
    'trtllm-serve serve qwen3-8b --tp_size 2 --max_batch_size 32 --kv_cache_dtype fp8 --gpu h100',
    is('fit qwen3-8b --tensor-parallel 2 --batch 32 --cache-dtype fp8 --gpu h100 …'),
  ],
  [
    'trtllm-bench --model qwen3-8b throughput --dataset data.jsonl --max_batch_size 64 --tp 2 --gpu h100',
    is('fit qwen3-8b --batch 64 --tensor-parallel 2 --gpu h100 …'),
  ],
  [
    'trtllm-bench -m qwen3-8b build --tp_size 2 --quantization FP8 --gpu h100',
    is('fit qwen3-8b --tensor-parallel 2 --dtype FP8 --gpu h100 …'),
  ],
  [
    'trtllm-build --checkpoint_dir qwen3-8b --gemm_plugin auto --max_batch_size 64 --max_input_len 2048 --max_seq_len 4096 --output_dir engine --gpu h100',
    is('fit qwen3-8b --batch 64 --context 4096 --gpu h100 …'),
  ],
  ['trtllm-eval --model hf mmlu', says('--text')],
  [
    'lmdeploy serve api_server Qwen/Qwen3-8B --tp 2 --session-len 32768 --quant-policy 8 --gpu "A100 40GB"',
    is(
      "fit Qwen/Qwen3-8B --tensor-parallel 2 --context 32768 --cache-dtype int8 --gpu 'A100 40GB' …",
    ),
  ],
  [
    'lmdeploy lite smooth_quant hf --work-dir out --quant-dtype int8 --dry-run',
    is('convert-checkpoint hf out --quantize int8 --dry-run'),
  ],
  ['lmdeploy chat hf --cache-max-entry-count 0.2 --ids 1,2,3', is('generate hf --ids 1,2,3')],
  [
    'aphrodite run qwen3-8b -tp 2 -q fp8 --gpu 4090',
    is('fit qwen3-8b --tensor-parallel 2 --dtype fp8 --gpu 4090 …'),
  ],
  [
    'aphrodite run meta-llama/Llama-3.1-8B-Instruct --kv-cache-dtype fp8 --max-model-len 8192 --gpu 3090',
    is('fit meta-llama/Llama-3.1-8B-Instruct --cache-dtype fp8 --context 8192 --gpu 3090'),
  ],
];

export const SERVING_GUESSES: readonly Guess[] = [...LOCAL, ...SERVERS];
