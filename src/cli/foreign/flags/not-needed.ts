/** Flags that change no answer here. */
import type { FlagRow } from './flag-row.js';

/** Rows that are not needed. */
export const NOT_NEEDED: readonly FlagRow[] = [
  ['@evaluate', 's', ['lm-eval']],
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
    'optim=~^adamw,optimizer=~^adamw,bf16,fp16,' +
      'dtype=,torch-dtype=,flash-attention,flash-attn,attn-implementation=,mixed-precision=,tf32,dropout=',
    ['transformers', 'axolotl', 'llama-factory', 'nanogpt'],
  ],
  [
    '',
    'dataset-text-field=,dataset-num-proc=,completion-only-loss,assistant-only-loss,eos-token=,dataset-split=,dataset-config=',
    ['trl'],
  ],
  [
    '',
    'library-name=,access-token=,main-process-port=,main-process-ip=,machine-rank=,dynamo-backend=,multi-gpu,same-network,use-deepspeed,fsdp-auto-wrap-policy=,fsdp-transformer-layer-cls-to-wrap=,fsdp-version=,fsdp-state-dict-type=,fsdp-backward-prefetch=,fsdp-use-orig-params,fsdp-cpu-ram-efficient-loading,gradient-clipping=,downcast-bf16',
    ['accelerate'],
  ],
  [
    '',
    'node-rank=,master-addr=,master-port=,rdzv-backend=,rdzv-endpoint=,rdzv-id=,standalone,max-restarts=,monitor-interval=,local-rank=,log-dir=',
    ['torchrun'],
  ],
  [
    '',
    'hostfile=,include=,exclude=,overlap-comm,contiguous-gradients,reduce-bucket-size=,allgather-bucket-size=,reduce-scatter,round-robin-gradients,stage3-prefetch-bucket-size=,stage3-param-persistence-threshold=,stage3-max-live-parameters=,stage3-gather-16bit-weights-on-model-save,stage3-gather-fp16-weights-on-model-save,deepspeed=~^(?!.*\\.json$),steps-per-print=,wall-clock-breakdown,tag=',
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
    'template=,preprocessing-num-workers=,plot-loss,overwrite-cache,finetuning-type=~^(?:full|freeze)$,export-legacy-format,export-device=,export-hub-model-id=,infer-backend=,stage=~^(?:sft|pt|rm|ppo|dpo|kto)$,dataset-dir=,media-dir=,upcast-layernorm',
    ['llama-factory'],
  ],
  [
    '@train-plan',
    'fine-tune-type=full,finetuning-type=full,train-type=full,tuner-type=full,rlhf-type=',
    ['mlx', 'llama-factory', 'swift'],
  ],
  [
    '',
    'infer-backend=,quant-method=,model-author=,stream=,max-logprobs=,use-hf=,model-type=,eval-backend=,split-dataset-ratio=,' +
      'deepspeed-plugin=,load-from-cache-file=',
    ['swift'],
  ],
  [
    '',
    'gemm-plugin=,gpt-attention-plugin=,engine-dir=,workers=,log-level=,workspace=,remove-input-padding=,paged-kv-cache=,' +
      'use-paged-context-fmha=,multiple-profiles=',
    ['trtllm'],
  ],
  ['', 'gguf-path=,optimize-config-path=,optimize-rule-path=,prompt-file=', ['ktransformers']],
  ['', 'indent=', ['speech']],
  ['', 'loader=,nowebui,listen,api,extensions=', ['webui']],
  ['', 'no-tensors', ['llama.cpp']],
  ['', 'save-model,save-method=,push-model,push-gguf,hub-path=,save-gguf', ['unsloth']],
  [
    '',
    'shuffle,max-steps-per-epoch=,log-every-n-steps=,log-peak-memory-stats,metric-logger=,eval-interval=',
    ['torchtune', 'litgpt'],
  ],
  [
    '',
    'eval-only,always-save-checkpoint,init-from=~^(?:scratch|resume)$,wandb-log,wandb-project=,wandb-run-name=,beta1=,beta2=,grad-clip=,' +
      'decay-lr,out-dir=,compile,log-interval=,eval-interval=,eval-iters=,backend=,device=',
    ['nanogpt'],
  ],
  ['@evaluate', 'batch-size=', ['lm-eval']],
  [
    '',
    'cache-requests=,log-samples,include-path=,show-config,write-out,w,wandb-args=,hf-hub-log-args=,metadata=,confirm-run-unsafe-code,check-integrity,verbosity=,output-path=',
    ['lm-eval'],
  ],
  [
    '',
    'ignore-chat-template,use-default-chat-template,extra-eos-token=,prompt-cache-file=,upload-repo=,prefill-response=,verbose=',
    ['mlx'],
  ],
  [
    '',
    'use-wandb,num-workers=,save-dir=,save-weight=,from-weight=,from-resume=,use-compile,wandb,local-dir=,repo-type=',
    ['minimind', 'hub'],
  ],
];
