/** Flags of serving programs, launchers and fine-tuning programs that come before the others. */
import { type FlagRow, ofStage } from './flag-row.js';

/** A rule of llama.cpp for the experts of all layers and all three matrices: without a layer, and without a choice. */
const ALL_EXPERTS = String.raw`^(?:blk|ffn|weight|\\d|\((?:(?:gate|up|down)\|?){3}\)|[\\.*+^$_])*exps(?:weight|[\\.*+^$_])*=cpu$`;

/** Rows that come first. */
export const FURTHER_FLAGS: readonly FlagRow[] = [
  ['rank@fit', 'lora-r,lora-rank,lora-dim', ['peft', 'axolotl', 'llama-factory', 'deepspeed']],
  ['targets@fit', 'lora-target-modules,lora-target,target-modules', ['peft', 'llama-factory']],
  ...['ot', 'override-tensor'].map(
    (name): FlagRow => ['cpu-experts=all', `${name}=~${ALL_EXPERTS}`, ['llama.cpp']],
  ),
  [
    'training-config@train-plan|fit',
    'deepspeed-config,deepspeed-config-file,config-file,accelerate.config-file',
    ['deepspeed', 'accelerate'],
  ],
  [
    'offload=optimizer',
    'cpu-offload,offload-to-cpu,offload-cpu,cpu-offload-optimizer,offload-optimizer=cpu,offload-optimizer,offload-optimizer-device=cpu,optimizer-cpu-offload,zero-offload',
    ['deepspeed', 'accelerate', 'megatron'],
  ],
  [
    'offload=parameters',
    'cpu-offload-params,cpu-offload-parameters,fsdp-cpu-offload,offload-params,offload-parameters,offload-param=cpu,offload-param,offload-param-device=cpu,fsdp-offload-params',
    ['deepspeed', 'accelerate'],
  ],
  // Tokens of a training, on which the shape of a model does not depend.
  [
    '<none>@plan',
    'data=~^\\d,tokens=,train-tokens=,training-tokens=,dataset-tokens=,num-tokens=',
    ['speech'],
  ],
  // How the types of a file are found: it is written with rounding to the nearest value here.
  [
    '<none>@convert-checkpoint',
    [
      'method',
      'quant-method',
      'quantization-method',
      'algorithm',
      'algo',
      'quant-algo',
      'scheme',
      'quant-type',
    ]
      .map(
        (name) =>
          `${name}=~^(?:awq|gptq|hqq|bnb|bitsandbytes|smooth_?quant|auto_?round|spqr|quip|aqlm|exl[23]|marlin|dwq|omniquant|torchao|quanto)`,
      )
      .join(),
    ['autogptq', 'mlx', 'speech'],
  ],
  ['@convert-checkpoint', 'method=rtn,algorithm=rtn,algo=rtn', ['speech']],
  [
    '<shown>@list',
    'list-models,show-models,available-models,supported-models,list-presets',
    ['speech'],
  ],
  [
    '>list --details@fit|profile|plan|compare|train-plan|generate|inspect|validate',
    'list-models,show-models,available-models,supported-models,list-presets',
    ['speech'],
  ],
  [
    '<shown>@profile',
    'flops-per-token,flops-per-step,training-flops,inference-flops,total-params,trainable-params,trainable-parameters,' +
      'non-embedding-params,active-params,total-parameters,param-count,params-count,memory-usage,weight-memory,' +
      'weights-size,kv-cache-size,kv-size,kv-per-token,bytes-per-token,checkpoint-size,file-size,gflops,tflops',
    ['speech'],
  ],
  ['dtype=bf16@convert-checkpoint', 'to-bf16,to-bfloat16,as-bf16,convert-to-bf16', ['speech']],
  [
    'dtype=f16@convert-checkpoint',
    'to-f16,to-fp16,to-float16,to-half,as-fp16,convert-to-fp16',
    ['speech'],
  ],
  [
    'dtype=f32@convert-checkpoint',
    'to-f32,to-fp32,to-float32,to-float,as-fp32,convert-to-fp32',
    ['speech'],
  ],
  ['quantize=int8@convert-checkpoint', 'to-int8,to-8bit,as-int8', ['speech']],
  ['quantize=int4@convert-checkpoint', 'to-int4,to-4bit,as-int4', ['speech']],
  // A seed in one program, and a length in speech.
  ['<none>@profile|fit|compare', 's=~^\\d+$', ['llama.cpp', 'speech']],
  ['<none>', 'sglang.max-total-tokens=', ['sglang']],
  [
    '<none>',
    'server.config=,extra-llm-api-options=,attn-cp-size=,moe-dp-size=',
    ['vllm', 'sglang'],
  ],
  ['', 'omni,deploy-config=', ['vllm']],
  // A file of the training, which its memory does not depend on.
  ['<none>@fit', 'train=~[/.]', ['mlx', 'speech']],
  ['', 'lora-name=', ['minimind']],
  // Folders of a recipe, whose config has a name.
  ['', 'checkpointer.checkpoint-dir=,checkpointer.output-dir=,tokenizer.path=', ['torchtune']],
  ['<none>', 'mlx.num-layers=', ['mlx']],
  ['<none>', 'mlx.trials=', ['mlx']],
  ['', 'gguf-split.merge,llama.color', ['llama.cpp']],
  // Adapters of a server, in files.
  ['<none>@fit', 'lora=~[/\\\\.],lora-scaled=', ['llama.cpp']],
  // What a script calls the kind of its model, which has a name.
  ['@train-plan|fit', 'model-family=,model-type=,model-arch=,model-class=', ['speech']],
  ['<in>', 'base-model-name-or-path', ['peft']],
  ['merge-lora', 'peft-model-path,peft-path,lora-model,lora-weights', ['peft']],
  ['@convert-checkpoint', 'device=', ['peft']],
  ['gpu-memory-utilization@fit', 'mem-fraction', ['sglang']],
  ['<none>', 'lms.gpu=', ['lmstudio']],
  // What the files have, and types of other engines.
  [
    '<none>',
    'quantization=compressed-tensors,quantization=moe_wna16,quantization=auto-round,quantization=aqlm,quantization=bitblas,' +
      'quantization=torchao,quantization=quark,quantization=gguf,quantization=inc,quantization=rtn,quantization=ascend,' +
      'quantization=none',
    ['vllm'],
  ],
  [
    '',
    'allowed-local-media-path=,allowed-media-domains=,media-io-kwargs=,mm-encoder-tp-mode=,mm-processor-cache-type=,' +
      'mm-processor-cache-gb=,disable-mm-preprocessor-cache,chat-template-content-format=,all2all-backend=,additional-config=,' +
      'tool-parser-plugin=,reasoning-parser-plugin=,logits-processors=,enable-sleep-mode,language-model-only',
    ['vllm'],
  ],
  ['<none>', 'mm-processor-kwargs=,eplb-config=,enable-eplb,kv-events-config=', ['vllm']],
  [
    '<none>',
    'hicache-size=,hicache-io-backend=,hicache-mem-layout=,hicache-storage-backend=',
    ['sglang'],
  ],
  ['', 'moe-runner-backend=,disable-overlap-schedule,disable-cuda-graph-padding', ['sglang']],
  ['context@fit', 'cache-lens', ['ktransformers']],
  ['<none>', 'chunk-size=', ['ktransformers']],
  ['for=lora', 'lora-enable,lora-enabled,lora-training,lora-tuning,do-lora,with-lora', ['speech']],
  ['epochs', 'max-epoch', ['speech']],
  [
    '',
    'eval-every=,sample-every=,save-every=,core-metric-every=,core-metric-max-per-task=,model-tag=',
    ['nanochat'],
  ],
  // The name of a config can have the stage, where the file cannot be read.
  ...[1, 2, 3].map(
    (stage): FlagRow => [
      `zero=${stage}`,
      `accelerate.config-file=${ofStage(stage)},deepspeed-config=${ofStage(stage)}`,
      ['accelerate', 'deepspeed'],
    ],
  ),
  ['<none>', 'accelerate.config-file=', ['accelerate']],
  ['', 'mlx.train', ['mlx']],
  ['', 'trtllm.model-path=', ['trtllm']],
  ['gpu-memory-utilization', 'gmu', ['aphrodite']],
  ['quantize=int4@convert-checkpoint', 'isq=4', ['mistralrs']],
  ['quantize=int8@convert-checkpoint', 'isq=8', ['mistralrs']],
  ['', 'exllama.work-dir=', ['exllama']],
  // A training and a service of any data have the same memory.
  ['<none>@fit', 'dataset=,dataset-name=,dataset-path=,data=', ['trl', 'swift', 'trtllm']],
  ['base-dtype@fit', 'torch-dtype', ['swift', 'transformers']],
  [
    'base-dtype=int8@fit',
    'quantization-bit=8,quant-bits=8,bits=8,load-in-8bit,load-8bit',
    ['llama-factory', 'swift', 'peft'],
  ],
  // The class of a data set; its file has a flag of its own.
  ['', 'litgpt.data=', ['litgpt']],
  ['data', 'json-path', ['litgpt']],
  // All requests at once.
  ['', 'request-rate=inf', ['vllm', 'sglang']],
  ['', 'lm-eval.model=', ['lm-eval']],
  ['', 'swift.merge-lora', ['swift']],
  ['@convert-checkpoint', 'format=~^(?:auto_?(?:round|gptq|awq)|llm_?compressor)', ['swift']],
  ['zero=1', 'accelerate-config=zero1', ['trl']],
  ['zero=2', 'accelerate-config=zero2', ['trl']],
  ['zero=3', 'accelerate-config=zero3,accelerate-config=fsdp1,accelerate-config=fsdp2', ['trl']],
  ['', 'accelerate-config=multi_gpu,accelerate-config=single_gpu', ['trl']],
  ['for=lora', 'tuner-type=lora', ['swift']],
  ['for=training', 'tuner-type=full', ['swift']],
  ['quantize=int4@convert-checkpoint', 'quant-bits=4', ['swift']],
  ['quantize=int8@convert-checkpoint', 'quant-bits=8', ['swift']],
  ['quantize', 'quant-dtype', ['lmdeploy']],
  ['dtype', 'isq', ['mistralrs']],
  ['context@fit', 'vllm-max-model-len,sglang-context-length,lmdeploy-session-len', ['swift']],
  ['tensor-parallel@fit', 'vllm-tensor-parallel-size,sglang-tp-size,lmdeploy-tp', ['swift']],
  ['gpu-memory-utilization@fit', 'vllm-gpu-memory-utilization', ['swift']],
  ['cache-dtype', 'cache-mode', ['tabbyapi', 'exllama']],
  ['prompt-tokens@fit', 'p,random-input,npp,promptlen', ['llama.cpp', 'sglang', 'mlx', 'mamba']],
  [
    'output-tokens',
    'generation-tokens,random-output,ntg,genlen',
    ['llama.cpp', 'sglang', 'mlx', 'mamba'],
  ],
  ['users@fit', 'npl', ['llama.cpp']],
  ['context@quick-test', 'promptlen', ['mamba']],
  ['cache-dtype', 'cq', ['exllama']],
  ['context', 'cs', ['exllama']],
  ['context@fit', 'vllm-maxlen', ['llama-factory']],
  ['context', 'max-total-seq-length,context-window-size', ['mlcllm']],
  ['recompute=full', 'activation-checkpoint.mode=full', ['torchtitan']],
  // Its train_configs of Llama 3 select operations: selective_ac_option = 'op'.
  ['recompute=operations', 'activation-checkpoint.mode=selective', ['torchtitan']],
  ['recompute=none', 'activation-checkpoint.mode=none', ['torchtitan']],
  [
    '<none>@fit|train-plan',
    'dp-shard=,dp-replicate=,data-parallel-shard-degree=,data-parallel-replicate-degree=',
    ['torchtitan'],
  ],
  // The text of a prompt, where only its length counts.
  ['@fit', 'prompt=~^(?!\\d),p=~^(?!\\d)', ['mlx', 'llama.cpp']],
  ['', 'mode=~^(?:chatml|raw|llama\\d*|gemma|mistral|phi\\d*)$', ['exllama']],
  ['@fit', 'vllm.batch-file=', ['vllm']],
  ['', 'sha1,sha256,xxh64,uuid', ['llama.cpp']],
  [
    '<none>@fit',
    'kt-num-gpu-experts=,kt-cpuinfer=,kt-threadpool-count=,kt-weight-path=,kt-method=,max-gpu-memory=',
    ['ktransformers', 'fastchat'],
  ],
  ['', 'model-engine=,model-format=,style=,detach', ['xinference', 'fastchat', 'docker']],
  ['', 'project-name=,trainer=,text-column=,merge-adapter', ['autotrain']],
  ['cache-dtype=q8_0', 'quantkv=1', ['koboldcpp']],
  ['cache-dtype=q4_0', 'quantkv=2', ['koboldcpp']],
  ['', 'quantkv=0', ['koboldcpp']],
  ['cache-dtype', 'quant-policy', ['lmdeploy']],
  ['context', 'session-len', ['lmdeploy']],
  ['<out>@convert-checkpoint', 'work-dir', ['lmdeploy']],
  ['group', 'w-group-size', ['lmdeploy']],
  ['quantize=int4@convert-checkpoint', 'b=4.0,b=4', ['exllama']],
  ['quantize=int8@convert-checkpoint', 'b=8.0,b=8', ['exllama']],
  ['@convert-checkpoint', 'w=', ['exllama']],
  ['<model>@generate|evaluate', 'out-dir', ['nanogpt']],
  ['tokens@train-plan', 'max-tokens', ['litgpt']],
  ['@train-plan', 'train,do-train,launcher=', ['mlx', 'transformers', 'axolotl']],
  ['repeat@quick-test', 'r,llama-bench.repeat', ['llama.cpp']],
  ['<none>@fit', 'llama-bench.repeat=', ['llama.cpp']],
  ['batch@train-plan', 'ppo-micro-batch-size-per-gpu,micro-batch-size-per-gpu', ['verl']],
  ['accumulation/batch@train-plan', 'ppo-mini-batch-size', ['verl']],
  ['<none>@train-plan', 'ppo-mini-batch-size=,param-offload=,optimizer-offload=', ['verl']],
  ['zero=3@train-plan', 'actor-rollout-ref.actor.strategy=~^fsdp', ['verl']],
  ['data@train-plan', 'data.train-files', ['verl']],
  ['micro-batch', 'device-batch-size', ['nanochat']],
  ['batch', 'device-batch-size', ['nanochat']],
  ['accumulation', 'ga', ['speech']],
  [
    'accumulation/batch@train-plan',
    'global-batch-size,gbs,global-train-batch-size,train-batch-size',
    ['megatron', 'litgpt', 'deepspeed'],
  ],
  ['accumulation/tokens@train-plan', 'total-batch-size', ['nanochat']],
  ['decay@train-plan', 'num-decay-steps', ['transformers']],
  ['<each>', 'speculative-config', ['vllm']],
  ['draft', 'speculative-config.model', ['vllm']],
  ['draft-tokens', 'speculative-config.num-speculative-tokens', ['vllm']],
  ['<none>', 'speculative-config.method=,cache-max-entry-count=', ['vllm', 'lmdeploy']],
  ['@convert-checkpoint', 'split', ['llama.cpp']],
  ['', 'torch-dtype=auto,dtype=auto,dtype=none,torch-dtype=none', ['transformers', 'unsloth']],
];
