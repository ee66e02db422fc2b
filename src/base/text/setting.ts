/**
 * Settings and commands in texts. Code that refuses or proposes something names the setting; how it is written depends
 * on where the text is read. The command line spells `maxPositions` as `--max-positions`. Without a spelling, as in
 * the library, it is `maxPositions`.
 */

/** All settings that texts name, and what each is. */
export const SETTINGS = {
  acceptance: 'probability that a drafted token is accepted',
  accumulation: 'steps whose gradients are added before an update',
  against: 'a second model to compare with',
  accuracy: 'whether fit shows how near it is to published runs',
  align: 'divisor of the feed-forward width',
  answerEnd: 'text after an answer',
  answerStart: 'text before an answer',
  attention: 'kernel of attention',
  baseDtype: 'type of the frozen weights under adapters',
  baseline: 'model that the others are compared with',
  batch: 'sequences at a time',
  batching: 'how prompts and answers share steps',
  bos: 'token before a text',
  cacheDtype: 'type of keys, values and states',
  calibrate: 'results of a benchmark on the hardware',
  causal: 'whether only the scores that the mask lets through count',
  chat: 'whether a prompt is a chat',
  checkpoint: 'weights of a model',
  check: 'whether the result is checked again',
  chunk: 'tokens of a chunk of a long text',
  chunkedPrefill: 'whether prompts are read in chunks',
  claim: 'volume with the plan and its files',
  compute: 'type of the computation',
  config: 'config of a model',
  container: 'format of a written checkpoint',
  context: 'tokens of a sequence',
  contextParallel: 'GPUs that each have a part of a sequence',
  convention: 'rule for the memory of mixed precision',
  cpu: 'processor of the system memory',
  cpuExperts: 'first layers whose experts are in system memory',
  dataParallelAttention: 'groups of GPUs with a copy of the attention',
  dataTokens: 'tokens of the data',
  data: 'files or values to train on',
  decayType: 'curve of that fall',
  decay: 'steps in which the learning rate falls',
  depth: 'layers of a model',
  dequantize: 'whether packed weights are written as floats',
  details: 'whether the answer is in its long form',
  device: 'device that computes',
  dialect: 'naming scheme of an old checkpoint',
  draft: 'model that drafts tokens',
  draftTokens: 'tokens that are drafted for a step',
  dropout: 'whether dropout is counted, or its rate',
  dryRun: 'whether only the plan is shown',
  dtype: 'type of the weights',
  eager: 'whether each kernel is launched by itself',
  emit: 'program whose command or config is written',
  engine: 'engine that computes',
  epochs: 'passes over the data',
  expertParallel: 'GPUs that each have some of the experts',
  expertTensorParallel: 'GPUs that share each expert',
  explain: 'whether formulas are shown',
  extend: 'values of additional rows',
  family: 'family of a model',
  finish: 'whether the work in parts is completed',
  for: 'the question about a model: serving or a training',
  force: 'whether existing files are replaced',
  format: 'format of the answer',
  full: 'whether the model itself runs, not a smaller one',
  globalBatchTokens: 'tokens of an update on all GPUs',
  globalHeads: 'heads with full attention',
  gpuLayers: 'layers on the GPUs',
  gpuMemoryUtilization: 'share of the memory for serving',
  gpus: 'number of GPUs',
  gpu: 'name of a GPU',
  gradients: 'file with gradients',
  groups: 'weights without weight decay',
  group: 'values that share a scale',
  groupSize: 'values per scale',
  hardware: 'file that describes hardware',
  headDim: 'width of a head',
  heads: 'attention heads',
  ids: 'token ids instead of a text',
  image: 'container image of a job',
  json: 'whether the answer is JSON',
  keyHeads: 'heads of keys and values',
  key: 'key of the text in JSON lines',
  kind: 'kind of a projector',
  kv: 'file with keys and values',
  launch: 'scheduler of a job',
  layout: 'layout of the SRTE',
  learningRate: 'largest learning rate',
  line: 'line of a file',
  listGpus: 'whether the known GPUs are listed',
  logits: 'logits of a distribution',
  lossScale: 'factor of the loss in fp16',
  loss: 'kernel of the loss',
  maxCut: 'limit of the share of tokens that are cut off',
  maxDuplicates: 'limit of the share of duplicate samples',
  maxError: 'limit of the relative error',
  maxFlops: 'limit of the FLOPs',
  maxInvalid: 'limit of the share of invalid lines',
  maxKvCache: 'limit of the cache',
  maxMemory: 'limit of the memory',
  maxNearDuplicates: 'limit of the share of near duplicates',
  maxPadding: 'limit of the share of padding',
  maxParameters: 'limit of the parameters',
  maxPositions: 'rows of a table of positions',
  maxTrainingMemory: 'limit of the memory of a training step',
  mergeLora: 'adapter that is merged into the weights',
  imatrix: 'importance matrix of the weights',
  merge: 'values of a shared table',
  mfu: 'measured share of the peak FLOP/s',
  microBatch: 'sequences of a GPU at a time',
  minLearningRate: 'learning rate at the end',
  minP: 'least share of the likeliest token’s probability',
  minParameters: 'least number of parameters',
  minTokensPerSecond: 'tokens per second that each user needs',
  noConfig: 'whether configs are ignored',
  offline: 'whether no request is sent',
  only: 'names of the checks to run',
  offload: 'part of the model or of its training in system memory',
  optimizer: 'optimizer of a training',
  optimizerInBackward: 'whether updates are part of the backward pass',
  outputMix: 'output tokens of requests in equal shares',
  outputTokens: 'generated tokens of a request',
  output: 'file of the answer',
  overfit: 'whether the model is trained on one batch',
  overlap: 'share of a window that the next one repeats',
  p95Seconds: 'time limit of 95% of the requests',
  parts: 'number of parts of a plan',
  part: 'part of a plan to work on',
  phase: 'phase of a part',
  pipelineParallel: 'GPUs that hold consecutive layers',
  plan: 'file of a plan in parts',
  precision: 'number format of a training',
  prefillGpus: 'GPUs that only read prompts',
  prefillSeconds: 'measured time of a prompt',
  prefixCache: 'share of a prompt in a prefix cache',
  pricePerHour: 'price of a GPU for an hour',
  probabilities: 'probabilities of a distribution',
  profile: 'file with measurements of this machine',
  promptTokens: 'tokens of a prompt',
  prove: 'whether input and output run on the same tokens',
  quantize: 'bits of quantized weights',
  random: 'whether weights are random',
  rank: 'rank of a low-rank pair',
  requestsPerSecond: 'load of a server',
  scaleDtype: 'type of the scales',
  targets: 'products with adapters',
  ramBytes: 'system memory of the machine',
  ramSpeed: 'speed of the system memory',
  ratio: 'hidden width of a projector, as a multiple',
  recompute: 'activations that are computed again',
  recordKind: 'kind of the records of a file',
  remeasure: 'whether this machine is measured again',
  repeats: 'timed runs',
  reserveBytes: 'memory of a GPU that other programs take',
  resume: 'whether an interrupted run continues',
  row: 'row of a table',
  runtime: 'program that serves a model',
  saturate: 'whether overflowing values are clamped',
  save: 'file of a result',
  scan: 'whether values are searched for NaN',
  schedule: 'schedule of the learning rate',
  seconds: 'time of a run',
  seed: 'seed of random numbers',
  sequenceParallel: 'whether GPUs share the activations of a sequence',
  set: 'value of a key in a config',
  shardSize: 'largest size of a file in a folder',
  show: 'number of samples to show',
  sort: 'order of a table',
  srte: 'whether the SRTE tables are surveyed',
  stateDict: 'name of the state dict in a file',
  status: 'whether the state of the work in parts is shown',
  steps: 'steps of a training',
  stop: 'text that ends an answer',
  strict: 'whether warnings are errors',
  stride: 'tokens from a window to the next',
  student: 'width of the keys of a student',
  submit: 'whether a job is handed to its scheduler',
  system: 'system message of a chat',
  targetLoss: 'loss that a training has to reach',
  target: 'config of the output',
  tasks: 'tasks of a job',
  teacher: 'sizes or keys of a teacher',
  temperature: 'divisor of the logits',
  tensorParallel: 'GPUs that share each layer',
  tensorSplit: 'proportions in which GPUs share the layers',
  tensors: 'whether tensors are listed',
  text: 'text instead of a file',
  thisMachine: 'whether this machine is measured',
  threads: 'threads of the computation',
  tie: 'values of a tied embedding and head',
  tokenSeconds: 'measured time of a token',
  tokenizer: 'tokenizer of the texts',
  tokens: 'tokens of a training',
  topK: 'number of likeliest tokens to sample from',
  topP: 'share of the probability to sample from',
  top: 'number of rows',
  trainingConfig: 'config of a training of another program',
  trainTokens: 'tokens of a training',
  trained: 'positions that a model was trained with',
  users: 'users at the same time',
  values: 'whether values are compared',
  vocabulary: 'number of tokens that a tokenizer knows',
  wait: 'whether to wait for parts that run',
  warmup: 'steps in which the learning rate rises',
  weightDecay: 'weight decay of AdamW',
  weights: 'type of weights at load',
  width: 'width of a model',
  zero: 'stage of ZeRO',
  zip: 'whether lists of values are taken in pairs',
} as const satisfies Record<string, string>;

export type SettingName = keyof typeof SETTINGS;

/** All commands that texts name, and what each does. */
export const COMMANDS = {
  attention: 'compares methods of attention',
  compareSrte: 'compares layouts of the SRTE',
  compare: 'compares models',
  completion: 'completes lines in a shell',
  convertCheckpoint: 'converts a checkpoint',
  data: 'checks training data',
  diff: 'compares two configs or checkpoints',
  doctor: 'shows the engines',
  draw: 'draws a model',
  evaluate: 'scores texts',
  explore: 'opens a page that computes in a browser',
  export: 'writes a graph',
  fit: 'checks whether a model fits on hardware',
  generate: 'generates text',
  init: 'writes a config',
  inspect: 'lists the tensors of a checkpoint',
  kvProjectorConvert: 'converts a projector',
  kvProjectorInit: 'creates a projector',
  kvProjectorParams: 'counts a projector',
  kvProjectorProject: 'applies a projector',
  kvProjectorVerify: 'trains both kinds of projectors',
  list: 'lists presets',
  mcp: 'answers agents',
  modules: 'runs building blocks',
  plan: 'finds the best shape of a model',
  profile: 'counts a model',
  quickTest: 'runs and checks a model',
  rope: 'compares rotations',
  schema: 'writes the schema of a config',
  trainPlan: 'plans a training',
  validate: 'checks configs',
  verify: 'checks a checkpoint against its config',
} as const satisfies Record<string, string>;

export type CommandName = keyof typeof COMMANDS;

export const isCommandName = (text: string): text is CommandName => Object.hasOwn(COMMANDS, text);

/** A way to write settings and commands. */
export interface Spelling {
  /** Words of a setting with its value, if it has one. The command is by default the one that runs. */
  readonly setting: (
    name: SettingName,
    value: string | undefined,
    command?: CommandName,
  ) => readonly string[];
  /** Words that a line of this command begins with. */
  readonly command: (name: CommandName) => readonly string[];
  /** Words as one text, quoted as needed. */
  readonly line: (words: readonly string[]) => string;
  /** The words of a line without some settings, and without those of the output. */
  readonly without: (words: readonly string[], names: readonly SettingName[]) => readonly string[];
}

/** Names as they are: `maxPositions`, `maxPositions: 32k`. */
export const PLAIN_SPELLING: Spelling = {
  setting: (name, value) => [value === undefined ? name : `${name}: ${value}`],
  command: (name) => [name],
  line: (words) => words.join(' '),
  without: (words, names) =>
    words.filter((word) => !names.some((name) => word === name || word.startsWith(`${name}: `))),
};

let spelling = PLAIN_SPELLING;

/** Writes settings and commands of all later texts in a way. Texts must be made after it, not when a module is loaded. */
export function useSpelling(chosen: Spelling): void {
  spelling = chosen;
}

type Value = string | number | bigint | undefined;

/** `maxPositions`, or `maxPositions: 32k`, as the chosen spelling writes it. */
export const setting = (name: SettingName, value?: Value): string =>
  spelling.line(settingWords(name, value));

/** Words of a setting in a command line. */
export const settingWords = (name: SettingName, value?: Value): readonly string[] =>
  spelling.setting(name, value === undefined ? undefined : String(value));

/** Settings of a command; true for one that is switched on, undefined for one that is not given. */
export type SettingValues = { readonly [Name in SettingName]?: Value | true };

/** A command in a text, with the words after its name, and its settings. */
export const commandText = (
  name: CommandName,
  words: readonly string[] = [],
  values: SettingValues = {},
): string => spelling.line([...spelling.command(name), ...words, ...valueWords(values, name)]);

/** Settings in a text, one after the other. */
export const settingsLine = (values: SettingValues): string => spelling.line(valueWords(values));

const valueWords = (values: SettingValues, command?: CommandName): string[] =>
  (Object.keys(values) as SettingName[]).flatMap((name) => {
    const value = values[name];
    if (value === undefined) return [];
    return spelling.setting(name, value === true ? undefined : String(value), command);
  });

/** The words after the command's name, without some settings and without those of the output. */
export const withoutSettings = (
  words: readonly string[],
  names: readonly SettingName[] = [],
): readonly string[] => spelling.without(words, names);

/**
 * A command line to paste, quoted as needed. Undefined if it has the model of standard input: the pasted command would
 * wait for another one.
 * @param words Words after the command's name.
 */
export const nextCommand = (
  name: CommandName,
  words: readonly string[],
  values?: SettingValues,
): NextLine | undefined =>
  words.includes('-') || words.includes('<stdin>')
    ? undefined
    : (commandText(name, words, values) as NextLine);

/** A whole command line, made of its words by `nextCommand`. */
export type NextLine = string & { readonly isNextLine: true };
