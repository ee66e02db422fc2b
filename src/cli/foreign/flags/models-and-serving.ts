/** Models, sizes, number types and graphics cards, and how a model is served. */
import type { FlagRow } from './flag-row.js';

/** Rows of models and serving. */
export const MODELS_AND_SERVING: readonly FlagRow[] = [
  [
    '<shown>@profile',
    'params,parameters,num-params,params-only,count-only,flops,macs,memory,vram,kv-cache,kv,size',
    ['speech', 'ollama'],
  ],
  ['<none>@fit|evaluate', 'b,n-batch,ub=,ubatch-size=,blasbatchsize=', ['llama.cpp', 'koboldcpp']],
  ['<none>@fit', 'block-size=1,block-size=8,block-size=16,block-size=32,block-size=64', ['vllm']],
  ['<none>@fit', 'num-gpu=~^(?:-1|\\d\\d+)$', ['ollama']],
  // The context of the model itself, and no tokens to write.
  ['<none>', 'c=0,ctx-size=0,n=0,n-gen=0,p=0,n-prompt=0', ['llama.cpp']],
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
      'model-id-or-path,pretrained-model,pretrain,model-dir,checkpoint-dir,hf-path,base-model-id,base-model-name,model-tag,load,from,config-name,init-from=~^gpt2',
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
      ...(['litgpt', 'mlx', 'megatron', 'nanogpt', 'speech'] as const),
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
      'max-kv-size,tokens-per-sequence,ollama-context-length,n-positions,max-len,source-max-len',
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
    'batch-size,bs,bsz,batchsize,max-num-seqs,b,max-running-requests,max-batch-size',
    ['vllm', 'sglang', 'tgi', 'trtllm', 'speech'],
  ],
  [
    'micro-batch',
    'micro-batch-size,mbs,per-device-train-batch-size,per-device-batch-size,per-gpu-batch-size,' +
      'per-gpu-train-batch-size,batch-size,bs,bsz,b,train-micro-batch-size-per-gpu,batch-size-per-gpu,' +
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
      'micro-train-batch-size,micro-batch,mbs,train-micro-batch-size-per-gpu,train-batch-size,batch-size-per-gpu,local-batch-size',
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
    'gradient-accumulation-steps,grad-accumulation-steps,grad-accum,gradient-accumulation,accumulation-steps,accum-steps,grad-accum-steps,' +
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
    'to=~^(?:b?f(?:p|loat)?(?:8|16|32)|half|q\\d_\\w+)$,type,torch-dtype,data-type,outtype,out-type,quant,quantization,quantize,weight-dtype,load-in,precision,bits,d,dtypes,' +
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
  ['dtype=int8', 'int8,8bit,load-in-8bit,load-8bit,q8', ['transformers', 'axolotl', 'speech']],
  ['dtype=int4', 'int4,4bit,load-in-4bit,load-4bit,nf4,q4', ['transformers', 'axolotl', 'speech']],
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
      'ollama-kv-cache-type,kv,kv-cache,kv-quant,cache-quantization,kv-cache-quantization',
    ['ollama', 'llama.cpp', 'vllm', 'sglang', 'tgi', 'mlx', 'speech'],
  ],
  [
    'ram',
    'system-ram,host-ram,host-memory,cpu-ram,system-memory,main-memory,cpu-memory,sys-ram',
    ['speech'],
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
  [
    'for=qlora',
    'finetuning-type=qlora,train-type=qlora,tuner-type=qlora,fine-tune-type=qlora,' +
      'qlora,use-qlora,load-in-4bit,adapter=qlora,method=qlora,peft=qlora,peft-type=qlora,peft-method=qlora,' +
      'tuning=qlora,training=qlora,train=qlora,finetune=qlora',
    ['axolotl', 'speech'],
  ],
  [
    'for=lora',
    'peft=lora,peft-type=lora,peft-method=lora,tuning=lora,training=lora,train=lora,finetune=lora,lora,peft,use-lora,use-peft,finetune,fine-tune,finetuning,sft,adapter=lora,finetuning-type=lora,train-type=lora,method=lora,fine-tune-type=lora',
    ['axolotl', 'llama-factory', 'trl', 'mlx', 'speech'],
  ],
  [
    'for=training',
    'training,train,pretrain,pretraining,do-train,stage=sft,stage=pt,stage=dpo,finetuning-type=full,train-type=full,sft-type=full,' +
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
  [
    '',
    'device=~^(?:(?:cuda|cpu|mps|xpu|npu|hpu|auto|none|vulkan|metal|mtl|sycl|rocm|htp|musa|cann)[:\\d]*\\W?)+$',
    ['nanogpt', 'minimind', 'lm-eval', 'llama.cpp'],
  ],
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
    'expert-parallel',
    'ep,expert-parallel-size,ep-size,expert-model-parallel-size,expert-parallel-degree,moe-ep-size,experts-parallel',
    ['vllm', 'sglang', 'trtllm', 'megatron', 'speech'],
  ],
  ['expert-parallel=all', 'enable-expert-parallel,enable-ep-moe', ['vllm', 'sglang']],
  [
    'expert-tensor-parallel',
    'expert-tensor-parallel-size,expert-tensor-parallel-degree,etp',
    ['megatron', 'speech'],
  ],
  [
    'context-parallel',
    'cp,context-parallel-size,cp-size,context-parallel-degree,decode-context-parallel-size,dcp,dcp-size,' +
      'ring-attention-size,sequence-parallel-degree',
    ['vllm', 'sglang', 'megatron', 'axolotl', 'speech'],
  ],
  [
    'dp-attention',
    'data-parallel-size,dp,dp-size,data-parallel-attention,attention-dp,attn-dp-size',
    ['vllm', 'sglang', 'trtllm', 'speech'],
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
  // A share of the memory that the weights leave free; ours is a share of the whole memory.
  ['<none>', 'kv-cache-free-gpu-memory-fraction=,free-gpu-memory-fraction=', ['trtllm']],
  ['eager', 'enforce-eager,disable-cuda-graph', ['vllm', 'sglang']],
  ['chunked-prefill', 'enable-chunked-prefill', ['vllm']],
  ['p95', 'p95-latency', ['speech']],
  ['min-speed@fit', 'tokens-per-second,tps,min-tps,toks-per-second', ['speech']],
  ['qps', 'rps,request-rate,requests-per-second', ['vllm', 'sglang', 'genaiperf', 'speech']],
];
