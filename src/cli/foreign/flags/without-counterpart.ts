/** Flags that change an answer, and that no command here has. */
import type { FlagRow } from './flag-row.js';

/** Rows without a counterpart. */
export const WITHOUT_COUNTERPART: readonly FlagRow[] = [
  [
    '<none>',
    'num-gpu,num-batch=,mirostat=,mirostat-eta=,mirostat-tau=,tfs-z=,repeat-last-n=,num-keep=,num-gqa=',
    ['ollama'],
  ],
  [
    '<none>',
    'ngl,n-gpu-layers,gpu-layers,gpulayers,n-cpu-moe,ncmoe,cpu-moe,cmoe,n-cpu-ffn=,ncffn=,split-mode=,sm=,main-gpu=,mg=,' +
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
      'data-parallel-size-local=,' +
      'enable-lora,max-loras=,max-lora-rank=,lora-modules=,num-lookahead-slots=,' +
      'max-num-partial-prefills=,long-prefill-token-threshold=,hf-overrides=,rope-theta=,limit-mm-per-prompt=,' +
      'max-seq-len-to-capture=,kv-transfer-config=,kv-offloading-size=,cpu-offload=,' +
      'quantization-param-path=,calculate-kv-scales,num-scheduler-steps=,max-logprobs=',
    ['vllm'],
  ],
  [
    '<none>',
    'chunked-prefill-size=,max-prefill-tokens=,' +
      'speculative-algorithm=,speculative-algo=,speculative-num-steps=,speculative-eagle-topk=,page-size=,' +
      'schedule-conservativeness=,cuda-graph-max-bs=,disable-radix-cache,enable-mixed-chunk,nnodes,max-queued-requests=,' +
      'enable-hierarchical-cache,hicache-ratio=,moe-a2a-backend=',
    ['sglang', 'torchrun'],
  ],
  [
    '<none>',
    'cuda-memory-fraction=,max-batch-prefill-tokens=,max-batch-total-tokens=,waiting-served-ratio=,speculate=,max-best-of=,' +
      'max-num-tokens=,max-beam-width=,' +
      'num-prompts=,num-prompt=,num-requests=,request-count=,random-range-ratio=,burstiness=',
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
      'num-nodes=,num-machines=,zero3-init-flag,offload,zero-hpz-partition-size=,' +
      'num-layers-per-virtual-pipeline-stage=,num-virtual-stages-per-pipeline-rank=,' +
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
  // The memory of a plan is that of AdamW on all weights.
  [
    '<none>@train-plan',
    'optim=~^(?!adamw(?:_torch)?(?:_fused)?$),optimizer=~^(?!adamw(?:_torch)?(?:_fused)?$),load-in-4bit,load-in-8bit,quantization-bit=',
    ['transformers', 'axolotl', 'llama-factory'],
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
  ['<none>', 'gpu-split=,autosplit-reserve=', ['webui', 'tabbyapi']],
  ['<none>', 'cpu-infer=,chunks=', ['ktransformers', 'llama.cpp']],
  [
    '<none>',
    'opset=,opset-version=,optimize=,task=,framework=,atol=,no-post-process,monolith',
    ['optimum'],
  ],
  [
    '<none>',
    'damp-percent=,desc-act,sym,true-sequential,act-order,kv-group-size=,quantized-kv-start=,quant-predicate=,q-mode=',
    ['autogptq', 'mlx'],
  ],
];
