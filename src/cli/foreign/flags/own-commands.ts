/** Flags that people expect of the commands here, by the command that they write them for. */
import type { FlagRow } from './flag-row.js';

/** A meaning, and the names that have it: people say them, and no tool declares them. */
type OwnRow = readonly [meaning: string, names: string];

/** Token ids. */
const IDS = String.raw`~^\d+(?:\W\d+)+$`;

/** Text of a prompt, and no number of tokens. */
const TEXT = String.raw`~^(?!\d)`;

/** A name of a file or folder. */
const FILE = String.raw`~[./\\]`;

/** A file of an answer. */
const ANSWER = String.raw`~\.(?:html?|svg|json|csv|md|txt|log|xlsx)$`;

/** Devices and engines that run a model, as PyTorch and ONNX Runtime call them. */
const DEVICE_FLAGS = ['backend', 'runtime', 'provider', 'execution-provider', 'ep', 'engine'];

const DEVICES: readonly (readonly [meaning: string, value: string])[] = [
  ['device=cpu', '~^cpu'],
  ['device=cuda', '~^(?:cuda|tensorrt)'],
  ['device=directml', '~^(?:directml|dml)'],
  ['device=coreml', '~^coreml'],
  ['device=webgpu', '~^webgpu'],
  ['device=gpu', '~^(?:gpu|mps|metal|webgl)$'],
  ['engine=tfjs', '~^(?:tfjs|tensorflow|tf$|wasm)'],
  ['engine=onnx', '~^(?:onnx|ort$)'],
];

/** Rows of the commands that run a model. */
const RUNS: readonly OwnRow[] = [
  ['device=cpu@quick-test|generate|evaluate', 'cpu,cpu-only,use-cpu,no-gpu,no-cuda,force-cpu'],
  ['device=cuda@quick-test|generate|evaluate', 'cuda,use-cuda'],
  ['device=gpu@quick-test|generate|evaluate', 'gpu,use-gpu,mps,metal'],
  ['device=webgpu@quick-test|generate|evaluate', 'webgpu'],
  ['engine=tfjs@quick-test|generate|evaluate', 'tfjs,tensorflow,wasm'],
  ['engine=onnx@quick-test|generate|evaluate', 'onnx,onnxruntime,ort'],
  ...DEVICE_FLAGS.flatMap((flag) =>
    DEVICES.map(
      ([meaning, value]): OwnRow => [`${meaning}@quick-test|generate|evaluate`, `${flag}=${value}`],
    ),
  ),
  [
    'compute=f16@quick-test',
    `dtype=~^(?:fp16|f16|float16|half)$,precision=~^(?:fp16|f16|float16|half)$`,
  ],
  ['compute=f32@quick-test', `dtype=~^(?:fp32|f32|float32)$,precision=~^(?:fp32|f32|float32)$`],
  ['weights=int8@quick-test|generate', 'dtype=~^(?:int8|8bit|q8)$,precision=~^(?:int8|8bit)$'],
  ['weights=int4@quick-test|generate', 'dtype=~^(?:int4|4bit|q4)$,precision=~^(?:int4|4bit)$'],
];

/** Rows of `quick-test`. */
const QUICK_TEST: readonly OwnRow[] = [
  ['>generate@quick-test', `prompt=${TEXT},p=${TEXT},text=${TEXT},input=${TEXT},generate`],
  ['ids@quick-test', `tokens=${IDS},input=${IDS},n-tokens=${IDS}`],
  [
    'checkpoint@quick-test|generate|evaluate',
    'checkpoint-path,ckpt-path,weights-path,load-checkpoint,state-dict-path',
  ],
  ['checkpoint@quick-test|generate|evaluate', `resume=${FILE},weights=${FILE}`],
  ['repeat@quick-test', 'iters,n-iters,num-iters,trials,times,rounds,loops'],
  ['steps@quick-test', 'num-steps,n-steps,train-steps,training-steps'],
  ['overfit@quick-test', 'backward,gradients,grad,grads,loss,backprop'],
  ['only=forward@quick-test', 'forward,forward-only,forward-pass'],
  ['only=cache@quick-test', 'cache,decode,decoding,kv-cache,check-cache'],
  ['only=timing@quick-test', 'profile,latency,throughput,tokens-per-second,tps,perf'],
  ['only=cross-check@quick-test', 'cross-engine,both-engines'],
  ['trace@quick-test', 'no-run,shape,summary'],
  ['save@quick-test', 'save-logits,dump,dump-logits,logits,save-outputs,save-output'],
  ['@quick-test', 'random,random-weights,random-init,from-scratch,warmup=,warm-up=,warmup-steps='],
  [
    '<none>@quick-test',
    'tolerance=,tol=,rtol=,atol=,skip=,exclude=,epochs=,n-epochs=,no-timing,small,tiny,fast,quick',
  ],
];

/** Rows of `profile`, and of flags that several commands about a model have. */
const PROFILE: readonly OwnRow[] = [
  [
    '<shown>@profile',
    'mem,breakdown,training,train,inference,infer,non-embedding,components,by-component,totals,weights,quantized',
  ],
  ['details@profile', 'activations,gradients,embedding,srte'],
  [
    'layers@profile',
    'by-layer,per-layer,layerwise,layer-wise,show-layers,blocks,by-block,per-block',
  ],
  ['tensors@profile', 'tree,names,shapes,modules,structure,show-shapes,weights-list'],
  ['context@profile|compare|fit', 'sl,sequence'],
  ['context@profile|compare', String.raw`tokens=~^\d+k?$,n-tokens=~^\d+k?$,num-tokens=~^\d+k?$`],
  [
    'max-memory@profile',
    String.raw`budget=~^[\d.]+\s*[kmgt]i?b$,limit=~^[\d.]+\s*[kmgt]i?b$,max-size=~b$,gpu-memory,gpu-mem,gpu-ram`,
  ],
  ['max-params@profile', String.raw`limit=~^[\d.]+\s*[kmbt]?$,max-size=~^[\d.]+\s*[kmbt]?$`],
  ['>compare@profile|fit', 'compare,vs,against,baseline,with,compare-with,compare-to'],
  [
    '<model>@profile|fit|validate|quick-test|compare-srte|draw|explore|export|generate|evaluate',
    'name,i,yaml',
  ],
  ['details@profile', String.raw`dtype=~^\w+\W\w`],
  ['dtype=int4@profile|compare', 'dtype=~^q4$'],
  ['dtype=int8@profile|compare', 'dtype=~^q8$'],
  ['dtype=int4', 'dtype=~^(?:nf4|fp4|bnb)$'],
  ['set', 's=~=,o=~='],
  ['rank@fit', String.raw`lora=~^\d+$`],
  ['>fit --for lora --rank@profile', String.raw`lora=~^\d+$,lora-rank,lora-r,r`],
  ['<none>@profile|compare|fit', 'depth=,unit=,units=,width='],
  [
    '@profile|compare|fit|validate|inspect|verify|diff|list|compare-srte|draw|evaluate|data',
    'human,human-readable,human-readable-sizes,pretty,short,brief,compact,progress,no-progress,no-cache,cache-dir=',
  ],
  ['@profile|compare|fit|validate|inspect|verify|diff|list|compare-srte', 'dry-run,dry,no-run'],
  ['@profile|validate|compare-srte', 'summary'],
];

/** Rows of `fit`. */
const FIT: readonly OwnRow[] = [
  ['<shown>@fit', 'memory,mem,vram,headroom'],
  [
    '<of-gpu>@fit',
    'speed,tps,tokens-per-second,toks,latency,throughput,max-context,max-ctx,longest-context,max-batch,max-batch-size,max-users',
  ],
  ['details@fit', 'list,all-gpus,all-hardware,every-gpu,hardware-table,gpus-table'],
  ['gpu@fit', 'on,hw,machine,cluster,graphics-card,rig'],
  ['gpus@fit', 'multi-gpu,cards'],
  [
    '<none>@fit',
    'consumer,datacenter,nvidia,amd,apple,intel,mac,vendor=,brand=,cloud=,provider=,nodes=',
  ],
  ['price@fit', 'cost,hourly,price-per-hour,gpu-price,usd-per-hour,cost-per-hour'],
  ['for=lora', 'adapters'],
];

/** Rows of checkpoints. */
const CHECKPOINTS: readonly OwnRow[] = [
  ['tensors@inspect', 'shapes,tree,layers,names,dtypes,structure,modules,shape'],
  [
    'stats@inspect',
    'norm,norms,nan,nans,inf,check-nan,histogram,values,distribution,ranges,minmax,statistics',
  ],
  ['hash@inspect', 'md5,sha,sha1,sha256,checksum,checksums,digest,fingerprint'],
  ['filter@inspect', 'tensor,print,show,key,prefix,select,only,layer'],
  ['<shown>@inspect', 'size,sizes,params,parameters,dtype,summary,count,num-params,total,format'],
  ['details@inspect', 'metadata,config'],
  ['<none>@inspect', 'sort=,sort-by=,top=,limit=,head='],
  ['max-error@diff', 'tolerance,tol,rtol,threshold,eps,epsilon,rel-tol'],
  ['<none>@diff', 'atol=,abs-tol=,ignore=,exclude='],
  ['values@diff', 'tensors,weights,data,numeric,deep,full'],
  ['<checkpoint>@verify', 'weights,checkpoint,ckpt,state-dict-path,checkpoint-path,weights-path'],
  ['<config>@verify', 'config,cfg,c,yaml'],
  ['scan@verify', 'nan,nans,check-nan,deep,full'],
  ['values@verify', 'original,reference,against,compare'],
  ['container=safetensors@convert-checkpoint', 'safetensors,st,safe'],
  ['container=pt@convert-checkpoint', 'pickle,torch,pytorch,pt,pth'],
  ['container=gguf@convert-checkpoint', 'gguf,to-gguf'],
  [
    '>convert-checkpoint --to low-rank --rank@convert-checkpoint',
    String.raw`low-rank=~^\d,lowrank=~^\d,svd=~^\d`,
  ],
  ['to=low-rank@convert-checkpoint', 'svd,factorize,factorized,decompose'],
  ['to=sincos@convert-checkpoint', 'sincos,sinusoidal,sin-cos'],
  ['to=per-layer@convert-checkpoint', 'per-layer,unshare,unshared'],
  ['merge=mean@convert-checkpoint', 'mean,average,avg'],
  ['merge=first@convert-checkpoint', 'first'],
  ['config@convert-checkpoint', 'model-config,config-path,input-config'],
  ['family@convert-checkpoint', 'arch,architecture,model-type,model-arch'],
  ['state-dict', 'key,state-dict-key,state-key,dict-key,checkpoint-key'],
  ['state-dict=ema@convert-checkpoint', 'ema,use-ema'],
  [
    'max-positions@convert-checkpoint',
    'max-seq-len,max-seq-length,max-position,max-position-embeddings,positions,context-length',
  ],
  ['max-error@convert-checkpoint', 'tolerance,tol,max-relative-error,error'],
  ['threads@convert-checkpoint', 'workers'],
  ['output@convert-checkpoint', 'report,report-file,log,log-file'],
  ['shard-size@convert-checkpoint', String.raw`split=~^[\d.]+\s*[kmgt]`],
  [
    '@convert-checkpoint',
    'cpu,gpu,cuda,use-cpu,no-gpu,hf,huggingface,transformers,no-verify,no-check,lazy,low-mem,low-memory,low-cpu-mem,use-temp-file,backup,keep-original,from=~^(?:per-layer|shared|low-rank|sincos|pt|pth|pytorch|torch|safetensors|gguf)$,' +
      'input-format=,in-format=,from-format=,source-format=,strip-prefix=module.,strip-prefix=_orig_mod.,remove-prefix=module.,strip-module,remove-module',
  ],
  [
    '<none>@convert-checkpoint',
    'prefix=,strip-prefix=,remove-prefix=,rename=,compress,compression=,in-place,inplace,no-shard,single-file,untie,max-loss=',
  ],
];

/** Rows of `compare-srte`, `compare`, `validate` and `list`. */
const COMPARISONS: readonly OwnRow[] = [
  ['max-positions@compare-srte', 'context,max-seq-len,max-seq-length,seq-len,max-context,ctx'],
  [
    '@compare-srte',
    'strategies=,strategy=,only=,srte=,layouts=,layout=,all,all-strategies,baseline=per-layer,baseline=none,sort=,sort-by=,' +
      'verbose,v,details,explain,memory,params,savings,table,summary,full',
  ],
  ['<none>@compare-srte', 'quality,accuracy,loss,batch=,baseline='],
  ['columns@compare', 'only,metric,metrics,show,fields'],
  [
    '<shown>@compare',
    'params,parameters,memory,mem,flops,kv-cache,kv,diff,diffs,side-by-side,percent,percentage,percentages,ratio,' +
      'changes,delta,deltas,relative,training,inference,table',
  ],
  ['<more>@compare', 'with,vs,and,other,to,against'],
  ['@validate', 'check,lint,model-type=,quick,syntax,semantics,schema-only'],
  ['<none>@validate', 'fix,autofix'],
  ['<shown>@list', 'presets,models,families,configs,all-models,architectures,model-types'],
  ['>fit --list-gpus@list', 'gpus,gpu,hardware,cards'],
];

/** Rows of the file of an answer, and of its form. */
const ANSWERS: readonly OwnRow[] = [
  [
    'output',
    ['export', 'html', 'svg', 'csv', 'markdown', 'md', 'report', 'xlsx', 'write']
      .map((name) => `${name}=${ANSWER}`)
      .join(),
  ],
  [
    'output',
    'report-file,json-file,csv-file,html-file,output-json,output-csv,save-report,outfile-json',
  ],
  ['format=html', 'html'],
  ['format=svg', 'svg'],
];

/** Rows of texts, of plans and of pictures. */
const OTHERS: readonly OwnRow[] = [
  ['threads', String.raw`j=~^\d+$`],
  ['batch@generate', `prompt-file,prompts,prompts-file,file=${FILE},f=${FILE},input-file`],
  ['@generate|evaluate', 'verbose,v,no-stream,stream,debug'],
  ['<none>@generate', 'samples=,num-samples=,n-samples=,num-return-sequences='],
  ['text@evaluate', `ppl=${FILE},perplexity=${FILE}`],
  ['<shown>@evaluate', 'ppl,perplexity,loss,bits-per-byte,bpb'],
  ['<shown>@data', 'stats,statistics,count,summary,dedup,dedupe,deduplicate,duplicates'],
  ['<of-gpu>@train-plan', 'time,duration,flops'],
  ['max-memory@plan', 'budget=~[kmgt]i?b$,limit=~[kmgt]i?b$'],
  ['<shown>@train-plan', 'schedule,chinchilla,optimal,memory,summary'],
  ['<shown>@attention', 'flash,flash-attn,flash-attention,plain,sdpa,compare,io,traffic'],
  ['<shown>@rope', 'scaling=,type=,method=,yarn,ntk,linear,wavelengths,frequencies,plot'],
  ['block@draw', 'layer,part,module,path,node'],
  ['format=mermaid@draw', 'mermaid'],
  ['<none>@draw', 'depth=,open,max-depth='],
  ['no-open@explore', 'no-browser,headless,no-launch,dont-open'],
  ['save@explore', `html=${FILE},export=${FILE}`],
  ['save=explorer.html@explore', 'html'],
  ['>plan --max-params@init', 'size,params,parameters,num-params,model-size,target'],
  ['<preset>@init', 'family,model-type,name,template,from,preset,model,base'],
  ['@doctor', 'gpu,gpus,cuda,verbose,v,all,full,check,hardware,fix,engines'],
  ['<none>@mcp', 'http,sse,port=,host=,transport='],
];

/** Rows that come before those of other tools. */
export const OWN_COMMANDS: readonly FlagRow[] = [
  ANSWERS,
  RUNS,
  QUICK_TEST,
  PROFILE,
  FIT,
  CHECKPOINTS,
  COMPARISONS,
  OTHERS,
].flatMap((rows) => rows.map(([meaning, names]): FlagRow => [meaning, names, ['speech']]));
