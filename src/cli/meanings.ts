/**
 * The words of other tools and what they mean here: flags, values and commands. Loaded only for a line with a word that
 * is not one of ours.
 *
 * The names are those of Ollama (docs/cli, Modelfile), llama.cpp (tools/server/README.md, tools/quantize, llama-bench),
 * vLLM ("Engine Arguments"), SGLang ("Server Arguments"), transformers (TrainingArguments, GenerationConfig,
 * BitsAndBytesConfig), accelerate (launch, estimate-memory), axolotl (config reference, CLI), DeepSpeed (zero_to_fp32.py,
 * ds_config), Megatron-LM (arguments.py), nanoGPT (train.py, sample.py), lm-evaluation-harness (docs/interface.md), LM Studio
 * (lms load) and MiniMind (train_pretrain.py, eval_llm.py).
 */
import { downloadLine } from '../base/text/hub-names.js';
import { misspelled } from '../config/nearest.js';
import { hubRepository } from '../input/model-input/published-models.js';
import { foldedName } from './spellings.js';

/**
 * Meanings of flags, and the names that have them. A meaning is a flag here, `flag=value` a flag with that value for a
 * switch of another tool, `<name>` an argument, `<shown>` what a profile shows without a flag, `<none>` a flag without a
 * counterpart, and '' a flag that is not needed. The last two are left out, and the error says so. A name `color=never`
 * is a flag with that value. A name can have several meanings: of those whose line is accepted, the first is proposed.
 */
const FLAGS: readonly (readonly [meaning: string, names: string])[] = [
  ['<shown>', 'params,parameters,num-params,flops,macs,memory,vram,kv-cache,kv,size'],
  [
    '<model>',
    'model,file,preset,path,m,model-path,model-name,input,in,checkpoint,model-name-or-path,' +
      'model-id,base-model,pretrained,model-args=pretrained,hf-model,load-from,config,ckpt-dir,' +
      'src',
  ],
  [
    '<in>',
    'in,input,i,model,checkpoint,base-model,model-path,src,source,from,checkpoint-dir,' +
      'input-dir,model-name-or-path',
  ],
  [
    '<out>',
    'out,o,output,output-file,outfile,save,to,outdir,output-dir,dst,dest,target-path,' +
      'output-path,save-path,out-dir',
  ],
  ['<prompt>', 'prompt,p,text'],
  ['<data>', 'input,data,data-path,dataset,dataset-path,train-file,i,f'],
  [
    'context',
    'ctx,max-context,context-len,context-length,context-size,context-window,ctx-size,ctx-len,n-ctx,num-ctx,seq,' +
      'seq-len,seqlen,seq-length,sequence-length,max-seq-len,max-seq-length,max-model-len,' +
      'max-length,length,cutoff-len,block-size,c,sequence-len,max-context-len,' +
      'max-context-length,model-max-length,max-total-tokens',
  ],
  ['batch', 'batch-size,bs,batchsize,n-batch,max-num-seqs,b,max-running-requests,max-batch-size'],
  [
    'micro-batch',
    'micro-batch-size,mbs,per-device-train-batch-size,per-device-batch-size,' +
      'per-gpu-batch-size,batch-size,train-batch-size,bs,b,train-micro-batch-size-per-gpu',
  ],
  [
    'batch',
    'per-device-train-batch-size,per-device-batch-size,per-gpu-batch-size,micro-batch-size,' +
      'micro-batch,mbs,train-micro-batch-size-per-gpu,train-batch-size',
  ],
  ['global-batch', 'global-batch-size,gbs,tokens-per-step'],
  [
    'accumulation',
    'gradient-accumulation-steps,grad-accum,gradient-accumulation,accumulation-steps,' +
      'accum-steps',
  ],
  [
    'dtype',
    'type,torch-dtype,data-type,outtype,out-type,quant,quantization,quantize,weight-dtype,' +
      'load-in,precision,bits,d,dtypes',
  ],
  ['weights', 'quant,quantize,quantization,weight-dtype,bits,weight-form'],
  ['dtype=bf16', 'bf16,bfloat16'],
  ['dtype=f16', 'fp16,float16,half,f16'],
  ['dtype=f32', 'fp32,float32,f32,full-precision'],
  ['dtype=f8', 'fp8,float8,f8'],
  ['dtype=int8', 'int8,8bit,load-in-8bit,q8'],
  ['dtype=int4', 'int4,4bit,load-in-4bit,nf4,q4'],
  ['weights=int8', 'int8,8bit,load-in-8bit,q8'],
  ['weights=int4', 'int4,4bit,load-in-4bit,nf4,q4'],
  ['quantize=int8', 'int8,8bit,q8'],
  ['quantize=int4', 'int4,4bit,q4'],
  ['quantize', 'quant,quantization,bits,dtype,outtype,type,quant-type,q,load-in,method'],
  ['compute=f16', 'fp16,float16,half,f16'],
  ['compute=f32', 'fp32,float32,f32'],
  [
    'cache-dtype',
    'kv-cache-dtype,kv-dtype,cache-type,kv-type,cache-type-k,cache-type-v,ctk,ctv,' +
      'kv-cache-type',
  ],
  ['precision', 'mixed-precision,amp-dtype'],
  ['precision=mixed', 'amp,mixed,mixed-precision,bf16,fp16,bfloat16,float16'],
  ['precision=bf16', 'bf16-true,pure-bf16'],
  ['precision=fp8', 'fp8,float8,enable-float8,fp8-hybrid'],
  ['precision=float32', 'fp32,float32,full-precision,no-amp'],
  ['for', 'mode,purpose,task,use,stage'],
  ['for=lora', 'lora,peft,use-lora,use-peft,finetune,fine-tune,finetuning,sft,adapter=lora'],
  ['for=qlora', 'qlora,use-qlora,load-in-4bit,adapter=qlora'],
  ['for=training', 'training,train,pretrain,pretraining,full-finetune'],
  ['for=serving', 'serving,serve,inference,infer'],
  ['attention', 'attn-implementation,attn,attention-backend,attn-impl'],
  [
    'attention=fused',
    'flash-attn,flash-attention,flash-attention-2,flash-attn-2,flash-attn-3,fa,fa2,sdpa,' +
      'use-flash-attn,flash,use-flash-attention,sdp-attention,flash-attention-3,' +
      'enable-flash-attn,xformers',
  ],
  ['attention=plain', 'no-flash-attn,no-flash-attention,no-flash,eager'],
  ['max-params', 'params,parameters,num-params,budget,max-parameters,size,target-params,n-params'],
  ['max-memory', 'memory,vram,mem,max-mem,max-vram,ram'],
  [
    'gpus',
    'gpu-count,num-gpus,n-gpus,ngpus,n-gpu,gpu-num,gpu-number,devices,nproc,nproc-per-node,' +
      'world-size,num-processes,n-devices,num-devices,ngpu',
  ],
  ['gpu', 'card,gpu-type,gpu-name,accelerator,device,hardware,vram,memory,gpu-memory,g,gpus'],
  [
    'tensor-parallel',
    'tp,tensor-parallel-size,tp-size,tensor-model-parallel-size,tensor-parallel,num-shard',
  ],
  ['pipeline-parallel', 'pp,pipeline-parallel-size,pp-size,pipeline-model-parallel-size'],
  [
    'users',
    'concurrency,concurrent,concurrent-users,parallel,requests,user,clients,max-num-seqs,np,' +
      'n-parallel,max-concurrency,max-concurrent-requests,ollama-num-parallel,num-parallel',
  ],
  [
    'prompt-tokens',
    'prompt,input-tokens,prompt-length,input-len,prompt-len,input,random-input-len,n-prompt,' +
      'pp',
  ],
  [
    'output-tokens',
    'max-tokens,max-new-tokens,new-tokens,output-len,output-length,n-predict,' +
      'random-output-len,n-gen,tg',
  ],
  [
    'max-tokens',
    'max-new-tokens,new-tokens,n-predict,num-predict,max-length,length,output-tokens,' +
      'n-tokens,n,max-output-tokens,max-gen-len,predict,max-completion-tokens,max-gen-toks',
  ],
  ['train-tokens', 'tokens,training-tokens,num-tokens,dataset-tokens'],
  ['tokens', 'train-tokens,training-tokens,num-tokens,total-tokens'],
  ['qps', 'rps,request-rate,requests-per-second'],
  [
    'recompute',
    'gradient-checkpointing,activation-checkpointing,checkpointing,recomputation,' +
      'recompute-granularity',
  ],
  [
    'recompute=full',
    'gradient-checkpointing,activation-checkpointing,checkpointing,recomputation,' +
      'grad-checkpointing,use-gradient-checkpointing,grad-ckpt,recompute-activations,' +
      'checkpoint-activations',
  ],
  [
    'recompute=none',
    'no-gradient-checkpointing,no-activation-checkpointing,no-checkpointing,no-recompute,' +
      'no-recomputation',
  ],
  ['zero', 'zero-stage,stage,deepspeed,deepspeed-stage,zero-optimization,ds-stage,zero-opt-level'],
  ['zero=1', 'zero1,zero-stage1,stage1,use-distributed-optimizer'],
  ['zero=2', 'zero2,zero-stage2,stage2,fsdp=shard-grad-op,sharding-strategy=shard-grad-op'],
  [
    'zero=3',
    'fsdp=full-shard,sharding-strategy=full-shard,fsdp=hybrid-shard,' +
      'zero3,zero-stage3,stage3,fsdp,fsdp2,full-shard',
  ],
  ['zero=0', 'no-zero'],
  ['optimizer', 'optim,opt,optimiser'],
  ['optimizer=adamw-8bit', 'adam8bit,8bit-adam,adamw8bit,8bit-optimizer,use-8bit-adam'],
  ['lr', 'learning-rate,max-lr,peak-lr,base-lr,rate,projector-lr,lr-max,max-learning-rate'],
  ['linear-lr', 'linear-learning-rate,lr-linear'],
  ['elastic-lr', 'elastic-learning-rate,mlp-lr,mlp-learning-rate,lr-elastic'],
  [
    'schedule',
    'scheduler,lr-scheduler,lr-scheduler-type,lr-schedule,lr-decay-style,lr-decay,lr-policy',
  ],
  [
    'warmup',
    'warmup-steps,num-warmup-steps,warmup-ratio,warmup-iters,lr-warmup-iters,warmup-share,' +
      'warmup-proportion,lr-warmup-steps',
  ],
  ['weight-decay', 'wd,decay'],
  [
    'steps',
    'max-steps,train-steps,num-training-steps,iters,max-iters,total-steps,train-iters,' +
      'num-steps,n,training-steps,n-steps,max-iterations',
  ],
  ['epochs', 'num-train-epochs,num-epochs,epoch,e'],
  [
    'data',
    'dataset,train-data,train-file,data-path,corpus,train-dataset,datasets,data-dir,' +
      'training-data',
  ],
  ['temperature', 'temp,t'],
  ['repetition-penalty', 'repeat-penalty,rep-penalty'],
  ['text', 'file,data,corpus,input,dataset,text-file,f,eval-data,text-path'],
  ['save', 'save-to,save-as,save-path,write-to,out,output-file,outfile,output-path,onnx'],
  ['row', 'write,pick,select'],
  ['output', 'out,output-file,outfile,o,file,save-to,save,output-path'],
  ['format=csv', 'csv'],
  ['format=json', 'j'],
  ['format=markdown', 'markdown,md'],
  ['format=table', 'table,text,plain'],
  ['format', 'f,output-format,fmt'],
  ['force', 'overwrite,yes,f,y'],
  ['quiet', 'silent,s'],
  ['explain', 'verbose,why,v'],
  ['details', 'verbose,detail,long,all,full,v,l'],
  ['vocab', 'vocab-size,vocabulary,vocabulary-size'],
  ['depth', 'layers,num-layers,num-hidden-layers,n-layer,n-layers'],
  ['width', 'hidden-size,hidden,dim,d-model,n-embd'],
  ['family', 'model-type,arch,architecture,model-family,model'],
  ['to', 'layout,target-layout,mode,srte,strategy,srte-layout,srte-strategy,method'],
  ['to=shared', 'shared,share'],
  ['to=low-rank', 'low-rank,lowrank'],
  ['rank', 'r,lora-rank,rank-size,low-rank,lowrank'],
  ['ranks', 'rank,r'],
  ['tie', 'tie-embeddings,tie-word-embeddings,tied,tie-weights'],
  ['tie=embed', 'tie-embeddings,tie-word-embeddings,tied,tie-weights'],
  ['dry-run', 'dry,dryrun,plan,n'],
  ['check', 'verify,strict,validate,fail'],
  ['prove', 'verify,test,compare'],
  ['shard-size', 'max-shard-size,shards,split-max-size'],
  ['against', 'compare,compare-with,reference,ref,with,vs'],
  ['only', 'checks,tests,test,run'],
  ['set', 'override,config-override,overrides,cfg,c,d'],
  ['config', 'cfg,config-file,conf,c'],
  ['sort', 'sort-by,order,order-by'],
  ['columns', 'column,cols,fields'],
  ['filter', 'grep,name,pattern,include,match'],
  ['tensors', 'tensor,weights,all,list,keys'],
  ['threads', 'n-threads,num-threads,cpus,cores,jobs,t,j,cpu-threads,omp-num-threads,nthreads'],
  ['list-gpus', 'gpus-list,list,show-gpus,gpu-list'],
  ['trained', 'original-context,train-context,original-max-position-embeddings'],
  ['factor', 'scale,rope-factor,scaling-factor,rope-scale'],
  ['top', 'limit,n,num,count,max-results,k,top-n'],
  ['top-k', 'k'],
  ['top-p', 'p'],
  ['show', 'head,samples,preview,n,limit'],
  ['init-seed', 'init-base-seed,base-seed,param-seed'],
  ['init-range', 'range,uniform-range'],
  ['init-std', 'std,initializer-range,init-deviation'],
  ['init-mean', 'mean'],
  ['group', 'group-size,q-group-size'],
  ['<pattern>', 'family,model-type,arch'],
  ['group-size', 'gz,groups,group'],
  ['hidden', 'hidden-size,emb-size,dim,d-model'],
  ['world-size', 'ranks,w,num-ranks'],
  ['student', 'student-width,width,student-size'],
  ['checkpoint', 'weights,ckpt,model,load,model-path'],
  [
    'merge-lora',
    'adapter,lora,lora-path,peft-model,lora-model-dir,adapter-path,adapters,lora-adapter,' +
      'peft,lora-dir',
  ],
  ['adapter', 'lora,lora-path,peft-model,adapter-path,lora-model-dir'],
  ['dtype=q4_k_m', 'q4-k-m'],
  ['dtype=q4_0', 'q4-0'],
  ['dtype=q8_0', 'q8-0'],
  ['dtype=q5_k_m', 'q5-k-m'],
  ['dtype=q6_k', 'q6-k'],
  ['dtype=q4_k_s', 'q4-k-s'],
  ['dtype=q5_0', 'q5-0'],
  ['dtype=q3_k_m', 'q3-k-m'],
  ['dtype=awq', 'awq'],
  ['dtype=gptq', 'gptq'],
  ['dtype=mxfp4', 'mxfp4'],
  ['dtype=nvfp4', 'nvfp4'],
  ['recompute=selective', 'recompute-granularity=selective'],
  ['decay', 'lr-decay-iters,lr-decay-steps,decay-steps'],
  [
    'no-color',
    'color=never,color=no,color=false,color=off,colour=never,no-colour,nocolor,plain,ascii',
  ],
  ['greedy', 'do-sample=false,sampling=false,deterministic'],
  ['trace', 'dry-run,shapes'],
  [
    'tokenizer',
    'tokenizer-name-or-path,tokenizer-path,tokenizer-name,tokenizer-file,tokenizer-model,vocab-file,tok',
  ],
  [
    'gpu-memory-utilization',
    'mem-fraction-static,kv-cache-free-gpu-memory-fraction,free-gpu-memory-fraction',
  ],
  ['eager', 'enforce-eager,disable-cuda-graph'],
  ['qps', 'request-rate,rps'],
  ['draft-tokens', 'num-speculative-tokens,speculative-num-draft-tokens,draft-max'],
  ['draft', 'speculative-model,speculative-draft-model-path,model-draft,md'],
  ['chunked-prefill', 'enable-chunked-prefill'],
  ['save=model.onnx', 'format=onnx,to=onnx,to-onnx'],
  ['seed', 'manual-seed,rng-seed,s'],
  ['stop', 'stop-sequence,stop-token,r,reverse-prompt,eos'],
  ['system', 'system-prompt,sys'],
  ['min-lr', 'min-learning-rate,lr-min,learning-rate-min,eta-min'],
  ['<none>', 'ngl,n-gpu-layers,gpu-layers,n-cpu-moe,split-mode,main-gpu'],
  [
    '',
    'stream,do-sample,sample,trust-remote-code,use-cache,' +
      'device-map,no-mmap,mlock,port,host,library-name,estimate-only,safe-serialization,ttl,' +
      'identifier,local-rank,master-port,output-hidden-states,low-cpu-mem-usage,' +
      'bnb-4bit-compute-dtype,bnb-4bit-quant-type,use-fast,api-key,served-model-name,' +
      'attn-backend,wandb,report-to,logging-steps,save-steps,compile,backend',
  ],
];

/** Values that disable a flag, for switches of other tools that mean another one of its values. */
const OFF: Readonly<Record<string, string>> = { recompute: 'none', zero: '0', attention: 'plain' };

/** Numbers that mean all layers in llama.cpp. */
const ALL_LAYERS = { '-1': '', '99': '', '999': '', all: '' } as const;

/** Values of flags of other tools and what they are called here; '' where the flag is then not needed. */
const VALUES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  bits: { '4': 'int4', '8': 'int8', '16': 'bf16', '32': 'f32' },
  loadin: { '4bit': 'int4', '8bit': 'int8' },
  kvcachedtype: { auto: '' },
  cachetypek: { q8_0: 'int8', q4_0: 'int4' },
  cachetypev: { q8_0: 'int8', q4_0: 'int4' },
  ctk: { q8_0: 'int8', q4_0: 'int4' },
  ctv: { q8_0: 'int8', q4_0: 'int4' },
  fa: { auto: '' },
  flashattn: { auto: '' },
  dosample: { true: '' },
  // All layers on the GPU, as here.
  ngl: ALL_LAYERS,
  ngpulayers: ALL_LAYERS,
  gpulayers: ALL_LAYERS,
};

/** Advice for flags without a meaning here. */
const ADVICE: Readonly<Record<string, string>> = {
  tasks:
    'minimind runs no benchmarks such as hellaswag; for the perplexity of a text write --text FILE',
  numfewshot: 'minimind runs no benchmarks; for the perplexity of a text write --text FILE',
  color: 'set FORCE_COLOR=1 for colours in a pipe',
  colour: 'set FORCE_COLOR=1 for colours in a pipe',
};

/** Names with several senses, of which one is chosen. */
const CHOSEN: ReadonlySet<string> = new Set(
  names(
    'deepspeed,stage,mode,task,purpose,use,size,budget,rate,prompt,input,output,data,file,text,type,method,length,all,full,' +
      'write,test,tests,run,compare,vram,memory,gpu-memory,mem,ram,decay,count,list,plain,scale,range,with,plan',
  ),
);

function names(text: string): string[] {
  return text.split(',').map(foldedName);
}

/** Whether a meaning is the same flag under another name, with the same value. */
export function isSpelling(given: string, { name, value, onlyFor, values }: FlagMeaning): boolean {
  const isArgument = name.startsWith('<');
  const isSame = value === undefined && onlyFor === undefined && values === undefined;
  const isLimit = /^(?:max|min)-/.test(name) && !/^(?:max|min)/i.test(given);
  const isOne = given.length > 1 && (isArgument || !CHOSEN.has(foldedName(given)));
  return name !== '' && name !== '<none>' && isSame && isOne && !isLimit;
}

/** Advice for a flag of another tool without a meaning here. */
export function flagAdvice(name: string): string | undefined {
  const folded = foldedName(name);
  return Object.hasOwn(ADVICE, folded) ? ADVICE[folded] : undefined;
}

/** Advice for a command of another tool without one here; `rest` are its words. */
export function commandAdvice(word: string, rest: readonly string[]): string | undefined {
  if (!/^(?:pull|download|get|push)$/i.test(word)) return undefined;
  const name = rest.filter((each) => !each.startsWith('-')).join('-');
  const repository = hubRepository(name);
  if (repository === undefined) return 'a model of the hub is read as hf:ORG/NAME';
  return `write ${downloadLine(repository)}, or read its config as hf:${repository}`;
}

/** A published model that is not here, as a reference to the hub. */
export function hubReference(name: string): string | undefined {
  const repository = hubRepository(name);
  return repository && `hf:${repository}`;
}

/** Names of keys of a config in other projects, and the names to try: which of them a model has is checked. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  n_embd: ['hidden_size', 'd_model', 'n_embd'],
  d_model: ['hidden_size', 'd_model'],
  dim: ['hidden_size', 'd_model'],
  embed_dim: ['hidden_size', 'd_model'],
  n_head: ['num_attention_heads', 'num_heads', 'n_head'],
  n_heads: ['num_attention_heads', 'num_heads', 'n_head'],
  n_layer: ['num_layers', 'num_hidden_layers', 'n_layer'],
  n_layers: ['num_layers', 'num_hidden_layers', 'n_layer'],
  n_kv_heads: ['num_key_value_heads', 'num_kv_heads'],
  ffn_dim: ['intermediate_size', 'ffn_dim', 'n_inner'],
  hidden_dim: ['intermediate_size', 'hidden_size'],
};

/** Names of a key of a config to try. */
export const keysNamed = (key: string): readonly string[] =>
  Object.hasOwn(KEYS, key) ? (KEYS[key] ?? [key]) : [key];

/** A meaning of a flag of another tool. */
export interface FlagMeaning {
  /** Name of the flag, `<name>` of an argument, or one of the special meanings of `FLAGS`. */
  readonly name: string;
  /** Value that the switch means, and the value that it excludes. */
  readonly value?: string | undefined;
  readonly off?: string | undefined;
  /** The only value of the other tool's flag that has this meaning. */
  readonly onlyFor?: string | undefined;
  /** Values of the flag, and what they are called here. */
  readonly values?: Readonly<Record<string, string>> | undefined;
}

/** Meanings of a flag's name in other tools, the most likely one first. */
export function flagMeanings(name: string): FlagMeaning[] {
  const folded = foldedName(name);
  return FLAGS.flatMap(([meaning, spellings]) => {
    const found = spellings
      .split(',')
      .map((each) => each.split('='))
      .filter(([each = '']) => foldedName(each) === folded);
    // seq-len and seqlen are one name.
    return [...new Set(found.map(([, onlyFor]) => onlyFor))].map((onlyFor) => {
      const [flag = '', value] = meaning.split('=');
      const off = value === undefined ? undefined : OFF[flag];
      return { name: flag, value, off, onlyFor, values: VALUES[folded] };
    });
  });
}

/** All names of flags in other tools. */
export const otherNames = (): string[] => [
  ...new Set(FLAGS.flatMap(([, names]) => names.split(',')).filter((each) => !each.includes('='))),
];

/**
 * First words that people try, and the lines that they mean. `$1` is an argument of theirs, and `$2.gguf` one that has this
 * ending. Arguments without a place follow, and so do their flags.
 */
const COMMANDS: readonly (readonly [lines: readonly string[], words: string])[] = [
  [['generate'], 'cli,chat,sample,complete,inference,infer,talk,prompt'],
  [['generate', 'quick-test'], 'run'],
  [
    [
      'convert-checkpoint $1 $2.gguf --dtype $3',
      'convert-checkpoint $1 $2 --quantize $3',
      'convert-checkpoint $1 $2 --dtype $3',
      'convert-checkpoint',
    ],
    'quantize,quant',
  ],
  [['export $1 --save $2.onnx', 'convert-checkpoint'], 'convert'],
  [
    ['convert-checkpoint'],
    'convert-hf-to-gguf,to-gguf,shard,split,gguf-split,zero-to-fp32,consolidate,' +
      'merge-sharded-fsdp-weights,merge-weights,convert-srte,compress',
  ],
  [
    ['convert-checkpoint $1 $3 --merge-lora $2', 'convert-checkpoint'],
    'merge-lora,merge-adapter,export-lora,merge',
  ],
  [['evaluate'], 'eval,ppl,perplexity,lm-eval,score'],
  [['train-plan'], 'finetune,fine-tune,pretrain,sft,schedule'],
  [
    ['profile'],
    'flops,kv-cache,count,params,parameters,size,info,summary,show,count-params,describe,stats',
  ],
  [
    ['profile $1 --tensors'],
    'netron,draw,visualize,graph,plot,print,tree,torchinfo,torchsummary,architecture',
  ],
  [['data'], 'tokenize,tokens,count-tokens,token-count,preprocess,dataset,tokenizer'],
  [
    ['fit'],
    'estimate,estimate-memory,memory,vram,serve,server,load,can-i-run,can-it-run,will-it-fit,' +
      'memory-usage,deploy,speed,throughput,requirements',
  ],
  [['fit --list-gpus'], 'gpu,gpus,list-gpus,hardware'],
  [['quick-test'], 'test,smoke-test'],
  [['quick-test --only timing'], 'bench,benchmark'],
  [['validate'], 'check,lint'],
  [['compare'], 'diff,vs'],
  [['plan'], 'search,design,optimize'],
  [['init'], 'new,create'],
  [['list'], 'models,presets,ls'],
  [['export $1 --save $2.onnx', 'export'], 'onnx,to-onnx'],
  [['inspect --tensors'], 'tensors,keys'],
  [['inspect'], 'cat,dump,gguf-dump'],
  [['compare-srte'], 'srte'],
  [['doctor'], 'devices,engines,env,ps,nvidia-smi'],
  [['--version'], 'version'],
];

/** The lines that a word means; none for a word that is not in the table. */
const linesOf = (word: string): readonly string[] =>
  COMMANDS.find(([, words]) => words.split(',').includes(word))?.[0] ?? [];

/** The words after the name of a command, with a test of the flags that have no value. */
export interface VerbWords {
  readonly words: readonly string[];
  /** Whether a flag has no value here. */
  readonly isSwitch: (word: string) => boolean;
}

/** Words that are arguments, and all others. */
function argumentsOf({ words, isSwitch }: VerbWords): { given: string[]; flags: string[] } {
  const given: string[] = [];
  const flags: string[] = [];
  words.forEach((word, at) => {
    const before = words[at - 1] ?? '';
    const isValue = before.startsWith('-') && !before.includes('=') && !isSwitch(before);
    (word.startsWith('-') || isValue ? flags : given).push(word);
  });
  return { given, flags };
}

/** The words of a line that a template means; undefined where an argument of it is missing. */
function filled(template: string, verb: VerbWords): string[] | undefined {
  if (!template.includes('$')) return [...template.split(' '), ...verb.words];
  const { given, flags } = argumentsOf(verb);
  const used = new Set<number>();
  const words: string[] = [];
  for (const part of template.split(' ')) {
    const [, place, ending = ''] = /^\$(\d)(\.\w+)?$/.exec(part) ?? [];
    if (place === undefined) {
      words.push(part);
      continue;
    }
    const word = given[Number(place) - 1];
    if (word === undefined || !word.toLowerCase().endsWith(ending)) return undefined;
    used.add(Number(place) - 1);
    words.push(word);
  }
  return [...words, ...given.filter((_, at) => !used.has(at)), ...flags];
}

/** The form of a word of another tool in `COMMANDS`: `zero_to_fp32.py` is `zero-to-fp32`. */
const verbOf = (word: string) =>
  word
    .toLowerCase()
    .replace(/\.py$/, '')
    .replaceAll('_', '-')
    .replace(/^llama-(?=\w)/, '');

/** Programs whose commands are written after their names: `ollama run`, `vllm serve`. */
const PROGRAMS: ReadonlySet<string> = new Set([
  ...['ollama', 'vllm', 'sglang', 'lms', 'axolotl', 'accelerate', 'llamafactory-cli', 'mlx-lm'],
]);

/** Whether a word is a command of another tool. */
export const isVerb = (word: string): boolean => linesOf(verbOf(word)).length > 0;

/** Whether a line begins with a program and its command. */
export const isProgram = ([word = '', next = '']: readonly string[]): boolean =>
  PROGRAMS.has(verbOf(word)) && (isVerb(next) || !/^-|\.py$/.test(next)) && next !== 'launch';

/** Lines that a command of another tool means, the most likely one first. */
export function verbLines(word: string, verb: VerbWords): string[][] {
  const own = verbOf(word);
  if (isProgram([word, ...verb.words])) {
    const [next = '', ...words] = verb.words;
    return isVerb(next) ? verbLines(next, { ...verb, words }) : [[...verb.words]];
  }
  if (!isVerb(word)) return [];
  return linesOf(own).flatMap((template) => {
    const words = filled(template, verb);
    return words === undefined ? [] : [words];
  });
}

/** The command that `word` nearly is: the beginning of a single one, or one with a typing mistake. */
export function nearestCommand(word: string, known: readonly string[]): string | undefined {
  const folded = word.toLowerCase();
  const longer = known.filter((each) => each.startsWith(folded));
  return longer.length === 1 ? longer[0] : misspelled(word, known, 2);
}
