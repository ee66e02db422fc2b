/** Form of a row of the flags of other tools, and where their names are declared. */

/** Where the names are declared. `speech` has names that people say and no tool declares. */
export const SOURCES = {
  ollama: 'ollama/ollama: docs/modelfile.md (PARAMETER), cmd/cmd.go',
  'llama.cpp':
    'ggml-org/llama.cpp: common/arg.cpp, tools/server, tools/quantize, tools/llama-bench',
  koboldcpp: 'LostRuins/koboldcpp 2da346a: koboldcpp.py',
  lmstudio: 'LM Studio: docs, "lms load"',
  vllm: 'vllm-project/vllm: docs, "Engine Arguments", "vllm bench"',
  sglang: 'sgl-project/sglang: docs, "Server Arguments"',
  tgi: 'huggingface/text-generation-inference: docs, "Text-generation-launcher arguments"',
  trtllm: 'NVIDIA/TensorRT-LLM 00209af: tensorrt_llm/commands/serve.py, bench.py',
  genaiperf: 'triton-inference-server/perf_analyzer 263c5f6: genai-perf/genai_perf/parser.py',
  transformers:
    'huggingface/transformers 00349ae: training_args.py; GenerationConfig, BitsAndBytesConfig',
  trl: 'huggingface/trl: SFTConfig, ModelConfig',
  peft: 'huggingface/peft: LoraConfig',
  accelerate: 'huggingface/accelerate: commands/launch.py, commands/estimate.py',
  optimum: 'huggingface/optimum: commands/export/onnx.py',
  hub: 'huggingface/huggingface_hub: docs, "Command Line Interface"',
  torchrun: 'pytorch/pytorch: torch/distributed/run.py',
  fsdp: 'pytorch/pytorch: torch.distributed.fsdp.ShardingStrategy',
  deepspeed: 'deepspeedai/DeepSpeed: docs, "DeepSpeed Configuration JSON", zero_to_fp32.py',
  megatron: 'NVIDIA/Megatron-LM: megatron/training/arguments.py',
  axolotl: 'axolotl-ai-cloud/axolotl: docs, "Config Reference", cli/main.py',
  'llama-factory': 'hiyouga/LLaMA-Factory: hparams, cli.py',
  swift: 'modelscope/ms-swift 3602360: docs/source_en/Instruction/Command-line-parameters.md',
  mistralrs: 'EricLBuehler/mistral.rs 9e92262: docs, "mistralrs"',
  aphrodite: 'PygmalionAI/aphrodite-engine 1fac86c: docs',
  tabbyapi: 'theroyallab/tabbyAPI 004e837: docs/02.-Server-options.md',
  webui: 'oobabooga/text-generation-webui: README.md',
  ktransformers: 'kvcache-ai/ktransformers 002f96f: archive/README.md',
  llamafile: 'mozilla-ai/llamafile 6b46419: README.md',
  unsloth: 'unslothai/unsloth: unsloth-cli.py',
  torchtune: 'pytorch/torchtune bd2a0fc: docs/source/tune_cli.rst, recipes/configs',
  litgpt: 'Lightning-AI/litgpt 2685705: README.md, litgpt/args.py, litgpt/__main__.py',
  nanogpt: 'karpathy/nanoGPT: train.py, sample.py',
  nanochat: 'karpathy/nanochat 92d63d4: scripts/base_train.py',
  exllama: 'turboderp-org/exllamav3 0445820: README.md, doc/convert.md',
  lmdeploy: 'InternLM/lmdeploy 1263d5c: lmdeploy/cli/utils.py, docs/en',
  'lm-eval': 'EleutherAI/lm-evaluation-harness: docs/interface.md',
  mlx: 'ml-explore/mlx-lm: generate.py, convert.py',
  minimind: 'jingyaogong/minimind: trainer/train_pretrain.py, eval_llm.py',
  autogptq: 'AutoGPTQ/AutoGPTQ: BaseQuantizeConfig',
  openai: 'OpenAI: API reference, "Chat Completions"',
  ct2: 'OpenNMT/CTranslate2: docs, "Transformers"',
  torchtitan: 'pytorch/torchtitan: torchtitan/config/job_config.py',
  mamba: 'state-spaces/mamba: benchmarks/benchmark_generation_mamba_simple.py',
  mlcllm: 'mlc-ai/mlc-llm: docs, "REST API", "Model Quantization"',
  verl: 'volcengine/verl: docs/examples/config.rst, verl/trainer/config/ppo_trainer.yaml',
  xinference: 'xorbitsai/inference: docs, "launch"',
  autotrain: 'huggingface/autotrain-advanced: docs, "LLM finetuning"',
  fastchat: 'lm-sys/FastChat: fastchat/model/model_adapter.py, add_model_args',
  docker: 'Docker: docs, "docker model"',
  speech: 'said, and declared by no tool',
} as const;

export type Source = keyof typeof SOURCES;

/** Pattern of file names with a stage of ZeRO: `ds_z3_config.json`, `zero3.yaml`, `ds_stage_2.json`. */
export const ofStage = (stage: number): string =>
  `~(?:z(?:ero)?|stage)[\\W_]*(?:stage)?[\\W_]*${stage}`;

/**
 * A meaning, the names that have it, and where they are declared.
 *
 * A meaning is a flag here, `flag=value` a flag with that value for a switch of another tool, `<name>` an argument,
 * `<hub>` a model of the hub, `<each>` the flags `a` and `b` of `a=1,b=2`, `<shown>` what the answer shows without a flag,
 * `<of-gpu>` what it shows with a GPU, `<more>` one more argument, `>compare` another command, whose next argument is the
 * value, `<none>` a flag without a counterpart, and '' a flag that is not needed.
 * The last two are left out, and the error says so. `@fit` after it limits it to that command. `*context` multiplies the
 * value by the tokens of a sequence, `/batch` divides the sequences of a step by those of a GPU, and `/tokens` its tokens.
 *
 * A name `color=never` is a flag with that value, `deepspeed=~z3` with one that the pattern matches, and `host=` one with
 * any value. A name can have several meanings: of those whose line is accepted, the first is proposed.
 */
export type FlagRow = readonly [meaning: string, names: string, sources: readonly Source[]];
