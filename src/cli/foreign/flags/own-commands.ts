/** Flags that people expect of the commands here, by the command that they write them for. */
import type { FlagRow } from './flag-row.js';

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
const RUNS: readonly FlagRow[] = [
  [
    'device=cpu@quick-test|generate|evaluate',
    'cpu,cpu-only,use-cpu,no-gpu,no-cuda,force-cpu',
    ['speech'],
  ],
  ['device=cuda@quick-test|generate|evaluate', 'cuda,use-cuda', ['speech']],
  ['device=gpu@quick-test|generate|evaluate', 'gpu,use-gpu,mps,metal', ['speech']],
  ['device=webgpu@quick-test|generate|evaluate', 'webgpu', ['speech']],
  ['engine=tfjs@quick-test|generate|evaluate', 'tfjs,tensorflow,wasm', ['speech']],
  ['engine=onnx@quick-test|generate|evaluate', 'onnx,onnxruntime,ort', ['speech']],
  ...DEVICE_FLAGS.flatMap((flag) =>
    DEVICES.map(
      ([meaning, value]): FlagRow => [
        `${meaning}@quick-test|generate|evaluate`,
        `${flag}=${value}`,
        ['speech'],
      ],
    ),
  ),
  [
    'compute=f16@quick-test',
    `dtype=~^(?:fp16|f16|float16|half)$,precision=~^(?:fp16|f16|float16|half)$`,
    ['speech'],
  ],
  [
    'compute=f32@quick-test',
    `dtype=~^(?:fp32|f32|float32)$,precision=~^(?:fp32|f32|float32)$`,
    ['speech'],
  ],
  [
    'weights=int8@quick-test|generate',
    'dtype=~^(?:int8|8bit|q8)$,precision=~^(?:int8|8bit)$',
    ['speech'],
  ],
  [
    'weights=int4@quick-test|generate',
    'dtype=~^(?:int4|4bit|q4)$,precision=~^(?:int4|4bit)$',
    ['speech'],
  ],
];

/** Rows of `quick-test`. */
const QUICK_TEST: readonly FlagRow[] = [
  [
    '>generate@quick-test',
    `prompt=${TEXT},p=${TEXT},text=${TEXT},input=${TEXT},generate`,
    ['speech'],
  ],
  ['ids@quick-test', `tokens=${IDS},input=${IDS},n-tokens=${IDS}`, ['speech']],
  [
    'checkpoint@quick-test|generate|evaluate',
    'checkpoint-path,ckpt-path,weights-path,load-checkpoint,state-dict-path',
    ['speech'],
  ],
  ['checkpoint@quick-test|generate|evaluate', `resume=${FILE},weights=${FILE}`, ['speech']],
  ['repeat@quick-test', 'iters,n-iters,num-iters,trials,times,rounds,loops', ['speech']],
  ['steps@quick-test', 'num-steps,n-steps,train-steps,training-steps', ['speech']],
  ['overfit@quick-test', 'backward,gradients,grad,grads,loss,backprop', ['speech']],
  ['only=forward@quick-test', 'forward,forward-only,forward-pass', ['speech']],
  ['only=cache@quick-test', 'cache,decode,decoding,kv-cache,check-cache', ['speech']],
  ['only=timing@quick-test', 'profile,latency,throughput,tokens-per-second,tps,perf', ['speech']],
  ['only=cross-check@quick-test', 'cross-engine,both-engines', ['speech']],
  ['trace@quick-test', 'no-run,shape,summary', ['speech']],
  ['save@quick-test', 'save-logits,dump,dump-logits,logits,save-outputs,save-output', ['speech']],
  [
    '@quick-test',
    'random,random-weights,random-init,from-scratch,warmup=,warm-up=,warmup-steps=',
    ['speech'],
  ],
  [
    '<none>@quick-test',
    'tolerance=,tol=,rtol=,atol=,skip=,exclude=,epochs=,n-epochs=,no-timing,small,tiny,fast,quick',
    ['speech'],
  ],
];

/** Rows of `profile`, and of the commands beside it. */
const PROFILE: readonly FlagRow[] = [
  [
    '<shown>@profile',
    'mem,breakdown,training,train,inference,infer,non-embedding,components,by-component,activations,totals,' +
      'gradients,weights,embedding,srte,quantized',
    ['speech'],
  ],
  [
    'layers@profile',
    'by-layer,per-layer,layerwise,layer-wise,show-layers,blocks,by-block,per-block',
    ['speech'],
  ],
  ['tensors@profile', 'tree,names,shapes,modules,structure,show-shapes,weights-list', ['speech']],
  ['context@profile|compare|fit', 'sl,sequence', ['speech']],
  [
    'context@profile|compare',
    String.raw`tokens=~^\d+k?$,n-tokens=~^\d+k?$,num-tokens=~^\d+k?$`,
    ['speech'],
  ],
  [
    'max-memory@profile',
    String.raw`budget=~^[\d.]+\s*[kmgt]i?b$,limit=~^[\d.]+\s*[kmgt]i?b$,max-size=~b$,gpu-memory,gpu-mem,gpu-ram`,
    ['speech'],
  ],
  [
    'max-params@profile',
    String.raw`limit=~^[\d.]+\s*[kmbt]?$,max-size=~^[\d.]+\s*[kmbt]?$`,
    ['speech'],
  ],
  ['>compare@profile|fit', 'compare,vs,against,baseline,with,compare-with,compare-to', ['speech']],
  [
    '<model>@profile|fit|validate|quick-test|compare-srte|draw|explore|export|generate|evaluate',
    'name,i,yaml',
    ['speech'],
  ],
  ['details@profile', String.raw`dtype=~^\w+\W\w`, ['speech']],
  ['dtype=int4@profile|compare', 'dtype=~^q4$', ['speech']],
  ['dtype=int8@profile|compare', 'dtype=~^q8$', ['speech']],
  ['dtype=int4', 'dtype=~^(?:nf4|fp4|bnb)$', ['speech']],
  ['set', 's=~=,o=~=', ['speech']],
  ['rank@fit', String.raw`lora=~^\d+$`, ['speech']],
  ['>fit --for lora --rank@profile', String.raw`lora=~^\d+$,lora-rank,lora-r,r`, ['speech']],
  ['<none>@profile|compare|fit', 'depth=,unit=,units=,width=', ['speech']],
  [
    '@profile|compare|fit|validate|inspect|verify|diff|list|compare-srte|draw|evaluate|data',
    'human,human-readable,human-readable-sizes,pretty,short,brief,compact,progress,no-progress,no-cache,cache-dir=',
    ['speech'],
  ],
  [
    '@profile|compare|fit|validate|inspect|verify|diff|list|compare-srte',
    'dry-run,dry,no-run',
    ['speech'],
  ],
  ['@profile|validate|compare-srte', 'summary', ['speech']],
];

/** Rows of `fit`. */
const FIT: readonly FlagRow[] = [
  [
    '<shown>@fit',
    'speed,tps,tokens-per-second,toks,latency,throughput,max-context,max-ctx,longest-context,max-batch,max-batch-size,' +
      'max-users,memory,mem,vram,headroom',
    ['speech'],
  ],
  ['details@fit', 'list,all-gpus,all-hardware,every-gpu,hardware-table,gpus-table', ['speech']],
  ['gpu@fit', 'on,hw,machine,cluster,graphics-card,rig', ['speech']],
  ['gpus@fit', 'multi-gpu,cards', ['speech']],
  [
    '<none>@fit',
    'consumer,datacenter,nvidia,amd,apple,intel,mac,vendor=,brand=,cloud=,provider=,nodes=',
    ['speech'],
  ],
  ['price@fit', 'cost,hourly,price-per-hour,gpu-price,usd-per-hour,cost-per-hour', ['speech']],
  ['for=lora', 'adapters', ['speech']],
];

/** Rows of checkpoints. */
const CHECKPOINTS: readonly FlagRow[] = [
  ['tensors@inspect', 'shapes,tree,layers,names,dtypes,structure,modules,shape', ['speech']],
  [
    'stats@inspect',
    'norm,norms,nan,nans,inf,check-nan,histogram,values,distribution,ranges,minmax,statistics',
    ['speech'],
  ],
  ['hash@inspect', 'md5,sha,sha1,sha256,checksum,checksums,digest,fingerprint', ['speech']],
  ['filter@inspect', 'tensor,print,show,key,prefix,select,only,layer', ['speech']],
  [
    '<shown>@inspect',
    'size,sizes,params,parameters,metadata,dtype,config,summary,count,num-params,total,memory,format',
    ['speech'],
  ],
  ['<none>@inspect', 'sort=,sort-by=,top=,limit=,head=', ['speech']],
  ['max-error@diff', 'tolerance,tol,rtol,threshold,eps,epsilon,rel-tol', ['speech']],
  ['<none>@diff', 'atol=,abs-tol=,ignore=,exclude=', ['speech']],
  ['values@diff', 'tensors,weights,data,numeric,deep,full', ['speech']],
  [
    '<checkpoint>@verify',
    'weights,checkpoint,ckpt,state-dict-path,checkpoint-path,weights-path',
    ['speech'],
  ],
  ['<config>@verify', 'config,cfg,c,yaml', ['speech']],
  ['scan@verify', 'nan,nans,check-nan,deep,full', ['speech']],
  ['values@verify', 'original,reference,against,compare', ['speech']],
  ['container=safetensors@convert-checkpoint', 'safetensors,st,safe', ['speech']],
  ['container=pt@convert-checkpoint', 'pickle,torch,pytorch,pt,pth', ['speech']],
  ['container=gguf@convert-checkpoint', 'gguf,to-gguf', ['speech']],
  [
    '>convert-checkpoint --to low-rank --rank@convert-checkpoint',
    String.raw`low-rank=~^\d,lowrank=~^\d,svd=~^\d`,
    ['speech'],
  ],
  ['to=low-rank@convert-checkpoint', 'svd,factorize,factorized,decompose', ['speech']],
  ['to=sincos@convert-checkpoint', 'sincos,sinusoidal,sin-cos', ['speech']],
  ['to=per-layer@convert-checkpoint', 'per-layer,unshare,unshared', ['speech']],
  ['@convert-checkpoint', 'format=~^(?:auto_?(?:round|gptq|awq)|llm_?compressor)', ['swift']],
  ['merge=mean@convert-checkpoint', 'mean,average,avg', ['speech']],
  ['merge=first@convert-checkpoint', 'first', ['speech']],
  ['config@convert-checkpoint', 'model-config,config-path,input-config', ['speech']],
  ['family@convert-checkpoint', 'arch,architecture,model-type,model-arch', ['speech']],
  ['state-dict', 'key,state-dict-key,state-key,dict-key,checkpoint-key', ['speech']],
  ['state-dict=ema@convert-checkpoint', 'ema,use-ema', ['speech']],
  [
    'max-positions@convert-checkpoint',
    'max-seq-len,max-seq-length,max-position,max-position-embeddings,positions,context-length',
    ['speech'],
  ],
  ['max-error@convert-checkpoint', 'tolerance,tol,max-relative-error,error', ['speech']],
  ['threads@convert-checkpoint', 'workers', ['speech']],
  ['output@convert-checkpoint', 'report,report-file,log,log-file', ['speech']],
  ['shard-size@convert-checkpoint', String.raw`split=~^[\d.]+\s*[kmgt]`, ['speech']],
  [
    '@convert-checkpoint',
    'cpu,gpu,cuda,use-cpu,no-gpu,hf,huggingface,transformers,no-verify,no-check,lazy,low-mem,low-memory,low-cpu-mem,use-temp-file,backup,keep-original,from=~^(?:per-layer|shared|low-rank|sincos|pt|pth|pytorch|torch|safetensors|gguf)$,' +
      'input-format=,in-format=,from-format=,source-format=,strip-prefix=module.,strip-prefix=_orig_mod.,remove-prefix=module.,strip-module,remove-module',
    ['speech'],
  ],
  [
    '<none>@convert-checkpoint',
    'prefix=,strip-prefix=,remove-prefix=,rename=,compress,compression=,in-place,inplace,no-shard,single-file,untie,max-loss=',
    ['speech'],
  ],
];

/** Rows of `compare-srte`, `compare`, `validate` and `list`. */
const COMPARISONS: readonly FlagRow[] = [
  [
    'max-positions@compare-srte',
    'context,max-seq-len,max-seq-length,seq-len,max-context,ctx',
    ['speech'],
  ],
  [
    '@compare-srte',
    'strategies=,strategy=,only=,srte=,layouts=,layout=,all,all-strategies,baseline=per-layer,baseline=none,sort=,sort-by=,' +
      'verbose,v,details,explain,memory,params,savings,table,summary,full',
    ['speech'],
  ],
  ['<none>@compare-srte', 'quality,accuracy,loss,batch=,baseline=', ['speech']],
  ['columns@compare', 'only,metric,metrics,show,fields', ['speech']],
  [
    '<shown>@compare',
    'params,parameters,memory,mem,flops,kv-cache,kv,diff,diffs,side-by-side,percent,percentage,percentages,ratio,' +
      'changes,delta,deltas,relative,training,inference,table',
    ['speech'],
  ],
  ['<more>@compare', 'with,vs,and,other,to,against', ['speech']],
  ['@validate', 'check,lint,model-type=,quick,syntax,semantics,schema-only', ['speech']],
  ['<none>@validate', 'fix,autofix', ['speech']],
  [
    '<shown>@list',
    'presets,models,families,configs,all-models,architectures,model-types',
    ['speech'],
  ],
  ['>fit --list-gpus@list', 'gpus,gpu,hardware,cards', ['speech']],
];

/** Rows of the file of an answer, and of its form. */
const ANSWERS: readonly FlagRow[] = [
  [
    'output',
    ['export', 'html', 'svg', 'csv', 'markdown', 'md', 'report', 'xlsx', 'write']
      .map((name) => `${name}=${ANSWER}`)
      .join(),
    ['speech'],
  ],
  [
    'output',
    'report-file,json-file,csv-file,html-file,output-json,output-csv,save-report,outfile-json',
    ['speech'],
  ],
  ['format=html', 'html', ['speech']],
  ['format=svg', 'svg', ['speech']],
];

/** Rows of texts, of plans and of pictures. */
const OTHERS: readonly FlagRow[] = [
  ['threads', String.raw`j=~^\d+$`, ['speech']],
  [
    'batch@generate',
    `prompt-file,prompts,prompts-file,file=${FILE},f=${FILE},input-file`,
    ['speech'],
  ],
  ['@generate|evaluate', 'verbose,v,no-stream,stream,debug', ['speech']],
  ['<none>@generate', 'samples=,num-samples=,n-samples=,num-return-sequences=', ['speech']],
  ['text@evaluate', `ppl=${FILE},perplexity=${FILE}`, ['speech']],
  ['<shown>@evaluate', 'ppl,perplexity,loss,bits-per-byte,bpb', ['speech']],
  [
    '<shown>@data',
    'stats,statistics,count,count-tokens,tokens-count,summary,lengths,dedup,dedupe,deduplicate,duplicates,histogram,packing',
    ['speech'],
  ],
  ['max-memory@plan', 'budget=~[kmgt]i?b$,limit=~[kmgt]i?b$', ['speech']],
  [
    '<shown>@train-plan',
    'flops,time,duration,schedule,steps,chinchilla,optimal,memory,summary',
    ['speech'],
  ],
  [
    '<shown>@attention',
    'flash,flash-attn,flash-attention,plain,sdpa,compare,io,traffic',
    ['speech'],
  ],
  [
    '<shown>@rope',
    'scaling=,type=,method=,yarn,ntk,linear,wavelengths,frequencies,plot',
    ['speech'],
  ],
  ['block@draw', 'layer,part,module,path,node', ['speech']],
  ['format=mermaid@draw', 'mermaid', ['speech']],
  ['<none>@draw', 'depth=,open,max-depth=', ['speech']],
  ['no-open@explore', 'no-browser,headless,no-launch,dont-open', ['speech']],
  ['save@explore', `html=${FILE},export=${FILE}`, ['speech']],
  ['save=explorer.html@explore', 'html', ['speech']],
  ['>plan --max-params@init', 'size,params,parameters,num-params,model-size,target', ['speech']],
  ['<preset>@init', 'family,model-type,name,template,from,preset,model,base', ['speech']],
  ['@doctor', 'gpu,gpus,cuda,verbose,v,all,full,check,hardware,fix,engines', ['speech']],
  ['<none>@mcp', 'http,sse,port=,host=,transport=', ['speech']],
];

/** Rows that come before those of other tools. */
export const OWN_COMMANDS: readonly FlagRow[] = [
  ...ANSWERS,
  ...RUNS,
  ...QUICK_TEST,
  ...PROFILE,
  ...FIT,
  ...CHECKPOINTS,
  ...COMPARISONS,
  ...OTHERS,
];
