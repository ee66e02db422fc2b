/** Common names of flags, choices and commands in other tools. */

import { parseDtype } from '../base/tensor/dtype.js';
import { misspelled } from '../config/nearest.js';

/** A name in lower case, without characters between words. */
export const foldedName = (text: string): string => text.toLowerCase().replaceAll(/[-_ .]/g, '');

/**
 * Names of the flags in other tools. A key is one of: a flag, `name=value` for a switch with that meaning, `<name>` for
 * an argument, or '' for flags that are not needed here and left out. A name can be in several rows; the first whose
 * line is accepted is proposed.
 */
const FLAGS = {
  '<model>': names('model,file,preset,path,m,model-path,model-name,input,in,checkpoint'),
  '<in>': names('in,input,i,model,checkpoint'),
  '<out>': names('out,o,output,output-file,outfile,save,to'),
  '<prompt>': names('prompt,p,text'),
  context: names(
    'ctx,context-length,context-size,context-window,ctx-size,ctx-len,n-ctx,num-ctx,seq,seq-len,seqlen,seq-length,' +
      'sequence-length,max-seq-len,max-seq-length,max-model-len,max-length,length,cutoff-len,block-size,c',
  ),
  batch: names('batch-size,bs,batchsize,n-batch,max-num-seqs,b'),
  'micro-batch': names(
    'micro-batch-size,mbs,per-device-train-batch-size,per-device-batch-size,per-gpu-batch-size,batch-size,' +
      'train-batch-size,bs,b',
  ),
  'global-batch': names('global-batch-size,gbs,tokens-per-step'),
  accumulation: names(
    'gradient-accumulation-steps,grad-accum,gradient-accumulation,accumulation-steps',
  ),
  dtype: names(
    'type,torch-dtype,data-type,outtype,out-type,quant,quantization,quantize,weight-dtype,load-in,precision,bits,d',
  ),
  weights: names('quant,quantize,quantization,weight-dtype,bits,weight-form'),
  'dtype=bf16': names('bf16,bfloat16'),
  'dtype=f16': names('fp16,float16,half,f16'),
  'dtype=f32': names('fp32,float32,f32,full-precision'),
  'dtype=f8': names('fp8,float8,f8'),
  'dtype=int8': names('int8,8bit,load-in-8bit,q8'),
  'dtype=int4': names('int4,4bit,load-in-4bit,nf4,q4'),
  'weights=int8': names('int8,8bit,load-in-8bit,q8'),
  'weights=int4': names('int4,4bit,load-in-4bit,nf4,q4'),
  'quantize=int8': names('int8,8bit,q8'),
  'quantize=int4': names('int4,4bit,q4'),
  'compute=f16': names('fp16,float16,half,f16'),
  'compute=f32': names('fp32,float32,f32'),
  'cache-dtype': names(
    'kv-cache-dtype,kv-dtype,cache-type,kv-type,cache-type-k,cache-type-v,ctk,ctv',
  ),
  precision: names('mixed-precision,amp-dtype'),
  'precision=mixed': names('amp,mixed,mixed-precision,bf16,fp16,bfloat16,float16'),
  'precision=float32': names('fp32,float32,full-precision,no-amp'),
  for: names('mode,purpose,task,use,stage'),
  'for=training': names('training,train,pretrain,pretraining,lora,qlora,peft,use-lora,use-peft'),
  'for=serving': names('serving,serve,inference,infer'),
  attention: names('attn-implementation,attn,attention-backend,attn-impl'),
  'attention=fused': names(
    'flash-attn,flash-attention,flash-attention-2,flash-attn-2,flash-attn-3,fa,fa2,sdpa,use-flash-attn,flash,' +
      'use-flash-attention',
  ),
  'attention=plain': names('no-flash-attn,no-flash-attention,no-flash,eager'),
  'max-params': names(
    'params,parameters,num-params,budget,max-parameters,size,target-params,n-params',
  ),
  'max-memory': names('memory,vram,mem,max-mem,max-vram,ram'),
  gpus: names(
    'gpu-count,num-gpus,n-gpus,ngpus,n-gpu,gpu-num,gpu-number,devices,nproc,nproc-per-node,world-size',
  ),
  gpu: names('card,gpu-type,gpu-name,accelerator,device,hardware,vram,memory,gpu-memory,g'),
  'tensor-parallel': names('tp,tensor-parallel-size,tp-size,tensor-model-parallel-size'),
  'pipeline-parallel': names('pp,pipeline-parallel-size,pp-size,pipeline-model-parallel-size'),
  users: names(
    'concurrency,concurrent,concurrent-users,parallel,requests,user,clients,max-num-seqs',
  ),
  'prompt-tokens': names('prompt,input-tokens,prompt-length,input-len,prompt-len,input'),
  'output-tokens': names('max-tokens,max-new-tokens,new-tokens,output-len,output-length,n-predict'),
  'max-tokens': names(
    'max-new-tokens,new-tokens,n-predict,num-predict,max-length,length,output-tokens,n-tokens,n',
  ),
  'train-tokens': names('tokens,training-tokens,num-tokens,dataset-tokens'),
  tokens: names('train-tokens,training-tokens,num-tokens,total-tokens'),
  qps: names('rps,request-rate,requests-per-second'),
  recompute: names(
    'gradient-checkpointing,activation-checkpointing,checkpointing,recomputation,recompute-granularity',
  ),
  'recompute=full': names(
    'gradient-checkpointing,activation-checkpointing,checkpointing,recomputation,grad-checkpointing,' +
      'use-gradient-checkpointing,grad-ckpt,recompute-activations,checkpoint-activations',
  ),
  'recompute=none': names(
    'no-gradient-checkpointing,no-activation-checkpointing,no-checkpointing,no-recompute,no-recomputation',
  ),
  zero: names('zero-stage,stage,deepspeed,deepspeed-stage,zero-optimization'),
  'zero=1': names('zero1,zero-stage1,stage1,use-distributed-optimizer'),
  'zero=2': names('zero2,zero-stage2,stage2'),
  'zero=3': names('zero3,zero-stage3,stage3,fsdp,fsdp2,full-shard'),
  'zero=0': names('no-zero'),
  optimizer: names('optim,opt,optimiser'),
  'optimizer=adamw-8bit': names('adam8bit,8bit-adam,adamw8bit,8bit-optimizer,use-8bit-adam'),
  lr: names('learning-rate,max-lr,peak-lr,base-lr,rate,projector-lr'),
  'linear-lr': names('linear-learning-rate,lr-linear'),
  'elastic-lr': names('elastic-learning-rate,mlp-lr,mlp-learning-rate,lr-elastic'),
  schedule: names('scheduler,lr-scheduler,lr-scheduler-type,lr-schedule,lr-decay-style'),
  warmup: names(
    'warmup-steps,num-warmup-steps,warmup-ratio,warmup-iters,lr-warmup-iters,warmup-share',
  ),
  'weight-decay': names('wd,decay'),
  steps: names(
    'max-steps,train-steps,num-training-steps,iters,max-iters,total-steps,train-iters,num-steps,n',
  ),
  epochs: names('num-train-epochs,num-epochs,epoch,e'),
  data: names('dataset,train-data,train-file,data-path,corpus'),
  temperature: names('temp'),
  'repetition-penalty': names('repeat-penalty,rep-penalty'),
  text: names('file,data,corpus,input,dataset,text-file,f'),
  save: names('save-to,save-as,save-path,write-to,out,output-file,outfile,output-path,onnx'),
  row: names('write,pick,select'),
  output: names('out,output-file,outfile,o,file,save-to,save,output-path'),
  'format=csv': names('csv'),
  'format=json': names('j'),
  'format=markdown': names('markdown,md'),
  'format=table': names('table,text,plain'),
  format: names('f,output-format,fmt'),
  force: names('overwrite,yes,f,y'),
  quiet: names('silent,s'),
  explain: names('verbose,why,v'),
  details: names('verbose,detail,long,all,full,v,l'),
  vocab: names('vocab-size,vocabulary,vocabulary-size'),
  depth: names('layers,num-layers,num-hidden-layers,n-layer,n-layers'),
  width: names('hidden-size,hidden,dim,d-model,n-embd'),
  family: names('model-type,arch,architecture,model-family,model'),
  to: names('layout,target-layout,mode,srte'),
  'to=shared': names('shared,share'),
  'to=low-rank': names('low-rank,lowrank'),
  rank: names('r,lora-rank,rank-size,low-rank,lowrank'),
  ranks: names('rank,r'),
  tie: names('tie-embeddings,tie-word-embeddings,tied,tie-weights'),
  'tie=embed': names('tie-embeddings,tie-word-embeddings,tied,tie-weights'),
  'dry-run': names('dry,dryrun,plan,n'),
  check: names('verify,strict,validate,fail'),
  prove: names('verify,test,compare'),
  'shard-size': names('max-shard-size,shards'),
  against: names('compare,compare-with,reference,ref,with,vs'),
  only: names('checks,tests,test,run'),
  set: names('override,config-override,overrides,cfg,c,d'),
  config: names('cfg,config-file,conf,c'),
  sort: names('sort-by,order,order-by'),
  columns: names('column,cols,fields'),
  filter: names('grep,name,pattern,include,match'),
  tensors: names('tensor,weights,all,list,keys'),
  threads: names('n-threads,num-threads,cpus,cores,jobs,t,j'),
  'list-gpus': names('gpus-list,list,show-gpus,gpu-list'),
  trained: names('original-context,train-context,original-max-position-embeddings'),
  factor: names('scale,rope-factor,scaling-factor,rope-scale'),
  top: names('limit,n,num,count,max-results,k'),
  'top-k': names('k'),
  'top-p': names('p'),
  show: names('head,samples,preview,n,limit'),
  'init-seed': names('init-base-seed,base-seed,param-seed'),
  'init-range': names('range,uniform-range'),
  'init-std': names('std,initializer-range,init-deviation'),
  'init-mean': names('mean'),
  'group-size': names('gz,groups,group'),
  hidden: names('hidden-size,emb-size,dim,d-model'),
  'world-size': names('ranks,w,num-ranks'),
  student: names('student-width,width,student-size'),
  checkpoint: names('weights,ckpt,model,load,model-path'),
  '': names(
    'ngl,n-gpu-layers,gpu-layers,stream,do-sample,sample,trust-remote-code,use-cache,device-map',
  ),
} as const satisfies Readonly<Record<string, readonly string[]>>;

function names(text: string): readonly string[] {
  return text.split(',');
}

/** Choices that disable a flag, for switches of other tools that mean one of its values. */
const OFF: Readonly<Record<string, string>> = { recompute: 'none', zero: '0', attention: 'plain' };

/** Values of flags of other tools and their names here; '' if the flag is then not needed. */
const VALUES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  bits: { '4': 'int4', '8': 'int8', '16': 'bf16', '32': 'f32' },
  loadin: { '4bit': 'int4', '8bit': 'int8' },
  kvcachedtype: { auto: '' },
  cachetypek: { q8_0: 'int8', q4_0: 'int4' },
  cachetypev: { q8_0: 'int8', q4_0: 'int4' },
};

/** Meaning of a flag of another tool. */
export interface FlagMeaning {
  /** Name of the flag, `<name>` of an argument, or '' for a flag that is not needed. */
  readonly name: string;
  /** Value that the switch means, and the value that it excludes. */
  readonly value?: string | undefined;
  readonly off?: string | undefined;
  /** Values of the flag, and their names here. */
  readonly values?: Readonly<Record<string, string>> | undefined;
}

/** Meanings of a flag's name in other tools, the most likely one first. */
export function flagMeanings(name: string): FlagMeaning[] {
  const folded = foldedName(name);
  return Object.entries(FLAGS)
    .filter(([, spellings]) => spellings.some((each) => foldedName(each) === folded))
    .map(([meaning]) => {
      const [flag = '', value] = meaning.split('=');
      const off = value === undefined ? undefined : OFF[flag];
      return { name: flag, value, off, values: VALUES[folded] };
    });
}

/** All names of flags in other tools. */
export const otherNames = (): string[] => [...new Set(Object.values(FLAGS).flat())];

/** Common names of choices, by flag. */
const CHOICES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  format: { md: 'markdown', text: 'table', txt: 'table', plain: 'table' },
  for: { train: 'training', serve: 'serving', inference: 'serving', infer: 'serving' },
  precision: {
    ...{ fp32: 'float32', f32: 'float32', full: 'float32', float: 'float32', '32': 'float32' },
    ...{ bf16: 'mixed', fp16: 'mixed', amp: 'mixed', half: 'mixed', bf16mixed: 'mixed' },
    ...{ bfloat16: 'mixed', float16: 'mixed', fp16mixed: 'mixed', '16mixed': 'mixed' },
  },
  recompute: {
    ...{
      all: 'full',
      yes: 'full',
      on: 'full',
      true: 'full',
      off: 'none',
      no: 'none',
      false: 'none',
    },
    uniform: 'full',
  },
  optimizer: {
    ...{ adam: 'adamw', adam8bit: 'adamw-8bit', adam8: 'adamw-8bit', adamw8: 'adamw-8bit' },
    ...{
      '8bitadam': 'adamw-8bit',
      adamwtorch: 'adamw',
      adamwtorchfused: 'adamw',
      adamwhf: 'adamw',
    },
    ...{ pagedadamw8bit: 'adamw-8bit', adamwbnb8bit: 'adamw-8bit', momentum: 'sgd-momentum' },
  },
  attention: {
    ...{ flash: 'fused', flashattention: 'fused', flashattention2: 'fused', flashattn: 'fused' },
    ...{ sdpa: 'fused', eager: 'plain', fa2: 'fused', flashattention3: 'fused' },
  },
  zero: { zero1: '1', zero2: '2', zero3: '3', stage1: '1', stage2: '2', stage3: '3', fsdp: '3' },
  tie: {
    ...{ embedding: 'embed', embeddings: 'embed', embedtokens: 'embed', wte: 'embed' },
    ...{ lmhead: 'head', output: 'head', average: 'mean', avg: 'mean' },
  },
  to: { lora: 'low-rank', unshared: 'per-layer', sinusoidal: 'sincos', sine: 'sincos' },
  dtype: { same: 'keep', none: 'keep' },
  container: { torch: 'pt', pytorch: 'pt', pth: 'pt', bin: 'pt', st: 'safetensors' },
  engine: { onnxruntime: 'onnx', ort: 'onnx', tensorflow: 'tfjs', tf: 'tfjs' },
  device: { nvidia: 'cuda', dml: 'directml' },
  extend: { zeros: 'zero', tile: 'repeat' },
  shell: { pwsh: 'powershell', ps: 'powershell', ps1: 'powershell', sh: 'bash' },
  kind: { v1: 'linear', v2: 'elastic' },
  sort: { params: 'parameters', size: 'parameters', balanced: 'balance' },
  only: {
    ...{ cuda: 'onnx:cuda', webgpu: 'onnx:webgpu', directml: 'onnx:dml', coreml: 'onnx:coreml' },
    ...{ onnx: 'onnx:cpu', cpu: 'onnx:cpu', tfjs: 'tfjs:cpu', wasm: 'tfjs:wasm' },
    ...{ kvcache: 'cache', speed: 'timing', time: 'timing', causal: 'causality' },
  },
  family: { gemma3: 'gemma3_text', gptneox: 'gpt_neox', pythia: 'gpt_neox' },
};

/** The choice that `text` means, in any case, by a common name, or by any name of an element type. */
export function nearestValue(
  flag: string,
  text: string,
  options: readonly string[],
): string | undefined {
  const folded = foldedName(text.trim());
  const own = options.find((each) => foldedName(each) === folded);
  const common = CHOICES[flag];
  const meant = own ?? (common && Object.hasOwn(common, folded) ? common[folded] : undefined);
  const chosen = meant ?? parseDtype(text);
  return chosen !== undefined && options.includes(chosen) ? chosen : undefined;
}

/** First words that people try, and the command line that they mean. */
const COMMANDS: Readonly<Record<string, string>> = {
  chat: 'generate',
  sample: 'generate',
  complete: 'generate',
  quantize: 'convert-checkpoint',
  eval: 'evaluate',
  ppl: 'evaluate',
  perplexity: 'evaluate',
  finetune: 'train-plan',
  'fine-tune': 'train-plan',
  pretrain: 'train-plan',
  flops: 'profile',
  'kv-cache': 'profile',
  tokenize: 'data',
  tokens: 'data',
  'convert-srte': 'convert-checkpoint',
  dataset: 'data',
  schedule: 'train-plan',
  convert: 'convert-checkpoint',
  count: 'profile',
  params: 'profile',
  parameters: 'profile',
  size: 'profile',
  info: 'profile',
  summary: 'profile',
  show: 'profile',
  estimate: 'fit',
  memory: 'fit',
  vram: 'fit',
  serve: 'fit',
  gpu: 'fit --list-gpus',
  gpus: 'fit --list-gpus',
  test: 'quick-test',
  run: 'quick-test',
  bench: 'quick-test',
  check: 'validate',
  lint: 'validate',
  diff: 'compare',
  search: 'plan',
  design: 'plan',
  new: 'init',
  create: 'init',
  models: 'list',
  presets: 'list',
  ls: 'list',
  onnx: 'export',
  tensors: 'inspect',
  srte: 'compare-srte',
  devices: 'doctor',
  engines: 'doctor',
  version: '--version',
};

/** The command that `word` means: by a common name, a unique beginning, or a similar spelling. */
export function nearestCommand(word: string, known: readonly string[]): string | undefined {
  const folded = word.toLowerCase();
  if (Object.hasOwn(COMMANDS, folded)) return COMMANDS[folded];
  const longer = known.filter((each) => each.startsWith(folded));
  return longer.length === 1 ? longer[0] : misspelled(word, known, 2);
}
