/** Programs of others at the beginning of a line: those that start another one, and those with commands of their own. */
import { ownValue } from '../../base/values.js';

/** A program that starts another one. */
export interface Runner {
  /** Kind of its child: a program, a script of Python, processes of a script, or a container. */
  readonly starts?: 'program' | 'python' | 'processes' | 'container';
  /** Commands of it of which one comes before what it starts: `uv run`. */
  readonly words?: readonly string[];
  /** Its flags whose value is the next word. */
  readonly valued?: RegExp;
  /** Its flags that count processes or GPUs: all of them, those of a machine, and machines. */
  readonly counted?: RegExp;
  readonly perMachine?: RegExp;
  readonly machines?: RegExp;
  /** Its own arguments, before what it starts: `timeout 90`. */
  readonly arguments?: number;
  /** Whether a line of it can run a script of our projects: `bash run_profile.sh`. */
  readonly runsScripts?: boolean;
}

const PLAIN: Runner = { starts: 'program' };
/** Each process has one GPU: open-mpi/ompi docs, "mpirun". */
const MPI: Runner = {
  ...PLAIN,
  valued:
    /^(?:-(?:n|np|c|N|H|x|hostfile|machinefile|bind-to|map-by|ppn)|--(?:np|host|hostfile|bind-to|map-by))$/,
  counted: /^(?:-n|-np|--np|-c)$/,
};
const SHELL: Runner = { runsScripts: true };
const PYTHON: Runner = { starts: 'python', runsScripts: true };
const CONTAINERS: Runner = { starts: 'container', words: ['run', 'exec'] };

/**
 * Launchers of training scripts are torchrun, accelerate 16cb6eb commands/launch.py, DeepSpeed edaa722
 * deepspeed/launcher/runner.py, torchtune bd2a0fc torchtune/_cli/run.py, and mosaicml/composer composer/cli/launcher.py.
 */
const RUNNERS: Readonly<Record<string, Runner>> = {
  ...{ nohup: PLAIN, time: PLAIN, exec: PLAIN, env: PLAIN, setsid: PLAIN, caffeinate: PLAIN },
  ...{ mpirun: MPI, mpiexec: MPI },
  timeout: { ...PLAIN, valued: /^-[ks]$/, arguments: 1 },
  nice: { ...PLAIN, valued: /^-n$/ },
  // Profilers of NVIDIA: docs, "Nsight Systems", "Nsight Compute".
  nsys: { ...PLAIN, words: ['profile'], valued: /^-[octsfw]$/ },
  ncu: { ...PLAIN, valued: /^-[okcs]$/ },
  numactl: { ...PLAIN, valued: /^-[NmCip]$/ },
  taskset: { ...PLAIN, arguments: 1 },
  // SchedMD/slurm doc/man/man1/srun.1.
  srun: {
    ...PLAIN,
    valued:
      /^(?:-[nNGptJwcAqox]|--(?:ntasks|nodes|gpus|partition|time|job-name|nodelist|account|gres|qos|mem|output|exclude|(?:ntasks|gpus)-per-node|cpus-per-task))$/,
    counted: /^(?:-n|--ntasks|-G|--gpus)$/,
    perMachine: /^--(?:gres|gpus-per-node|ntasks-per-node)$/,
    machines: /^(?:-N|--nodes)$/,
  },
  conda: { ...PLAIN, words: ['run'], valued: /^(?:-[np]|--name|--prefix)$/ },
  ...{ npx: PLAIN, bunx: PLAIN, pipx: PLAIN, uvx: PLAIN, $: PLAIN, '%': PLAIN, '>': PLAIN },
  please: PLAIN,
  sudo: { ...PLAIN, runsScripts: true },
  uv: { ...PLAIN, words: ['run'], runsScripts: true },
  poetry: { ...PLAIN, words: ['run'], runsScripts: true },
  pdm: { ...PLAIN, words: ['run'] },
  npm: { ...PLAIN, words: ['exec'] },
  pnpm: { ...PLAIN, words: ['dlx', 'exec'] },
  ...{ python: PYTHON, py: PYTHON, ipython: PYTHON },
  ...{ bash: SHELL, sh: SHELL, zsh: SHELL, source: SHELL, pytest: SHELL },
  torchrun: { starts: 'processes', runsScripts: true },
  accelerate: { starts: 'processes', words: ['launch'], runsScripts: true },
  deepspeed: { starts: 'processes', runsScripts: true },
  composer: { starts: 'processes', runsScripts: true },
  tune: { starts: 'processes', words: ['run'] },
  ...{ docker: CONTAINERS, podman: CONTAINERS, nerdctl: CONTAINERS },
};

/** The row of a program that starts others, by its name in any version: `python3.12`. */
export const runnerNamed = (word: string): Runner | undefined =>
  ownValue(RUNNERS, word.toLowerCase().replace(/^python[\d.]+$/, 'python'));

/** Programs whose commands are written after their names: `ollama run`, `vllm serve`. */
export const PROGRAMS: ReadonlySet<string> = new Set([
  ...['ollama', 'vllm', 'sglang', 'lms', 'axolotl', 'accelerate', 'llamafactory-cli', 'mlx-lm'],
  ...['deepspeed', 'hf', 'huggingface-cli', 'optimum-cli', 'tune', 'lm-eval', 'litgpt', 'trl'],
  ...['llama', 'lmdeploy', 'genai-perf', 'transformers', 'transformers-cli', 'swift', 'megatron'],
  ...['mistralrs-server', 'text-generation-server', 'kt', 'gpustack', 'openllm', 'ramalama'],
  ...[
    'local-ai',
    'docker-model',
    'mlc-llm',
    'xinference',
    'autotrain',
    'exllamav2',
    'exllamav3',
    'gptqmodel',
  ],
  ...['safetensors-cli', 'ktransformers', 'xtuner'],
  ...['mistralrs', 'aphrodite', 'exo', 'jan', 'cortex', 'trtllm-bench', 'lighteval', 'unsloth'],
]);

/** Programs whose own flags can come before their commands: `trtllm-bench --model M throughput`. */
export const LATE_COMMANDS: Readonly<Record<string, readonly string[]>> = {
  'trtllm-bench': ['throughput', 'latency', 'build'],
  'mistralrs-server': ['plain', 'gguf', 'run', 'vision-plain', 'x-lora', 'lora'],
};

/** Files of programs: `./build/bin/llama-server`, `koboldcpp.exe`, `koboldcpp-linux-x64`. */
const PROGRAM_FILE =
  /^(?:.*[/\\])?(llama-[\w-]+|koboldcpp|llamafile|mistralrs|mistralrs-server|ollama|lms|vllm)(?:-(?:linux|mac|win|nocuda|rocm|oldpc)[\w-]*)?(?:\.exe)?$/i;

/** Programs of llama.cpp by their older names, where it was built: ggml-org/llama.cpp pull 7809. */
const OLDER_FILE =
  /^(?:\.|.*\bllama\.cpp|(?:.*\/)?build\/bin)\/(main|server|quantize|perplexity|imatrix|export-lora|gguf-split)$/;

/** The name of a program without its folder, system and ending; undefined for other words. */
export function programInFile(word: string): string | undefined {
  const older = OLDER_FILE.exec(word)?.[1];
  if (older !== undefined) return `llama-${older === 'main' ? 'cli' : older}`;
  return PROGRAM_FILE.exec(word)?.[1]?.toLowerCase();
}

/** Images of containers that start a program; others have the words of one after their names. */
const IMAGES: readonly (readonly [image: RegExp, words: readonly string[], alone?: string])[] = [
  [/\bvllm-openai\b/, ['vllm', 'serve']],
  [/\btext-generation-inference\b/, ['text-generation-launcher']],
  [/\bollama\/ollama\b/, ['ollama'], 'serve'],
  [/\bllama\.cpp:(?:server|full)/, ['llama-server']],
];

/** The words of the program that an image starts with further words. */
export function wordsOfImage(image: string, rest: readonly string[]): readonly string[] {
  const [, words = [], alone] = IMAGES.find(([pattern]) => pattern.test(image)) ?? [];
  return [...words, ...(alone !== undefined && rest.length === 0 ? [alone] : rest)];
}

/** A flag of a program that has another meaning here. */
interface ProgramFlag {
  /** A name with the meaning that it has there; `program.name` is one of the table that no other program has. */
  readonly name: string;
  /** Flag that says the same with a value. */
  readonly unless?: string;
  /** Flag without which it has the usual meaning. */
  readonly when?: string;
  /** Flag with which it has the usual meaning. */
  readonly without?: RegExp;
  /** Values with that meaning. */
  readonly only?: RegExp;
}

/** Whole models side by side in SGLang, unless only the attention has replicas. */
const REPLICAS = Object.fromEntries(
  ['--dp', '--dp-size', '--data-parallel-size'].map((flag) => [
    flag,
    { name: '--sglang.dp', without: /^--enable[-_]dp[-_]attention$/ },
  ]),
);

/** Tokens that llama.cpp computes at once, which are sequences in other programs: common/arg.cpp. */
const TOKENS_OF_BATCH = { '--batch-size': { name: '--n-batch' } };

/** A file with flags of the program, and not the config of a model: vllm-project/vllm docs, "CLI Reference". */
const SETTINGS_FILE = { '--config': { name: '--server.config' } };

export const PROGRAM_FLAGS: Readonly<Record<string, Readonly<Record<string, ProgramFlag>>>> = {
  'mlx-lm': {
    // The layers that train, not those that the model has.
    '--num-layers': { name: '--mlx.num-layers' },
    '-q': { name: '--int4', unless: '--q-bits' },
    '-g': { name: '--generation-tokens' },
    '-b': { name: '--batch' },
    // A training and not a test of it.
    '--train': { name: '--mlx.train' },
    // The runs of mlx_lm/benchmark.py.
    '-n': { name: '--mlx.trials', when: '-g' },
    // ml-explore/mlx-lm mlx_lm/generate.py.
    '-m': { name: '--max-tokens', only: /^\d+$/ },
  },
  // llama-bench: its repetitions, which are a rank elsewhere.
  bench: { '-r': { name: '--llama-bench.repeat' } },
  ...{ server: TOKENS_OF_BATCH, perplexity: TOKENS_OF_BATCH },
  // Threads, and never a temperature: common/arg.cpp.
  cli: { ...TOKENS_OF_BATCH, '--color': { name: '--llama.color' }, '-t': { name: '--threads' } },
  imatrix: TOKENS_OF_BATCH,
  lmdeploy: {
    '--model-format': { name: '--quantization', only: /^(?:awq|gptq|fp8|mxfp4)$/ },
    '--server-port': { name: '--port' },
    '--model-name': { name: '--alias' },
  },
  ...{ 'trtllm-serve': SETTINGS_FILE },
  // What it does with the parts of a file, and no choice of a reduction.
  'gguf-split': { '--merge': { name: '--gguf-split.merge' } },
  // The share of a model on the GPU.
  lms: { '--gpu': { name: '--lms.gpu', only: /^(?:max|auto|off|[01](?:\.\d+)?)$/ } },
  // Kinds of models: lm_eval/models.
  'lm-eval': { '--model': { name: '--lm-eval.model', when: '--model_args' } },
  // Names of classes, in capitals.
  litgpt: { '--data': { name: '--litgpt.data', only: /^[A-Z]\w*$/ } },
  ...{
    vllm: {
      ...SETTINGS_FILE,
      '-q': { name: '--quantization' },
      ...{ '-i': { name: '--vllm.batch-file' }, '-o': { name: '--vllm.batch-file' } },
    },
    aphrodite: { '-q': { name: '--quantization' } },
  },
  // The tokens of all sequences together: sgl-project/sglang 004813e docs/advanced_features/server_arguments.md.
  sglang: {
    ...SETTINGS_FILE,
    '--max-total-tokens': { name: '--sglang.max-total-tokens' },
    ...REPLICAS,
  },
  'launch-server': REPLICAS,
  'text-generation-benchmark': { '--tokenizer-name': { name: '--model' } },
  'trtllm-bench': { ...SETTINGS_FILE, '--model_path': { name: '--trtllm.model-path' } },
  'docker-model': { '-d': { name: '--detach' } },
  mistralrs: { '-p': { name: '--port' }, '-f': { name: '--model' } },
  swift: {
    '--merge_lora': { name: '--swift.merge-lora' },
    '--merge-lora': { name: '--swift.merge-lora' },
  },
  // The folder of the work, and that of the model: turboderp-org/exllamav2 da07fac doc/convert.md.
  convert: { '-o': { name: '--exllama.work-dir', when: '-cf' }, '-cf': { name: '--outfile' } },
};

/** A flag as the user wrote it, for one of `PROGRAM_FLAGS`: `--mlx.num-layers` is `--num-layers`. */
export const writtenFlag = (word: string): string =>
  word.replace(
    /^--(?:accelerate|exllama|gguf-split|litgpt|llama|llama-bench|lms|mlx|trtllm|lm-eval|server|sglang|swift|vllm)\./,
    '--',
  );
