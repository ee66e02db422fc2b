/** Flags of other tools, and their counterparts here. Loaded only for a line with a word that is not one of ours. */

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
  speech: 'said, and declared by no tool',
} as const;

export type Source = keyof typeof SOURCES;

/**
 * A meaning, the names that have it, and where they are declared.
 *
 * A meaning is a flag here, `flag=value` a flag with that value for a switch of another tool, `<name>` an argument,
 * `<hub>` a model of the hub, `<each>` the flags `a` and `b` of `a=1,b=2`, `<shown>` what a profile shows without a flag,
 * `<none>` a flag without a counterpart, and '' a flag that is not needed.
 * The last two are left out, and the error says so. `@fit` after it limits it to that command. `*context` multiplies the
 * value by the tokens of a sequence.
 *
 * A name `color=never` is a flag with that value, `deepspeed=~z3` with one that the pattern matches, and `host=` one with
 * any value. A name can have several meanings: of those whose line is accepted, the first is proposed.
 */
export type FlagRow = readonly [meaning: string, names: string, sources: readonly Source[]];

/** Flags that differ in name or in values. */
const COUNTERPARTS: readonly FlagRow[] = [
  [
    '<shown>',
    'params,parameters,num-params,flops,macs,memory,vram,kv-cache,kv,size',
    ['speech', 'ollama'],
  ],
  ['<none>@fit|evaluate', 'b,n-batch,ub=,ubatch-size=,blasbatchsize=', ['llama.cpp', 'koboldcpp']],
  ['<none>@fit', 'block-size=1,block-size=8,block-size=16,block-size=32,block-size=64', ['vllm']],
  ['<none>@fit', 'num-gpu=~^(?:-1|\\d\\d+)$', ['ollama']],
  ['gpu-layers', 'ngl,n-gpu-layers,gpulayers,num-gpu', ['llama.cpp', 'koboldcpp', 'ollama']],
  ['cpu-experts', 'n-cpu-moe,ncmoe', ['llama.cpp']],
  ['tensor-split', 'ts', ['llama.cpp']],
  ['cpu-experts=all', 'cpu-moe,cmoe', ['llama.cpp']],
  ['<hub>', 'hf,hfr,hf-repo', ['llama.cpp']],
  ['<each>', 'model-args,a,gen-kwargs', ['lm-eval']],
  [
    '<model>',
    'model,file,preset,path,m,model-path,model-name,input,in,checkpoint,model-name-or-path,model-id,base-model,' +
      'pretrained,model-args=pretrained,a=pretrained,hf-model,load-from,config,ckpt-dir,src,pretrained-model-name-or-path,' +
      'pretrained-model,model-dir,checkpoint-dir,hf-path,base-model-id,base-model-name,model-tag,load,from',
    [
      ...([
        'llama.cpp',
        'vllm',
        'sglang',
        'tgi',
        'transformers',
        'axolotl',
        'lm-eval',
        'minimind',
      ] as const),
      ...(['litgpt', 'mlx', 'megatron', 'speech'] as const),
    ],
  ],
  [
    '<in>',
    'in,input,i,m,model,checkpoint,base-model,model-path,src,source,from,checkpoint-dir,input-dir,model-name-or-path,' +
      'hf-path,model-dir,model-name,model-id,load,input-path,input-file',
    ['llama.cpp', 'deepspeed', 'axolotl', 'llama-factory', 'mlx', 'litgpt', 'ct2', 'speech'],
  ],
  [
    '<out>',
    'out,o,output,output-file,outfile,save,to,outdir,output-dir,dst,dest,target-path,output-path,save-path,out-dir,' +
      'export-dir,mlx-path,save-dir,merged-model-path,out-path',
    ['llama.cpp', 'deepspeed', 'axolotl', 'llama-factory', 'mlx', 'litgpt', 'ct2', 'speech'],
  ],
  ['<prompt>', 'prompt,p,text,start', ['llama.cpp', 'mlx', 'nanogpt', 'speech']],
  [
    '<data>',
    'input,data,data-path,dataset,dataset-path,train-file,i,f',
    ['minimind', 'megatron', 'speech'],
  ],
  [
    'context',
    'ctx,max-context,context-len,context-length,context-size,context-window,ctx-size,ctx-len,n-ctx,num-ctx,seq,seq-len,' +
      'seqlen,seq-length,sequence-length,max-seq-len,max-seq-length,max-model-len,max-length,length,cutoff-len,' +
      'block-size,c,sequence-len,max-context-len,max-context-length,model-max-length,max-total-tokens,contextsize,' +
      'max-kv-size,tokens-per-sequence,ollama-context-length,n-positions',
    [
      ...([
        'ollama',
        'llama.cpp',
        'koboldcpp',
        'lmstudio',
        'vllm',
        'sglang',
        'tgi',
        'trtllm',
        'transformers',
      ] as const),
      ...([
        'megatron',
        'axolotl',
        'llama-factory',
        'unsloth',
        'nanogpt',
        'mlx',
        'minimind',
        'speech',
      ] as const),
    ],
  ],
  [
    'batch',
    'batch-size,bs,batchsize,max-num-seqs,b,max-running-requests,max-batch-size',
    ['vllm', 'sglang', 'tgi', 'trtllm', 'speech'],
  ],
  [
    'micro-batch',
    'micro-batch-size,mbs,per-device-train-batch-size,per-device-batch-size,per-gpu-batch-size,' +
      'per-gpu-train-batch-size,batch-size,bs,b,train-micro-batch-size-per-gpu,batch-size-per-gpu,' +
      'local-batch-size,micro-train-batch-size',
    [
      'transformers',
      'deepspeed',
      'megatron',
      'axolotl',
      'nanogpt',
      'minimind',
      'torchtune',
      'speech',
    ],
  ],
  [
    'batch',
    'per-device-train-batch-size,per-device-batch-size,per-gpu-batch-size,per-gpu-train-batch-size,micro-batch-size,' +
      'micro-batch,mbs,train-micro-batch-size-per-gpu,train-batch-size,batch-size-per-gpu,local-batch-size',
    ['transformers', 'deepspeed', 'megatron', 'axolotl', 'nanogpt', 'minimind', 'speech'],
  ],
  // These count sequences.
  [
    'global-batch*context',
    'global-batch-size,gbs,train-batch-size,global-train-batch-size',
    ['megatron', 'deepspeed', 'litgpt'],
  ],
  // These count tokens.
  ['global-batch', 'tokens-per-step,total-batch-size,tokens-per-batch', ['nanogpt', 'speech']],
  [
    'accumulation',
    'gradient-accumulation-steps,grad-accum,gradient-accumulation,accumulation-steps,accum-steps,grad-accum-steps,' +
      'gradient-accumulation-iters,accumulate-grad-batches,grad-acc,gas,accum',
    [
      'transformers',
      'accelerate',
      'deepspeed',
      'axolotl',
      'nanogpt',
      'minimind',
      'litgpt',
      'speech',
    ],
  ],
  [
    'dtype',
    'type,torch-dtype,data-type,outtype,out-type,quant,quantization,quantize,weight-dtype,load-in,precision,bits,d,dtypes,' +
      'quantization-bit,quant-type,model-dtype,quantization-method,weights-dtype,load-dtype,quantize-to,q-bits',
    [
      'llama.cpp',
      'vllm',
      'sglang',
      'tgi',
      'transformers',
      'accelerate',
      'llama-factory',
      'unsloth',
      'litgpt',
      'speech',
    ],
  ],
  [
    'weights',
    'quant,quantize,quantization,weight-dtype,bits,weight-form,q-bits',
    ['mlx', 'speech'],
  ],
  ['dtype=bf16', 'bf16,bfloat16', ['transformers', 'speech']],
  ['dtype=f16', 'fp16,float16,half,f16', ['transformers', 'speech']],
  ['dtype=f32', 'fp32,float32,f32,full-precision', ['transformers', 'speech']],
  ['dtype=f8', 'fp8,float8,f8', ['transformers', 'speech']],
  ['dtype=int8', 'int8,8bit,load-in-8bit,q8', ['transformers', 'axolotl', 'speech']],
  ['dtype=int4', 'int4,4bit,load-in-4bit,nf4,q4', ['transformers', 'axolotl', 'speech']],
  ['weights=int8', 'int8,8bit,load-in-8bit,q8', ['transformers', 'speech']],
  ['weights=int4', 'int4,4bit,load-in-4bit,nf4,q4', ['transformers', 'speech']],
  ['quantize=int8', 'int8,8bit,q8,load-in-8bit', ['transformers', 'speech']],
  ['quantize=int4', 'int4,4bit,q4,load-in-4bit', ['transformers', 'speech']],
  [
    'quantize',
    'quant,quantization,bits,dtype,outtype,type,quant-type,q,load-in,method,q-bits,wbits,export-quantization-bit,w-bit',
    ['llama.cpp', 'llama-factory', 'autogptq', 'mlx', 'ct2', 'speech'],
  ],
  ['compute=f16', 'fp16,float16,half,f16', ['optimum', 'speech']],
  ['compute=f32', 'fp32,float32,f32', ['speech']],
  [
    'cache-dtype',
    'kv-cache-dtype,kv-dtype,cache-type,kv-type,cache-type-k,cache-type-v,ctk,ctv,kv-cache-type,kv-bits,cache-type-kv,' +
      'ollama-kv-cache-type,kv-quant,cache-quantization,kv-cache-quantization',
    ['ollama', 'llama.cpp', 'vllm', 'sglang', 'tgi', 'mlx', 'speech'],
  ],
  ['precision', 'mixed-precision,amp-dtype,mixed-precision-type', ['accelerate', 'speech']],
  [
    'precision=mixed',
    'amp,mixed,mixed-precision,bf16,fp16,bfloat16,float16,use-amp,bf16-mixed',
    ['transformers', 'megatron', 'speech'],
  ],
  ['precision=bf16', 'bf16-true,pure-bf16', ['speech']],
  ['precision=fp8', 'fp8,float8,enable-float8,fp8-hybrid', ['megatron', 'speech']],
  ['precision=float32', 'fp32,float32,full-precision,no-amp', ['speech']],
  ['for=qlora', 'qlora,use-qlora,load-in-4bit,adapter=qlora,method=qlora', ['axolotl', 'speech']],
  [
    'for=lora',
    'lora,peft,use-lora,use-peft,finetune,fine-tune,finetuning,sft,adapter=lora,finetuning-type=lora,train-type=lora,method=lora,fine-tune-type=lora',
    ['axolotl', 'llama-factory', 'trl', 'mlx', 'speech'],
  ],
  [
    'for=training',
    'training,train,pretrain,pretraining,do-train,stage=sft,stage=pt,stage=dpo,finetuning-type=full,train-type=full,' +
      'fine-tune-type=full,full-finetune,full-finetuning',
    ['transformers', 'llama-factory', 'mlx', 'unsloth', 'speech'],
  ],
  ['for', 'mode,purpose,task,use,stage', ['speech']],
  ['for=serving', 'serving,serve,inference,infer', ['speech']],
  [
    'attention',
    'attn-implementation,attn,attention-backend,attn-impl,flash-attn,attn-backend',
    ['transformers', 'llama-factory', 'speech'],
  ],
  [
    'attention=fused',
    'flash-attn,flash-attention,flash-attention-2,flash-attn-2,flash-attn-3,fa,fa2,sdpa,use-flash-attn,flash,' +
      'use-flash-attention,sdp-attention,flash-attention-3,enable-flash-attn,xformers,xformers-attention,flashattention,' +
      'use-flash-attention-2,flash-attention=true,ollama-flash-attention,flash-attn=on,fa=on,fa=1,flash-attn=1',
    ['ollama', 'llama.cpp', 'koboldcpp', 'megatron', 'axolotl', 'speech'],
  ],
  [
    'attention=plain',
    'no-flash-attn,no-flash-attention,no-flash,eager,flash-attn=off,fa=off,fa=0,flash-attn=0',
    ['llama.cpp', 'speech'],
  ],
  [
    'loss=chunked',
    'use-liger-kernel,liger,enable-liger-kernel,use-liger,liger-fused-linear-cross-entropy,chunked-loss,cut-cross-entropy',
    ['transformers', 'axolotl', 'llama-factory', 'speech'],
  ],
  [
    'loss=fused',
    'fused-cross-entropy,fused-ce,cross-entropy-loss-fusion,liger-cross-entropy,unsloth-cross-entropy-loss',
    ['megatron', 'axolotl', 'speech'],
  ],
  [
    'max-params',
    'params,parameters,num-params,budget,max-parameters,size,target-params,n-params,model-size',
    ['speech'],
  ],
  ['max-memory', 'memory,vram,mem,max-mem,max-vram,ram', ['speech']],
  [
    'gpus',
    'gpu-count,num-gpus,n-gpus,ngpus,n-gpu,gpu-num,gpu-number,devices,nproc,nproc-per-node,world-size,num-processes,' +
      'n-devices,num-devices,ngpu,num-gpu,gpus-per-node,num-gpus-per-node,n-gpus-per-node',
    ['accelerate', 'torchrun', 'deepspeed', 'litgpt', 'speech'],
  ],
  // A device of torch is not a card.
  ['', 'device=~^(?:cuda|cpu|mps|xpu|auto)(?::\\d+)?$', ['nanogpt', 'minimind', 'lm-eval']],
  [
    'gpu',
    'card,gpu-type,gpu-name,accelerator,device,hardware,vram,memory,gpu-memory,g,gpus',
    ['speech'],
  ],
  [
    'tensor-parallel',
    'tp,tensor-parallel-size,tp-size,tensor-model-parallel-size,num-shard,tensor-parallel-degree,tp-degree',
    ['vllm', 'sglang', 'tgi', 'trtllm', 'megatron', 'speech'],
  ],
  [
    'pipeline-parallel',
    'pp,pipeline-parallel-size,pp-size,pipeline-model-parallel-size,pipeline-parallel-degree',
    ['vllm', 'sglang', 'trtllm', 'megatron', 'speech'],
  ],
  [
    'users',
    'concurrency,concurrent,concurrent-users,parallel,requests,user,clients,max-num-seqs,np,n-parallel,max-concurrency,' +
      'max-concurrent-requests,ollama-num-parallel,num-parallel,num-users,n-users',
    ['ollama', 'llama.cpp', 'vllm', 'tgi', 'genaiperf', 'speech'],
  ],
  [
    'prompt-tokens',
    'prompt,input-tokens,prompt-length,input-len,prompt-len,input,random-input-len,n-prompt,pp,isl,max-input-tokens,' +
      'max-input-length,max-input-len,synthetic-input-tokens-mean,input-sequence-length,input-length',
    ['llama.cpp', 'vllm', 'sglang', 'tgi', 'trtllm', 'genaiperf', 'speech'],
  ],
  [
    'output-tokens',
    'max-tokens,max-new-tokens,new-tokens,output-len,output-length,n-predict,random-output-len,n-gen,tg,osl,' +
      'output-tokens-mean,output-sequence-length,num-predict,gen-len,n',
    ['ollama', 'llama.cpp', 'vllm', 'sglang', 'trtllm', 'genaiperf', 'speech'],
  ],
  [
    'max-tokens',
    'max-new-tokens,new-tokens,n-predict,num-predict,max-length,length,output-tokens,n-tokens,n,max-output-tokens,' +
      'max-gen-len,predict,max-completion-tokens,max-gen-toks,n-gen,max-generated-tokens,gen-len,output-len',
    ['ollama', 'llama.cpp', 'transformers', 'nanogpt', 'lm-eval', 'mlx', 'openai', 'speech'],
  ],
  // llama-bench.
  ['context', 'p,n-prompt,input-len,pp,isl', ['llama.cpp', 'vllm', 'speech']],
  ['token-time', 'tpot,itl,inter-token-latency,time-per-output-token', ['genaiperf', 'speech']],
  ['prefill-time', 'ttft,time-to-first-token', ['genaiperf', 'speech']],
  ['train-tokens', 'tokens,training-tokens,num-tokens,dataset-tokens', ['speech']],
  [
    'tokens',
    'train-tokens,training-tokens,num-tokens,total-tokens,max-train-tokens',
    ['litgpt', 'speech'],
  ],
  ['gpu-memory-utilization', 'mem-fraction-static', ['sglang']],
  // A share of what is free beside the weights, where ours is one of the whole memory.
  ['<none>', 'kv-cache-free-gpu-memory-fraction=,free-gpu-memory-fraction=', ['trtllm']],
  ['eager', 'enforce-eager,disable-cuda-graph', ['vllm', 'sglang']],
  ['chunked-prefill', 'enable-chunked-prefill', ['vllm']],
  ['qps', 'rps,request-rate,requests-per-second', ['vllm', 'sglang', 'genaiperf', 'speech']],
  [
    'recompute',
    'gradient-checkpointing,activation-checkpointing,checkpointing,recomputation,recompute-granularity',
    ['megatron', 'speech'],
  ],
  ['recompute=selective', 'recompute-granularity=selective,recompute-activations', ['megatron']],
  [
    'recompute=full',
    'gradient-checkpointing,activation-checkpointing,checkpointing,recomputation,grad-checkpointing,' +
      'use-gradient-checkpointing,use-gradient-checkpointing=unsloth,gradient-checkpointing=unsloth,grad-ckpt,' +
      'checkpoint-activations,enable-activation-checkpointing,grad-checkpoint,enable-gradient-checkpointing',
    ['transformers', 'deepspeed', 'megatron', 'axolotl', 'unsloth', 'torchtune', 'mlx', 'speech'],
  ],
  [
    'recompute=none',
    'no-gradient-checkpointing,no-activation-checkpointing,no-checkpointing,no-recompute,no-recomputation,' +
      'disable-gradient-checkpointing',
    ['llama-factory', 'speech'],
  ],
  [
    'zero',
    'zero-stage,stage,deepspeed,deepspeed-stage,zero-optimization,ds-stage,zero-opt-level,zero-optimization-stage',
    ['accelerate', 'deepspeed', 'speech'],
  ],
  [
    'zero=1',
    'zero1,zero-stage1,stage1,use-distributed-optimizer,deepspeed=~z(?:ero)?\\W*_?(?:stage)?\\W*_?1',
    ['megatron', 'axolotl', 'deepspeed'],
  ],
  [
    'zero=2',
    'zero2,zero-stage2,stage2,fsdp=shard-grad-op,sharding-strategy=shard-grad-op,fsdp-sharding-strategy=shard-grad-op,' +
      'fsdp-sharding-strategy=2,deepspeed=~z(?:ero)?\\W*_?(?:stage)?\\W*_?2',
    ['fsdp', 'accelerate', 'transformers', 'axolotl', 'llama-factory'],
  ],
  [
    'zero=3',
    'fsdp=full-shard,sharding-strategy=full-shard,fsdp-sharding-strategy=full-shard,' +
      'fsdp-sharding-strategy=1,' +
      'fsdp=~^["\']?full_shard,zero3,zero-stage3,stage3,fsdp,fsdp2,full-shard,use-fsdp,' +
      'deepspeed=~z(?:ero)?\\W*_?(?:stage)?\\W*_?3',
    ['fsdp', 'accelerate', 'transformers', 'axolotl', 'llama-factory'],
  ],
  [
    'zero=hsdp',
    'fsdp=hybrid-shard,fsdp-sharding-strategy=hybrid-shard,sharding-strategy=hybrid-shard,fsdp-sharding-strategy=4,' +
      'hsdp,hybrid-shard',
    ['fsdp', 'accelerate', 'transformers'],
  ],
  [
    'zero=0',
    'no-zero,sharding-strategy=no-shard,fsdp-sharding-strategy=no-shard,fsdp-sharding-strategy=3,ddp,' +
      'deepspeed=~z(?:ero)?\\W*_?(?:stage)?\\W*_?0',
    ['fsdp', 'accelerate', 'llama-factory', 'speech'],
  ],
  [
    'optimizer',
    'optim,opt,optimiser,optimizer-type,optimizer-name,optim-type',
    ['transformers', 'axolotl', 'speech'],
  ],
  [
    'optimizer=adamw-8bit',
    'adam8bit,8bit-adam,adamw8bit,8bit-optimizer,use-8bit-adam,use-8bit-optimizer',
    ['speech'],
  ],
  [
    'lr',
    'learning-rate,max-lr,peak-lr,base-lr,rate,projector-lr,lr-max,max-learning-rate,optimizer-lr',
    ['transformers', 'axolotl', 'nanogpt', 'minimind', 'speech'],
  ],
  ['linear-lr', 'linear-learning-rate,lr-linear', ['speech']],
  ['elastic-lr', 'elastic-learning-rate,mlp-lr,mlp-learning-rate,lr-elastic', ['speech']],
  [
    'schedule',
    'scheduler,lr-scheduler,lr-scheduler-type,lr-schedule,lr-decay-style,lr-decay,lr-policy,scheduler-type',
    ['transformers', 'axolotl', 'megatron', 'speech'],
  ],
  [
    'warmup',
    'warmup-steps,num-warmup-steps,warmup-ratio,warmup-iters,lr-warmup-iters,warmup-share,warmup-proportion,' +
      'lr-warmup-steps,lr-warmup-fraction,warmup-num-steps,warmup-fraction,warm-up-steps,warmup-percent',
    [
      'transformers',
      'accelerate',
      'deepspeed',
      'megatron',
      'axolotl',
      'nanogpt',
      'litgpt',
      'speech',
    ],
  ],
  ['weight-decay', 'wd,decay', ['speech']],
  [
    'repeat',
    'repetitions,num-iters,n-repeat,runs,num-runs,iterations,rounds',
    ['llama.cpp', 'vllm', 'speech'],
  ],
  [
    'steps',
    'max-steps,train-steps,num-training-steps,iters,max-iters,total-steps,train-iters,num-steps,n,training-steps,n-steps,' +
      'max-iterations,max-train-steps,total-num-steps,num-iterations,iterations,training-iters',
    ['transformers', 'accelerate', 'deepspeed', 'megatron', 'nanogpt', 'mlx', 'litgpt', 'speech'],
  ],
  [
    'epochs',
    'num-train-epochs,num-epochs,epoch,e,max-epochs,train-epochs,n-epochs,total-epochs',
    ['transformers', 'axolotl', 'litgpt', 'minimind', 'speech'],
  ],
  [
    'data',
    'dataset,train-data,train-file,data-path,corpus,train-dataset,datasets,data-dir,training-data,train-data-path,' +
      'dataset-path,dataset-name',
    [
      'transformers',
      'megatron',
      'axolotl',
      'llama-factory',
      'nanogpt',
      'minimind',
      'unsloth',
      'speech',
    ],
  ],
  ['temperature', 'temp,t', ['llama.cpp', 'mlx', 'speech']],
  [
    'repetition-penalty',
    'repeat-penalty,rep-penalty,repetition-penality',
    ['ollama', 'llama.cpp', 'speech'],
  ],
  [
    'text',
    'file,data,corpus,input,dataset,text-file,f,eval-data,text-path',
    ['llama.cpp', 'speech'],
  ],
  [
    'save',
    'save-to,save-as,save-path,write-to,out,output-file,outfile,output-path,onnx,output-dir,output,o',
    ['optimum', 'speech'],
  ],
  ['row', 'write,pick,select', ['speech']],
  ['output', 'out,output-file,outfile,o,file,save-to,save,output-path', ['lm-eval', 'speech']],
  ['format=csv', 'csv', ['speech']],
  ['format=json', 'j', ['speech']],
  ['format=markdown', 'markdown,md', ['speech']],
  ['format=table', 'table,text,plain', ['speech']],
  ['format', 'f,output-format,fmt', ['speech']],
  [
    'force',
    'overwrite,yes,f,y,overwrite-output-dir,exist-ok',
    ['transformers', 'lmstudio', 'speech'],
  ],
  ['quiet', 'silent,s,disable-tqdm,log-disable', ['transformers', 'llama.cpp', 'speech']],
  ['explain', 'verbose,why,v,debug', ['llama.cpp', 'speech']],
  ['details', 'verbose,detail,long,all,full,v,l,debug', ['ollama', 'llama.cpp', 'speech']],
  ['vocab', 'vocab-size,vocabulary,vocabulary-size,padded-vocab-size', ['litgpt', 'speech']],
  [
    'depth',
    'layers,num-layers,num-hidden-layers,n-layer,n-layers',
    ['megatron', 'nanogpt', 'speech'],
  ],
  ['width', 'hidden-size,hidden,dim,d-model,n-embd', ['megatron', 'nanogpt', 'speech']],
  ['family', 'model-type,arch,architecture,model-family,model', ['speech']],
  ['to', 'layout,target-layout,mode,srte,strategy,srte-layout,srte-strategy,method', ['speech']],
  ['to=shared', 'shared,share', ['speech']],
  ['to=low-rank', 'low-rank,lowrank', ['speech']],
  ['rank', 'r,lora-rank,rank-size,low-rank,lowrank', ['peft', 'speech']],
  ['ranks', 'rank,r', ['speech']],
  ['tie', 'tie-embeddings,tie-word-embeddings,tied,tie-weights', ['speech']],
  ['tie=embed', 'tie-embeddings,tie-word-embeddings,tied,tie-weights', ['speech']],
  ['dry-run', 'dry,dryrun,plan,n', ['speech']],
  ['check', 'verify,strict,validate,fail', ['speech']],
  ['prove', 'verify,test,compare', ['speech']],
  [
    'shard-size',
    'max-shard-size,shards,split-max-size,out-shard-size,export-size',
    ['transformers', 'llama.cpp', 'llama-factory', 'deepspeed', 'speech'],
  ],
  ['against', 'compare,compare-with,reference,ref,with,vs', ['speech']],
  ['only', 'checks,tests,test,run', ['speech']],
  ['set', 'override,config-override,overrides,cfg,c,d,override-kv', ['speech']],
  ['config', 'cfg,config-file,conf,c', ['speech']],
  ['sort', 'sort-by,order,order-by', ['speech']],
  ['columns', 'column,cols,fields', ['speech']],
  ['filter', 'grep,name,pattern,include,match', ['hub', 'speech']],
  ['tensors', 'tensor,weights,all,list,keys', ['speech']],
  [
    'threads',
    'n-threads,num-threads,num-thread,cpus,cores,jobs,t,j,cpu-threads,omp-num-threads,nthreads,num-workers,nthread',
    ['ollama', 'llama.cpp', 'koboldcpp', 'speech'],
  ],
  ['list-gpus', 'gpus-list,list,show-gpus,gpu-list,list-devices', ['llama.cpp', 'speech']],
  [
    'trained',
    'original-context,train-context,original-max-position-embeddings,yarn-orig-ctx',
    ['llama.cpp', 'speech'],
  ],
  ['factor', 'scale,rope-factor,scaling-factor,rope-scale', ['llama.cpp', 'tgi', 'speech']],
  ['top', 'limit,n,num,count,max-results,k,top-n', ['speech']],
  ['top-k', 'k', ['speech']],
  ['top-p', 'p', ['speech']],
  ['show', 'head,samples,preview,n,limit', ['speech']],
  ['init-seed', 'init-base-seed,base-seed,param-seed', ['speech']],
  ['init-range', 'range,uniform-range', ['speech']],
  ['init-std', 'std,initializer-range,init-deviation,init-method-std', ['megatron', 'speech']],
  ['init-mean', 'mean', ['speech']],
  ['group', 'group-size,q-group-size,groupsize', ['autogptq', 'mlx', 'speech']],
  ['<pattern>', 'family,model-type,arch', ['speech']],
  ['group-size', 'gz,groups,group,q-group-size,groupsize', ['autogptq', 'mlx', 'speech']],
  ['hidden', 'hidden-size,emb-size,dim,d-model', ['speech']],
  ['world-size', 'ranks,w,num-ranks', ['speech']],
  ['student', 'student-width,width,student-size', ['speech']],
  ['checkpoint', 'weights,ckpt,model,load,model-path', ['speech']],
  [
    'merge-lora',
    'adapter,lora,lora-path,peft-model,lora-model-dir,adapter-path,adapters,lora-adapter,peft,lora-dir,' +
      'adapter-name-or-path,peft-model-id,adapter-file',
    ['llama.cpp', 'peft', 'axolotl', 'llama-factory', 'unsloth', 'mlx', 'speech'],
  ],
  [
    'adapter',
    'lora,lora-path,peft-model,adapter-path,lora-model-dir,adapter-name-or-path,lora-adapter,peft',
    ['llama.cpp', 'peft', 'axolotl', 'llama-factory', 'mlx', 'speech'],
  ],
  ...['q4_k_m', 'q4_0', 'q8_0', 'q5_k_m', 'q6_k', 'q4_k_s', 'q5_0', 'q3_k_m'].map(
    (type): FlagRow => [`dtype=${type}`, type.replaceAll('_', '-'), ['llama.cpp']],
  ),
  ['dtype=awq', 'awq', ['vllm', 'speech']],
  ['dtype=gptq', 'gptq', ['vllm', 'speech']],
  ['dtype=mxfp4', 'mxfp4', ['vllm', 'speech']],
  ['dtype=nvfp4', 'nvfp4', ['vllm', 'speech']],
  [
    'decay',
    'lr-decay-iters,lr-decay-steps,decay-steps,lr-wsd-decay-iters',
    ['nanogpt', 'megatron', 'speech'],
  ],
  [
    'no-color',
    'color=never,color=no,color=false,color=off,colour=never,no-colour,nocolor,plain,ascii,log-colors=off',
    ['llama.cpp', 'speech'],
  ],
  ['greedy', 'do-sample=false,sampling=false,deterministic', ['transformers', 'speech']],
  ['trace', 'dry-run,shapes', ['speech']],
  [
    'tokenizer',
    'tokenizer-name-or-path,tokenizer-path,tokenizer-name,tokenizer-file,tokenizer-model,vocab-file,tok,tokenizer-dir',
    ['sglang', 'megatron', 'transformers', 'speech'],
  ],
  ['save=model.onnx', 'format=onnx,to=onnx,to-onnx', ['speech']],
  [
    'seed',
    'manual-seed,rng-seed,s,random-seed,random-state',
    ['llama.cpp', 'sglang', 'unsloth', 'speech'],
  ],
  [
    'stop',
    'stop-sequence,stop-token,r,reverse-prompt,eos,stop-sequences,stop-strings',
    ['ollama', 'llama.cpp', 'transformers', 'speech'],
  ],
  [
    'system',
    'system-prompt,sys,system-message,system-instruction',
    ['llama.cpp', 'mlx', 'llama-factory', 'lm-eval', 'speech'],
  ],
  [
    'min-lr',
    'min-learning-rate,lr-min,learning-rate-min,eta-min,final-lr',
    ['megatron', 'nanogpt', 'speech'],
  ],
  [
    'draft',
    'draft-model,md,model-draft,assistant-model,speculative-model,spec-draft-model,speculative-draft-model-path',
    ['llama.cpp', 'vllm', 'sglang', 'transformers', 'mlx'],
  ],
  [
    'draft-tokens',
    'num-draft-tokens,draft-max,draft-n,num-assistant-tokens,num-speculative-tokens,speculative-num-draft-tokens',
    ['llama.cpp', 'vllm', 'sglang', 'transformers', 'mlx'],
  ],
  ['logprobs', 'top-logprobs,n-probs,num-logprobs', ['openai', 'llama.cpp', 'speech']],
  [
    'chat',
    'cnv,conversation,interactive,interactive-first,apply-chat-template,chat-mode',
    ['llama.cpp', 'lm-eval', 'speech'],
  ],
  ['stride', 'ppl-stride,rolling-stride', ['llama.cpp', 'speech']],
  ['offline', 'local-files-only,hf-hub-offline', ['llama.cpp', 'transformers']],
];

/** Flags that change an answer, and that no command here has. */
const WITHOUT_COUNTERPART: readonly FlagRow[] = [
  [
    '<none>',
    'num-gpu,num-batch=,mirostat=,mirostat-eta=,mirostat-tau=,tfs-z=,repeat-last-n=,num-keep=,num-gqa=',
    ['ollama'],
  ],
  [
    '<none>',
    'gpu-offload=,ngl,n-gpu-layers,gpu-layers,gpulayers,n-cpu-moe,ncmoe,cpu-moe,cmoe,n-cpu-ffn=,ncffn=,split-mode=,sm=,main-gpu=,mg=,' +
      'tensor-split=,ts=,override-tensor=,ot=,kv-offload,no-kv-offload,nkvo,kvo,swa-full,mmproj=,mm=,rope-scaling=,' +
      'rope-freq-base=,rope-freq-scale=,yarn-ext-factor=,yarn-attn-factor=,yarn-beta-slow=,yarn-beta-fast=,keep=,' +
      'typical=,typical-p=,presence-penalty=,frequency-penalty=,dry-multiplier=,dry-base=,dry-allowed-length=,' +
      'xtc-probability=,xtc-threshold=,top-n-sigma=,top-nsigma=,dynatemp-range=,dynatemp-exp=,logit-bias=,samplers=,' +
      'sampler-seq=,n-depth=,d=,fit-target=,fitt=,fit-ctx=,fitc=,cache-ram=,cram=,cache-reuse=,grammar=,grammar-file=,' +
      'json-schema=,imatrix=,output-tensor-type=,token-embedding-type=,tensor-type=,leave-output-tensor,pure,' +
      'allow-requantize,keep-split,lora-scaled=,lora-init-without-apply,control-vector=,embedding,embeddings,rerank,' +
      'ignore-eos,context-shift,no-context-shift,mirostat-lr=,mirostat-ent=',
    ['llama.cpp', 'koboldcpp'],
  ],
  [
    '<none>',
    'cpu-offload-gb=,swap-space=,max-num-batched-tokens=,num-gpu-blocks-override=,' +
      'enable-prefix-caching,no-enable-prefix-caching,' +
      'data-parallel-size=,dp=,data-parallel-size-local=,enable-expert-parallel,expert-parallel-size=,ep=,' +
      'enable-lora,max-loras=,max-lora-rank=,lora-modules=,speculative-config=,num-lookahead-slots=,' +
      'max-num-partial-prefills=,long-prefill-token-threshold=,hf-overrides=,rope-theta=,limit-mm-per-prompt=,' +
      'max-seq-len-to-capture=,kv-transfer-config=,kv-offloading-size=,cpu-offload=,decode-context-parallel-size=,' +
      'quantization-param-path=,calculate-kv-scales,num-scheduler-steps=,max-logprobs=',
    ['vllm'],
  ],
  [
    '<none>',
    'chunked-prefill-size=,max-prefill-tokens=,dp-size=,ep-size=,enable-dp-attention,' +
      'speculative-algorithm=,speculative-algo=,speculative-num-steps=,speculative-eagle-topk=,page-size=,' +
      'schedule-conservativeness=,cuda-graph-max-bs=,disable-radix-cache,enable-mixed-chunk,nnodes,max-queued-requests=,' +
      'enable-hierarchical-cache,hicache-ratio=,moe-a2a-backend=',
    ['sglang', 'torchrun'],
  ],
  [
    '<none>',
    'cuda-memory-fraction=,max-batch-prefill-tokens=,max-batch-total-tokens=,waiting-served-ratio=,speculate=,max-best-of=,' +
      'max-num-tokens=,max-beam-width=,' +
      'num-prompts=,num-requests=,request-count=,random-range-ratio=,burstiness=',
    ['tgi', 'trtllm', 'genaiperf', 'vllm'],
  ],
  [
    '<none>',
    'per-device-eval-batch-size=,label-smoothing-factor=,neftune-noise-alpha=,group-by-length,packing,padding-free,tf32,' +
      'auto-find-batch-size,lr-scheduler-kwargs=,fsdp-config=,num-beams=,num-beam-groups=,num-return-sequences=,' +
      'length-penalty=,no-repeat-ngram-size=,min-new-tokens=,min-length=,penalty-alpha=,guidance-scale=,' +
      'prompt-lookup-num-tokens=,encoder-no-repeat-ngram-size=,early-stopping,num-samples=,' +
      'offload-folder=',
    ['transformers', 'trl', 'nanogpt'],
  ],
  [
    '<none>',
    'lora-r=,lora-alpha=,lora-dropout=,lora-target=,lora-target-modules=,lora-target-linear,lora-bias=,use-rslora,use-dora,' +
      'lora-rank=,r=,target-modules=,modules-to-save=,loftq-config=,pissa-init,alpha=,bias=,lora-layers=',
    ['peft', 'axolotl', 'llama-factory', 'unsloth', 'mlx'],
  ],
  [
    '<none>',
    'offload-optimizer,offload-param,offload-optimizer-device=,offload-param-device=,fsdp-offload-params,cpu-offload,' +
      'num-nodes=,num-machines=,zero3-init-flag,offload,zero-hpz-partition-size=,context-parallel-size=,cp=,cp-size=,' +
      'expert-model-parallel-size=,num-layers-per-virtual-pipeline-stage=,num-virtual-stages-per-pipeline-rank=,' +
      'recompute-method=,recompute-num-layers=,train-samples=,lr-warmup-samples=,lr-decay-samples=,' +
      'distribute-saved-activations',
    ['deepspeed', 'accelerate', 'megatron'],
  ],
  [
    '<none>',
    'sample-packing,eval-sample-packing,pad-to-sequence-len,val-set-size=,lora-on-cpu,cosine-min-lr-ratio=,' +
      'max-samples=,max-train-samples=,packed,dataset-packed=,neat-packing,mask-history,train-on-inputs,val-size=,' +
      'early-stopping-patience=',
    ['axolotl', 'llama-factory', 'torchtune'],
  ],
  [
    '<none>@evaluate|generate|quick-test',
    'dtype=,torch-dtype=,parallelize',
    ['lm-eval', 'transformers'],
  ],
  [
    '<none>',
    'num-fewshot=,limit=,L=,gen-kwargs=,max-batch-size=,apply-chat-template,fewshot-as-multiturn,predict-only,use-cache=~[/.]',
    ['lm-eval'],
  ],
  ['<none>', 'opset=,optimize=,task=,framework=,atol=,no-post-process,monolith', ['optimum']],
  [
    '<none>',
    'damp-percent=,desc-act,sym,true-sequential,act-order,kv-group-size=,quantized-kv-start=,quant-predicate=,q-mode=',
    ['autogptq', 'mlx'],
  ],
];

/** Flags that change no answer here. */
const NOT_NEEDED: readonly FlagRow[] = [
  [
    '',
    'keepalive=,keep-alive=,insecure,hidethinking,think=,nowordwrap,template=,license,modelfile',
    ['ollama'],
  ],
  [
    '',
    'host=,port=,alias=,api-key=,api-key-file=,chat-template=,chat-template-file=,chat-template-kwargs=,jinja,no-jinja,' +
      'reasoning-format=,reasoning-budget=,reasoning=,metrics,props,slots,no-slots,slot-save-path=,timeout=,mlock,mmap,' +
      'no-mmap,use-mmap,use-mlock,numa=,prio=,poll=,cont-batching,cb,no-cont-batching,nocb,no-warmup,perf,no-perf,' +
      'log-file=,log-verbosity=,verbosity=,lv=,log-prefix,log-timestamps,hf-token=,hft=,threads-batch=,tb=,threads-http=,' +
      'webui,no-webui,kv-unified,kvu,check-tensors,special,sp,single-turn,st,no-cnv,no-conversation,escape,no-escape,' +
      'simple-io,cpu-mask=,cpu-range=,cpu-strict=,load-mode=,lm=,repack,no-repack,no-host,usecublas,usevulkan,' +
      'launch,ssl-key-file=,ssl-cert-file=,multiuser=,no-op-offload,cache-prompt,progress,' +
      'display-prompt,no-display-prompt,seed=,threads=,t=,fit=on,fit=off',
    ['llama.cpp', 'koboldcpp'],
  ],
  ['', 'identifier=,ttl=,estimate-only,exact', ['lmstudio']],
  [
    '',
    'served-model-name=,tokenizer=,tokenizer-mode=,tokenizer-revision=,revision=,code-revision=,download-dir=,' +
      'load-format=,config-format=,trust-remote-code,disable-log-requests,disable-log-stats,' +
      'disable-custom-all-reduce,distributed-executor-backend=,tool-call-parser=,enable-auto-tool-choice,' +
      'reasoning-parser=,enable-reasoning,uvicorn-log-level=,allowed-origins=,compilation-config=,model-impl=,runner=,' +
      'task=,guided-decoding-backend=,attention-backend=,generation-config=,override-generation-config=,skip-tokenizer-init,' +
      'dataset-name=,dataset-path=,backend=,base-url=,endpoint=,endpoint-type=,save-result,async-scheduling,' +
      'api-server-count=,response-role=,return-tokens-as-token-ids,allow-credentials,root-path=,device=,' +
      'disable-frontend-multiprocessing,use-v2-block-manager,worker-use-ray,ray-workers-use-nsight,headless',
    ['vllm'],
  ],
  [
    '',
    'schedule-policy=,log-level=,log-level-http=,log-requests,show-time-cost,enable-metrics,enable-torch-compile,' +
      'torch-compile-max-bs=,cuda-graph-bs=,sampling-backend=,grammar-backend=,enable-p2p-check,' +
      'watchdog-timeout=,dist-init-addr=,node-rank=,nccl-init-addr=,load-balance-method=,stream-interval=,file-storage-path=,' +
      'skip-server-warmup,json-model-override-args=,warmups=,decode-attention-backend=,prefill-attention-backend=,attn-backend=',
    ['sglang'],
  ],
  [
    '',
    'hostname=,validation-workers=,sharded,shard-uds-path=,master-addr=,huggingface-hub-cache=,weights-cache-override=,' +
      'disable-custom-kernels,json-output,otlp-endpoint=,max-client-batch-size=,tokenizer-config-path=,env,' +
      'extra-llm-api-options=,num-postprocess-workers=,streaming,service-kind=,measurement-interval=',
    ['tgi', 'trtllm', 'genaiperf'],
  ],
  [
    '',
    'output-dir=,do-train,do-eval,do-predict,eval-strategy=,evaluation-strategy=,eval-steps=,save-strategy=,save-steps=,' +
      'save-total-limit=,save-safetensors,save-only-model,logging-dir=,logging-steps=,logging-strategy=,' +
      'logging-first-step,report-to=,run-name=,log-on-each-node,data-seed=,local-rank=,ddp-backend=,' +
      'ddp-find-unused-parameters=,ddp-timeout=,dataloader-num-workers=,dataloader-pin-memory,dataloader-drop-last,' +
      'dataloader-prefetch-factor=,dataloader-persistent-workers,remove-unused-columns=,load-best-model-at-end,' +
      'metric-for-best-model=,greater-is-better,push-to-hub,hub-model-id=,hub-token=,hub-strategy=,hub-private-repo,' +
      'resume-from-checkpoint=,torch-compile,torch-compile-backend=,torch-compile-mode=,adam-beta1=,adam-beta2=,' +
      'adam-epsilon=,max-grad-norm=,gradient-checkpointing-kwargs=,optim-args=,seed=,bf16-full-eval,fp16-full-eval,' +
      'half-precision-backend=,fp16-opt-level=,disable-tqdm,overwrite-output-dir,ignore-data-skip,' +
      'eval-accumulation-steps=,include-num-input-tokens-seen,prediction-loss-only,past-index=,label-names=,use-cpu,' +
      'no-cuda,average-tokens-across-devices,do-sample,sample,use-cache,device-map=,low-cpu-mem-usage,use-fast,' +
      'output-hidden-states,output-attentions,return-dict-in-generate,output-scores,pad-token-id=,eos-token-id=,' +
      'bos-token-id=,skip-special-tokens,bnb-4bit-compute-dtype=,bnb-4bit-quant-type=,bnb-4bit-use-double-quant,' +
      'bnb-4bit-quant-storage=,use-bnb-nested-quant,llm-int8-threshold=,llm-int8-enable-fp32-cpu-offload,' +
      'num-beams=1,num-beam-groups=1,num-return-sequences=1,num-samples=1,token=,use-auth-token,cache-dir=,' +
      'safe-serialization,stream,streamer',
    ['transformers'],
  ],
  // A plan of steps and rates is the same with them.
  [
    '@train-plan',
    'optim=,optimizer=,bf16,fp16,dtype=,torch-dtype=,flash-attention,flash-attn,attn-implementation=,' +
      'mixed-precision=,tf32,dropout=,load-in-4bit,load-in-8bit',
    ['transformers', 'axolotl', 'llama-factory', 'nanogpt'],
  ],
  [
    '',
    'dataset-text-field=,dataset-num-proc=,completion-only-loss,assistant-only-loss,eos-token=,dataset-split=,dataset-config=',
    ['trl'],
  ],
  [
    '',
    'library-name=,access-token=,main-process-port=,main-process-ip=,machine-rank=,dynamo-backend=,multi-gpu,config-file=,same-network,use-deepspeed,deepspeed-config-file=,fsdp-auto-wrap-policy=,fsdp-transformer-layer-cls-to-wrap=,fsdp-version=,fsdp-state-dict-type=,fsdp-backward-prefetch=,fsdp-use-orig-params,fsdp-cpu-ram-efficient-loading,gradient-clipping=,downcast-bf16',
    ['accelerate'],
  ],
  [
    '',
    'node-rank=,master-addr=,master-port=,rdzv-backend=,rdzv-endpoint=,rdzv-id=,standalone,max-restarts=,monitor-interval=,local-rank=,log-dir=',
    ['torchrun'],
  ],
  [
    '',
    'hostfile=,include=,exclude=,deepspeed-config=,overlap-comm,contiguous-gradients,reduce-bucket-size=,allgather-bucket-size=,reduce-scatter,round-robin-gradients,stage3-prefetch-bucket-size=,stage3-param-persistence-threshold=,stage3-max-live-parameters=,stage3-gather-16bit-weights-on-model-save,stage3-gather-fp16-weights-on-model-save,steps-per-print=,wall-clock-breakdown,tag=',
    ['deepspeed'],
  ],
  [
    '',
    'clip-grad=,log-interval=,save-interval=,eval-interval=,eval-iters=,merge-file=,split=,tokenizer-type=,save=,load=,adam-eps=,distributed-backend=,no-masked-softmax-fusion,no-gradient-accumulation-fusion,no-bias-gelu-fusion,no-load-optim,no-load-rng,transformer-impl=,overlap-grad-reduce,overlap-param-gather,attention-dropout=,hidden-dropout=,make-vocab-size-divisible-by=,override-opt-param-scheduler,use-mcore-models,tensorboard-dir=,use-legacy-models,initial-loss-scale=,accumulate-allreduce-grads-in-fp32',
    ['megatron'],
  ],
  [
    '',
    'wandb-project=,wandb-entity=,wandb-watch=,wandb-name=,wandb-log-model=,wandb-mode=,dataset-prepared-path=,evals-per-epoch=,saves-per-epoch=,eval-table-size=,special-tokens=,launcher=,accelerate,no-accelerate,gradio,prompter=,debug-num-examples=,use-gpu,download,eval-max-new-tokens=,loss-watchdog-threshold=',
    ['axolotl'],
  ],
  [
    '',
    'template=,preprocessing-num-workers=,plot-loss,overwrite-cache,finetuning-type=,export-legacy-format,export-device=,export-hub-model-id=,infer-backend=,stage=~^(?:sft|pt|rm|ppo|dpo|kto)$,dataset-dir=,media-dir=,upcast-layernorm',
    ['llama-factory'],
  ],
  ['', 'save-model,save-method=,push-model,push-gguf,hub-path=,save-gguf', ['unsloth']],
  [
    '',
    'shuffle,max-steps-per-epoch=,log-every-n-steps=,log-peak-memory-stats,metric-logger=,eval-interval=',
    ['torchtune', 'litgpt'],
  ],
  [
    '',
    'eval-only,always-save-checkpoint,init-from=,wandb-log,wandb-project=,wandb-run-name=,beta1=,beta2=,grad-clip=,' +
      'decay-lr,out-dir=,compile,log-interval=,eval-interval=,eval-iters=,backend=,device=',
    ['nanogpt'],
  ],
  ['@evaluate', 'batch-size=', ['lm-eval']],
  [
    '',
    'cache-requests=,log-samples,s,include-path=,show-config,write-out,w,wandb-args=,hf-hub-log-args=,metadata=,confirm-run-unsafe-code,check-integrity,verbosity=,output-path=',
    ['lm-eval'],
  ],
  [
    '',
    'ignore-chat-template,use-default-chat-template,extra-eos-token=,prompt-cache-file=,upload-repo=,prefill-response=,verbose=',
    ['mlx'],
  ],
  [
    '',
    'use-wandb,num-workers=,save-dir=,save-weight=,from-weight=,from-resume=,use-moe,use-compile,wandb,local-dir=,repo-type=',
    ['minimind', 'hub'],
  ],
];

export const FLAGS: readonly FlagRow[] = [...COUNTERPARTS, ...WITHOUT_COUNTERPART, ...NOT_NEEDED];

/** Values that disable a flag, for switches of other tools that mean another one of its values. */
export const OFF: Readonly<Record<string, string>> = {
  ...{ recompute: 'none', zero: '0', attention: 'plain', precision: 'float32' },
};

/** Numbers that mean all layers in llama.cpp. */
const ALL_LAYERS = { '-1': '', '99': '', '999': '', all: '' } as const;

/** Types of a cache in llama.cpp and mlx-lm. */
const CACHE_TYPES = { '8': 'int8', '4': 'int4' } as const;

const BITS = { '4': 'int4', '8': 'int8', '16': 'bf16', '32': 'f32' } as const;

/** Values of flags of other tools and what they are called here; '' where the flag is then not needed. */
export const VALUES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ...{ bits: BITS, quantizationbit: BITS, qbits: BITS, wbits: BITS, wbit: BITS },
  ...{ exportquantizationbit: BITS },
  loadin: { '4bit': 'int4', '8bit': 'int8' },
  quantization: { bitsandbytes: 'int4', bnb: 'int4' },
  quantize: {
    ...{ bitsandbytes: 'int8', 'bitsandbytes-nf4': 'int4', eetq: 'int8' },
    ...{ 'bnb.nf4': 'int4', 'bnb.nf4-dq': 'int4', 'bnb.fp4': 'int4', 'bnb.int8': 'int8' },
  },
  kvcachedtype: { auto: '' },
  ...{ cachetypek: CACHE_TYPES, cachetypev: CACHE_TYPES, ctk: CACHE_TYPES, ctv: CACHE_TYPES },
  ...{ kvcachetype: CACHE_TYPES, ollamakvcachetype: CACHE_TYPES, kvbits: CACHE_TYPES },
  fa: { auto: '' },
  flashattn: { auto: '' },
  // Mixed precision keeps float32 weights for products in bfloat16 and in float16.
  mixedprecision: { bf16: 'mixed', fp16: 'mixed', no: 'float32' },
  dosample: { true: '' },
  bf16: { auto: 'true' },
  fp16: { auto: 'true' },
  maxsteps: { '-1': '' },
  // All layers on the GPU, as here.
  ...{ ngl: ALL_LAYERS, ngpulayers: ALL_LAYERS, gpulayers: ALL_LAYERS, numgpu: ALL_LAYERS },
};
