/** Commands of other tools, and the lines that do the same here. Loaded with their flags. */
import type { Source } from './flags/flag-row.js';

/**
 * Lines that a first word means, and the words. `$1` is an argument of theirs, `$2.gguf` one that has this ending,
 * `$1+.gguf` a file that is named after it, and `$model` the value of their --model. A line after `?adapter` is for words
 * with the folder of an adapter, one after `?size` for a number of parameters, one after `?weights` for a file with
 * weights, one after `?full` for a training of all weights, and one after `?here` for a file that is there.
 */
type VerbRow = readonly [lines: readonly string[], words: string, sources: readonly Source[]];

/**
 * First words that people try, and the lines that they mean. Arguments without a place follow, and so do their flags. A
 * name of several words is a command of a program: `export onnx`.
 */
export const VERBS: readonly VerbRow[] = [
  [
    ['generate', 'fit', 'quick-test'],
    'cli,chat,sample,complete,completion,continue,predict,repl,ask,write,text-generation,inference,infer,talk,prompt,simple,generate-text,webchat,chat-cli,generate-full,' +
      'swift app,swift web-ui,generate-adapter,generate-adapter-v2,generate-sequentially,generate-tp,run,llamafile,' +
      'eval-llm,eval-model,test-inference,main,mtmd-cli,llava-cli,minicpmv-cli,gemma3-cli,qwen2vl-cli,simple-chat,mistralrs-server plain,mistralrs-server gguf,mistralrs-server run,llm,mlx-lm generate',
    [
      ...(['llama.cpp', 'axolotl', 'llama-factory', 'nanogpt', 'mlx', 'vllm'] as const),
      ...(['ollama', 'llamafile', 'exllama', 'minimind', 'speech'] as const),
    ],
  ],
  [
    [
      'convert-checkpoint $1 $2.gguf --dtype $3 --threads $4',
      'convert-checkpoint $1 $2.gguf --dtype $3',
      'convert-checkpoint $1 $2 --quantize $3',
      'convert-checkpoint $1 $2 --dtype $3',
      'convert-checkpoint',
      'convert-checkpoint $1 $2 --quantize int4',
      'convert-checkpoint $1 --quantize int4',
      'convert-checkpoint --quantize int4',
    ],
    'quantize,quant,quantise,auto-round,llmcompressor,awq',
    ['llama.cpp', 'axolotl', 'autogptq'],
  ],
  [['export $1 --save $2.onnx', 'convert-checkpoint'], 'convert', ['mlx', 'speech']],
  [
    ['convert-checkpoint'],
    'mlx-lm convert,shard,split,gguf-split,zero-to-fp32,consolidate,merge-weights,' +
      'merge-sharded-fsdp-weights,convert-srte,compress,convert-llama-weights-to-hf,dcp-to-torch,format-utils dcp-to-torch,convert-to-litgpt,' +
      'convert-from-litgpt,convert-pretrained-checkpoint,lite auto-awq,lite auto-gptq,swift export,mlx-lm awq,mlx-lm gptq,mlx-lm dwq,mlx-lm dynamic-quant,lite smooth-quant,convert-lit-checkpoint,ct2-transformers-converter,convert-gguf,cast,recast,' +
      'convert-to-safetensors,convert-weight,upgrade,migrate',
    [
      'llama.cpp',
      'deepspeed',
      'axolotl',
      'accelerate',
      'transformers',
      'litgpt',
      'ct2',
      'mlx',
      'swift',
      'speech',
    ],
  ],
  // The file that llama.cpp writes is named after the model, too.
  [
    ['convert-checkpoint', 'convert-checkpoint $1 $1+.gguf'],
    'convert-hf-to-gguf,to-gguf',
    ['llama.cpp', 'speech'],
  ],
  [
    ['convert-checkpoint $1 $2', 'convert-checkpoint $1 $1+.safetensors'],
    'to-safetensors,unshard,join,concat,combine',
    ['speech'],
  ],
  [
    ['convert-checkpoint $1 $2', 'convert-checkpoint $1 $1+.pt'],
    'to-pt,to-torch,to-pytorch',
    ['speech'],
  ],
  [['convert-checkpoint --to shared'], 'share,share-srte,unify', ['speech']],
  [
    ['convert-checkpoint --to low-rank'],
    'factorize,factorise,lowrank,low-rank,svd,decompose',
    ['speech'],
  ],
  [['convert-checkpoint --tie embed'], 'tie,tie-weights,tie-embeddings', ['speech']],
  ...(['f16', 'bf16', 'f32'] as const).map(
    (type): VerbRow => [
      [`convert-checkpoint --dtype ${type}`],
      [type, type.replace('f', 'fp'), type.replace('f', 'float')]
        .flatMap((name) => [`to-${name}`, name, `cast-${name}`])
        .join(),
      ['speech'],
    ],
  ),
  [
    ['convert-checkpoint $1 $2 --dequantize', 'convert-checkpoint $1 --dequantize'],
    'dequantize,dequantise,dequant',
    ['speech'],
  ],
  [
    [
      'convert-checkpoint $1 $3 --merge-lora $2',
      'convert-checkpoint $1 --merge-lora $2',
      '?adapter convert-checkpoint',
    ],
    'merge-lora,merge-adapter,export-lora,merge,merge-and-unload,merge-peft-adapters,merge-adapters,fuse,llamafactory-cli export,merge-peft',
    ['llama.cpp', 'axolotl', 'llama-factory', 'mlx', 'peft', 'litgpt'],
  ],
  [
    ['evaluate'],
    'eval,ppl,perplexity,lm-eval,score,lm-eval run,base-eval,chat-eval,litgpt evaluate',
    ['llama.cpp', 'lm-eval', 'llama-factory', 'axolotl', 'mlx', 'speech'],
  ],
  [['fit --for qlora'], 'qlora,finetune-qlora,train-qlora,finetune qlora', ['speech']],
  [
    ['?full train-plan', 'fit --for lora'],
    // Adapters are the default of ms-swift.
    'lora,finetune-lora,train-lora,finetune lora,swift sft',
    ['litgpt', 'mlx', 'torchtune', 'minimind', 'swift', 'speech'],
  ],
  [
    ['train-plan'],
    'train,finetune,fine-tune,pretrain,sft,pt,rlhf,schedule,dpo,finetune-full,run-clm,run-sft,train-full-sft,train-pretrain,' +
      'finetune full,finetune-adapter,finetune-adapter-v2,grpo,kto,rloo,reward,ppo,orpo,base-train,chat-sft,train-gpt,pretrain-gpt,' +
      'train-dpo,autotrain llm,create-config',
    ['axolotl', 'llama-factory', 'litgpt', 'trl', 'minimind', 'swift', 'transformers', 'speech'],
  ],
  [
    ['profile'],
    'flops,kv-cache,count,params,parameters,size,info,summary,show,count-params,describe,stats,calflops,thop,' +
      'count-parameters,model-info,param-count,ptflops,fvcore,flopcountanalysis,num-parameters,analyze,analyse,analysis,calc,' +
      'calculate,calculator,profile-model,model-profile,profiler,breakdown,activations,kvcache',
    ['ollama', 'speech'],
  ],
  [['profile $1 --tensors'], 'netron,print,tree,torchinfo,torchsummary', ['speech']],
  [
    ['draw'],
    'visualize,visualise,viz,graph,plot,diagram,architecture,torchview,torchviz,picture,render,show-graph',
    ['speech'],
  ],
  [['draw --format mermaid'], 'mermaid', ['speech']],
  [['explore'], 'ui,gui,web,app,dashboard,playground,designer', ['speech']],
  [['attention'], 'attn,flash-attention,attention-memory', ['speech']],
  [['rope'], 'rope-scaling,yarn,positions', ['speech']],
  [
    ['?data data'],
    'tokenize,tokens,count tokens,count-tokens,token-count,preprocess,dataset,tokenizer,prepare,preprocess-data',
    ['llama.cpp', 'axolotl', 'megatron', 'nanogpt', 'speech'],
  ],
  [
    ['fit'],
    'estimate,estimate-memory,memory,vram,serve,server,load,can-i-run,can-it-run,will-it-fit,memory-usage,deploy,speed,' +
      'throughput,requirements,text-generation-launcher,launch-server,trtllm-serve,api,api-server,how-many-gpus,' +
      'fit-params,cost,bench serve,bench-serving,serve api-server,genai-perf profile,koboldcpp,vllm-serve,openai-server,' +
      'swift deploy,deploy api-server,tabbyapi,text-generation-webui,trtllm-build,trtllm-serve serve,trtllm-bench latency,' +
      'trtllm-bench build,mistralrs tune,swift rollout,server start,aphrodite run,exo,speculative,launch,run-batch,' +
      'docker-model configure,text-generation-benchmark,benchmarker,tokens/s,tok/s,t/s,tps,context,max-context,latency,ttft,' +
      'concurrency,users',
    [
      ...([
        'accelerate',
        'llama.cpp',
        'ollama',
        'vllm',
        'sglang',
        'tgi',
        'trtllm',
        'lmstudio',
      ] as const),
      ...(['llama-factory', 'swift', 'tabbyapi', 'webui', 'aphrodite', 'speech'] as const),
    ],
  ],
  // The experts of all layers are on the processor: kvcache-ai/ktransformers archive, optimize_rules.
  [
    ['fit --cpu-experts all', 'fit'],
    'local-chat,ktransformers,ktransformers server',
    ['ktransformers'],
  ],
  [['fit --list-gpus'], 'gpu,gpus,list-gpus,hardware', ['speech']],
  [
    ['quick-test'],
    'test,smoke-test,sanity-check,quick test,forward,self-test,selftest,run-test',
    ['speech'],
  ],
  [['quick-test --save logits.safetensors'], 'logits,dump-logits,hidden-states', ['speech']],
  [['train-plan'], 'chinchilla,scaling-laws,scaling-law,isoflops', ['speech']],
  [['quick-test --overfit'], 'overfit,train-test,test-training', ['speech']],
  [
    // A model that is not here has no speed on this machine.
    ['?here quick-test --only timing', 'fit', 'quick-test --only timing'],
    'bench,llamafile-bench,benchmark,bench latency,bench throughput,bench-one-batch,batched-bench,bench-one-batch-server,' +
      'bench-offline-throughput,benchmark-throughput,benchmark-latency,benchmark-generation-mamba-simple',
    ['llama.cpp', 'vllm', 'sglang', 'mlx', 'mamba'],
  ],
  [['?weights inspect --stats', 'validate'], 'check', ['speech']],
  [['validate'], 'lint,validate-config,valid,syntax', ['speech']],
  [['compare'], 'diff,vs,cmp,versus,contrast,side-by-side', ['speech']],
  [['compare $1 $2'], 'distill', ['speech']],
  [
    ['?size plan --max-params $1', 'plan'],
    'search,design,optimize,suggest,recommend,propose,nas,generate-config,make-config',
    ['speech'],
  ],
  [['fit --for lora'], 'unsloth-cli', ['unsloth']],
  [['init $1 --save $2'], 'tune cp', ['torchtune']],
  [['init $1 --save -'], 'tune cat', ['torchtune']],
  [
    ['?size plan --max-params $1', 'init --save $1.yaml', 'init'],
    'new,create',
    ['ollama', 'speech'],
  ],
  [['init'], 'template,scaffold', ['speech']],
  [['?here inspect', 'list'], 'ls', ['ollama', 'speech']],
  [
    ['list'],
    'models,presets,families,architectures,model-types,zoo,models ls,model ls,models list,model list',
    ['ollama', 'lmstudio', 'torchtune'],
  ],
  [
    [
      'export $1 --save $2.onnx',
      'export $model --save $1.onnx',
      'export $model --save $1/model.onnx',
      'export',
    ],
    'onnx,to-onnx,export onnx,exporters onnx,torch2onnx,export-onnx,torch.onnx.export',
    ['optimum', 'speech'],
  ],
  [['inspect --tensors'], 'tensors,keys,state-dict', ['speech']],
  [['inspect --hash'], 'gguf-hash,hash,checksum,sha256,sha256sum,md5sum', ['llama.cpp', 'speech']],
  [['inspect --stats'], 'norms,nan,check-nan,tensor-stats,histogram', ['speech']],
  [
    ['inspect'],
    'cat,open,view,head,examine,look,peek,metadata,header,dump,gguf-dump,gguf,gguf info,safetensors,safetensors-info,safetensors info',
    ['llama.cpp', 'speech'],
  ],
  [['compare-srte'], 'srte', ['speech']],
  [
    ['doctor'],
    'devices,engines,env,ps,lms status,nvidia-smi,rocm-smi,collect-env,system-info,ds-report,check-env,lms runtime,' +
      'nvtop,nvitop,gpustat,setup,diagnose,diagnostics,health,healthcheck,status,system,sysinfo,check-install',
    ['ollama', 'llama-factory', 'transformers', 'accelerate', 'lmstudio', 'speech'],
  ],
  [['--help'], 'examples,commands,usage,man', ['speech']],
  [['--version'], 'version', ['llama-factory', 'lmstudio', 'speech']],
];

/** Words for a download, and for changes to a store of models. */
export const DOWNLOADS: ReadonlySet<string> = new Set(['pull', 'download', 'get', 'fetch']);

/** Commands without a counterpart here, and what there is. The words are those of `VERBS`. */
export const WITHOUT_COMMAND: readonly (readonly [words: string, advice: string])[] = [
  [
    'imatrix',
    'minimind computes no importance matrix: llama-imatrix makes such a file from a text; write it as in minimind convert-checkpoint MODEL OUT.gguf --dtype q4_k_m --imatrix FILE',
  ],
  [
    'gguf-new-metadata,gguf-set-metadata,gguf-editor-gui',
    'minimind changes no metadata of a file; minimind convert-checkpoint MODEL OUT.gguf writes a new one',
  ],
  [
    'mergekit-yaml,mergekit-moe,mergekit-multi,mergekit-evolve,mergekit-mega,mergekit-extract-lora,mergekit-tokensurgeon,mergekit-layershuffle',
    'minimind does not merge or subtract models; minimind compare shows several side by side',
  ],
  [
    'convert-lora-to-gguf',
    'minimind writes no adapters; write a model with its adapter as in minimind convert-checkpoint MODEL OUT.gguf --merge-lora DIR',
  ],
  [
    'export openvino,export neuron,export executorch,export tflite',
    'minimind writes ONNX, safetensors, PyTorch and GGUF, and not OpenVINO, Neuron, ExecuTorch or TFLite: write it as in minimind export MODEL --save model.onnx',
  ],
  [
    'encode,decode,detokenize',
    'minimind shows no single texts as tokens: it counts those of a file, as in minimind data FILE --tokenizer tokenizer.json',
  ],
  [
    'helm,kubectl,oc,kustomize,docker-compose,docker compose,nomad',
    'minimind reads no manifests and charts: write the command of the container after minimind, as in minimind vllm serve MODEL',
  ],
  [
    'sbatch,qsub,bsub',
    'minimind reads no scripts of a scheduler: write the line that the script starts after minimind, as in minimind torchrun --nproc_per_node 8 train.py',
  ],
  [
    'prune,shrink,slim',
    'no command removes weights of a trained model; plan shows smaller shapes, and compare-srte the layouts of an SRTE',
  ],
  [
    'update,install,self-update,uninstall',
    'minimind installs nothing: npm install -g minimind@latest brings the newest version',
  ],
  [
    'fmt,format,prettify,prettier,tidy,fix,autofix',
    'minimind changes no files of others: write it as in minimind validate FILE, which reports every mistake with its fix',
  ],
  [
    'rename,remap',
    'minimind renames the tensors of old layouts by itself, as in minimind convert-checkpoint IN OUT; others keep their names',
  ],
  [
    'onnxruntime,openvino',
    'minimind reads ONNX graphs and does not change them: write it as in minimind export MODEL --save model.onnx',
  ],
];

/** Commands that run benchmarks, which have no counterpart here: lists of tasks. */
export const BENCHMARKS: ReadonlySet<string> = new Set([
  ...['lmms-eval', 'opencompass', 'evalscope', 'vlmeval', 'mteb', 'evalplus', 'alpaca-eval'],
  ...['lighteval', 'trtllm-eval', 'swift eval', 'mlx-lm evaluate', 'lm-eval ls'],
]);
export const OF_A_STORE: ReadonlySet<string> = new Set([
  ...['push', 'rm', 'remove', 'delete', 'cp', 'stop', 'unload', 'signin', 'login', 'upload'],
]);

/** Commands for accounts and stores that only programs have. */
export const OF_A_PROGRAM_STORE: ReadonlySet<string> = new Set([
  ...['auth', 'cache', 'whoami', 'logout', 'scan-cache', 'delete-cache', 'repo', 'repos', 'import'],
  ...['signout', 'manage'],
]);
