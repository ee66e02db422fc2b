/** Lines that several words of another tool mean together: adapters, copies of a model, slots of a server. */
import { givenFlag, TRUE, valueGiven } from '../given-flags.js';
import type { MeantLine } from '../line-mistake.js';
import type { GivenFlag, TypedLine } from '../typed-line.js';

/** Switches of adapters, and of weights in 4 bits, in other tools. */
export const OF_LORA =
  /(?:^| )--(?:(?:use[-_]|do[-_]|with[-_])?(?:q?lora|peft)(?:[-_](?:enabled?|training|tuning))?|fine-?tune|sft|(?:for|adapter|(?:finetuning|train|tuner|fine[-_]tune)[-_]type)[ =]q?lora)(?=$|[ =](?!(?:false|no|off|0)(?: |$)))/i;
const IN_4_BITS =
  /(?:^| )--(?:(?:load[-_]in[-_])?4[-_]?bit|bits[ =]4|quant(?:ization)?[ =](?:int4|nf4|4[-_]?bit)|quant(?:ization)?[-_]bits?[ =]4|quantize[ =]bnb\.[nf][fp]4(?:-dq)?)(?= |=|$)/i;

/** Numbers of adapters in other tools. */
export const OF_ADAPTERS =
  /(?:^| )--(?:lora[-_](?:r|rank|dim|alpha|dropout|target|target[-_]modules)(?= |=|$)|r(?:ank)?[ =]\d+ (?:.* )?--alpha[ =]\d)/i;

/** The line that the words mean together; undefined where each has a meaning of its own. */
export const wholeLine = (typed: TypedLine, given: GivenFlag): MeantLine | undefined =>
  asQlora(typed) ??
  asFitOfAdapters(typed) ??
  asReplicas(typed) ??
  asWholeReplicas(typed, given) ??
  asAllMachines(typed) ??
  asEndOfDecay(typed, given) ??
  asPreferences(typed, given) ??
  asOffloadOfShards(typed) ??
  asSampleLength(typed) ??
  asBenchTest(typed) ??
  asAnswers(typed) ??
  asSlots(typed) ??
  withCheckpoint(typed, given);

/** Files with weights. */
const WEIGHTS = /\.(?:safetensors|gguf|pt|pth|bin|ckpt)$/i;

/** The line with a checkpoint for a config that is a flag in other programs: `--config C model.pth`. */
function withCheckpoint(typed: TypedLine, { at, name, value }: GivenFlag): MeantLine | undefined {
  const { words, command } = typed;
  const isConfig = /^(?:model-)?config(?:-(?:file|path))?$/.test(name.replaceAll('_', '-'));
  if (!isConfig || !Object.hasOwn(command.flags, 'checkpoint')) return undefined;
  const config = value ?? words[at + 1];
  const end = at + (value === undefined ? 2 : 1);
  const weights = words.findIndex(
    (word, index) =>
      (index < at || index >= end) && WEIGHTS.test(word) && !words[index - 1]?.startsWith('-'),
  );
  if (config === undefined || weights < 0 || /(?:^| )--checkpoint\b/.test(words.join(' '))) {
    return undefined;
  }
  const kept = words.filter((_, index) => index !== weights && (index < at || index >= end));
  return {
    ...typed.lineOf([config, ...kept, '--checkpoint', words[weights] ?? '']),
    lead: 'did you mean --checkpoint?',
  };
}

/** The line for adapters on weights in 4 bits, which other tools write as two switches. */
function asQlora(typed: TypedLine): MeantLine | undefined {
  const line = typed.words.join(' ');
  const isBoth = OF_LORA.test(line) && IN_4_BITS.test(line);
  if (!isBoth || !Object.hasOwn(typed.command.flags, 'for')) return undefined;
  const kept = typed.words.filter((word, at) => {
    const before = typed.words[at - 1] ?? '';
    const isValue =
      (TRUE.test(word) && IN_4_BITS.test(`${before} `)) ||
      (/^(?:q?lora|4|int4|nf4|4-?bit|bnb\..+)$/i.test(word) &&
        [OF_LORA, IN_4_BITS].some((each) => each.test(`${before} ${word}`)));
    const isPurpose = word === '--for' || before === '--for';
    const next = typed.words[at + 1] ?? '';
    const isName =
      word.startsWith('-') &&
      [OF_LORA, IN_4_BITS].some((each) => each.test(word) || each.test(`${word} ${next}`));
    return !isValue && !isPurpose && !isName;
  });
  return { ...typed.lineOf([...kept, '--for', 'qlora']), lead: 'did you mean --for?' };
}

/**
 * The line of `fit` for a plan with adapters or weights in 4 bits: the memory of a plan is that of all weights in
 * training.
 */
function asFitOfAdapters(typed: TypedLine): MeantLine | undefined {
  if (typed.command.id !== 'train-plan') return undefined;
  const line = typed.words.join(' ');
  const isSwitched = OF_LORA.test(line);
  if (!isSwitched && !IN_4_BITS.test(line) && !OF_ADAPTERS.test(line)) return undefined;
  return {
    words: [...fitOfPlan(typed), ...(isSwitched ? [] : ['--for', 'lora'])],
    lead: 'minimind fit counts adapters:',
    isOfTool: true,
  };
}

/**
 * The line with attention in replicas as in SGLang, where the tensor parallel size counts the GPUs of all replicas, and
 * those of one share its attention: sgl-project/sglang 2aa2e2d python/sglang/srt/layers/dp_attention.py.
 */
function asReplicas(typed: TypedLine): MeantLine | undefined {
  const at = typed.words.findIndex((word) => /^--enable[-_]dp[-_]attention$/.test(word));
  if (at < 0 || !Object.hasOwn(typed.command.flags, 'dp-attention')) return undefined;
  const [shared, replicas] = ['tensor-parallel', 'dp-attention'].map((each) =>
    givenFlag(typed, each),
  );
  const count = Number(replicas?.value ?? 1);
  const share = Number(shared?.value ?? count) / count;
  if (!Number.isInteger(share) || share < 1) return undefined;
  const removed = [{ at, length: 1 }, shared, replicas].flatMap((each) =>
    each === undefined ? [] : Array.from({ length: each.length }, (_, index) => each.at + index),
  );
  const written = [
    ...(count > 1 ? ['--dp-attention', String(count)] : []),
    ...(share > 1 ? ['--tensor-parallel', String(share)] : []),
  ];
  const kept = typed.words.filter((_, index) => !removed.includes(index));
  return { ...typed.lineOf([...kept, ...written]), lead: 'did you mean --dp-attention?' };
}

/**
 * The line with whole models side by side, which SGLang counts by --dp without attention in replicas: each has the GPUs
 * of its tensor and pipeline parallelism. sgl-project/sglang 004813e docs/advanced_features/server_arguments.md.
 */
function asWholeReplicas(typed: TypedLine, given: GivenFlag): MeantLine | undefined {
  if (given.name !== 'sglang.dp' || !Object.hasOwn(typed.command.flags, 'gpus')) return undefined;
  const count = Number(given.value ?? typed.words[given.at + 1]);
  const shared = ['tensor-parallel', 'pipeline-parallel'].map((each) =>
    Number(valueGiven(typed, each) ?? 1),
  );
  const gpus = shared.reduce((all, each) => all * each, count);
  if (!(Number.isInteger(gpus) && gpus > 0)) return undefined;
  const length = given.value === undefined ? 2 : 1;
  const own = givenFlag(typed, 'gpus');
  const written = own === undefined && gpus > 1 ? ['--gpus', String(gpus)] : [];
  return {
    ...typed.corrected(given.at, written, length),
    lead: `${count} models side by side:`,
  };
}

/** Flags for machines and for the GPUs of each, which programs have in their configs: `trainer.nnodes=2`. */
const MACHINES =
  /^(?:--)?(?:\w+\.)*(?:actor[-_])?(?:n?nodes|(?:num|n)[-_](?:nodes|machines|hosts)|machines|hosts)(?:=|$)/;
const OF_A_MACHINE =
  /^(?:--)?(?:\w+\.)*(?:actor[-_])?(?:(?:n(?:um)?[-_])?(?:gpus|devices|tasks|procs?)[-_]per[-_](?:node|machine|host)|nproc[-_]per[-_]node|ntasks[-_]per[-_]node|devices|num[-_]gpus)(?:=|$)/;

/** Our own number of GPUs, which a line with a number of machines has for each. */
const OWN_NUMBER = /^--gpus(?:=|$)/;

/** A machine with GPUs as a name: `8xh100`. */
const NAMED_MACHINE = /^(\d{1,2})\s*x\s*(\D.*)$/i;

/** GPUs of a usual machine for training. */
const USUAL_MACHINE = 8;

/** The line with the GPUs of all machines. */
function asAllMachines(typed: TypedLine): MeantLine | undefined {
  if (!Object.hasOwn(typed.command.flags, 'gpus')) return undefined;
  const [machines, each, own] = [MACHINES, OF_A_MACHINE, OWN_NUMBER].map((name) =>
    numberOf(typed, name),
  ) as [Slots, Slots, Slots];
  if (machines.at < 0 || !(machines.value > 0)) return undefined;
  const number = each.at < 0 && !typed.isOfTool ? own : each;
  if (number.at < 0) return typed.isOfTool ? undefined : asMachines(typed, machines);
  const gpus = machines.value * number.value;
  if (!(gpus > 0)) return undefined;
  const written = ['--gpus', String(gpus)];
  return {
    ...typed.lineOf([...without(typed, [machines, number]), ...written]),
    lead: `${machines.value} machines of ${number.value} GPUs:`,
  };
}

/** The line with the GPUs of machines whose number of GPUs is in the name, or is that of most. */
function asMachines(typed: TypedLine, machines: Slots): MeantLine | undefined {
  const gpu = givenFlag(typed, 'gpu');
  const [, count, card] = NAMED_MACHINE.exec(gpu?.value ?? '') ?? [];
  if (gpu === undefined) return undefined;
  const rest = without(typed, [machines]);
  if (card === undefined || count === undefined) {
    const gpus = machines.value * USUAL_MACHINE;
    return {
      ...typed.lineOf([...rest, '--gpus', String(gpus)]),
      lead: `${machines.value} machines, with ${USUAL_MACHINE} GPUs in each:`,
      hasExample: true,
    };
  }
  const named = ['--gpu', card, '--gpus', String(machines.value * Number(count))];
  const both = without(typed, [machines, { ...gpu, value: 0 }]);
  return {
    ...typed.lineOf([...both, ...named]),
    lead: `${machines.value} machines of ${count} GPUs:`,
  };
}

/** Names of the step at which the decay of a training ends: karpathy/nanoGPT train.py, Megatron-LM arguments.py. */
const END_OF_DECAY = /^(?:lr[-_])?decay[-_](?:iters|steps)$/i;

/** Schedules whose decay is a part at the end. */
const LATE_DECAY = /^(?:wsd|torchtitan)$/i;

/** The line without the step at which a decay ends, which is the last one here, or with that step as the last one. */
function asEndOfDecay(
  typed: TypedLine,
  { at, name, written, value }: GivenFlag,
): MeantLine | undefined {
  if (typed.command.id !== 'train-plan' || !END_OF_DECAY.test(name)) return undefined;
  if (LATE_DECAY.test(valueGiven(typed, 'schedule') ?? '')) return undefined;
  const end = value ?? typed.words[at + 1];
  const length = value === undefined ? 2 : 1;
  const steps = valueGiven(typed, 'steps', at);
  if (end === undefined || !/^\d[\d_.]*[km]?$/i.test(end)) return undefined;
  const others = ['tokens', 'epochs'].some((each) => valueGiven(typed, each, at) !== undefined);
  if (steps === undefined && !others) {
    return {
      ...typed.corrected(at, ['--steps', end], length),
      lead: 'the decay ends at the last step:',
    };
  }
  const reason =
    Number(steps) === Number(end)
      ? 'is the last step'
      : 'is not the last step, where the decay ends here';
  return { ...typed.corrected(at, [], length), leftOut: [`${written} ${end} ${reason}`] };
}

/** Trainings on preferences and rewards, and those of them that have a second model for reference. */
const OF_PREFERENCES =
  /^(?:use-|do-|train-)?(?:dpo|grpo|ppo|kto|orpo|rloo|rlhf|simpo|cpo|ipo|gspo|dapo|reinforce)$/i;
const WITHOUT_REFERENCE = /(?:orpo|simpo|cpo)$/i;

/** The line of a training for a switch with a method of preferences, whose further models are not counted. */
function asPreferences(
  typed: TypedLine,
  { at, name, written, value }: GivenFlag,
): MeantLine | undefined {
  const folded = name.replaceAll('_', '-');
  if (!OF_PREFERENCES.test(folded) || value !== undefined) return undefined;
  const { flags } = typed.command;
  const hasPurpose = Object.hasOwn(flags, 'for');
  if (!hasPurpose && typed.command.id !== 'train-plan') return undefined;
  const isGiven = valueGiven(typed, 'for') !== undefined;
  const isOfAdapters = OF_LORA.test(typed.words.join(' '));
  const words = hasPurpose && !isGiven && !isOfAdapters ? ['--for', 'training'] : [];
  const truth = TRUE.test(typed.words[at + 1] ?? '') ? 2 : 1;
  const further = WITHOUT_REFERENCE.test(folded)
    ? 'is counted as a training on samples'
    : 'is counted as a training of the model alone, without a model of reference or reward';
  return { ...typed.corrected(at, words, truth), leftOut: [`${written} ${further}`] };
}

/** Switches that move the state of a training into system memory, without saying which part. */
const OFFLOAD = /^(?:cpu[-_]offload|offload[-_](?:to[-_])?cpu|offload)$/i;

/** The line with the parameters in system memory, where FSDP divides them: torch.distributed.fsdp.CPUOffload. */
function asOffloadOfShards(typed: TypedLine): MeantLine | undefined {
  const isSharded = typed.words.some((word) => /^--(?:use[-_])?fsdp2?(?:=|$)/i.test(word));
  if (!isSharded || !Object.hasOwn(typed.command.flags, 'offload')) return undefined;
  const at = typed.words.findIndex((word) => OFFLOAD.test(word.replace(/^--|=.*$/gs, '')));
  const [, inline] = typed.words[at]?.split(/=(.*)/s) ?? [];
  const isNext = inline === undefined && TRUE.test(typed.words[at + 1] ?? '');
  if (at < 0 || (inline !== undefined && !TRUE.test(inline))) return undefined;
  // A value that says which part is one of ours.
  if (inline === undefined && !isNext && !typed.isValueMissing(at + 1)) return undefined;
  const lead = 'FSDP offloads the parameters:';
  return { ...typed.corrected(at, ['--offload', 'parameters'], isNext ? 2 : 1), lead };
}

/** Lengths of a sample in verl, whose sum is that of the sequence that it trains: docs/examples/config.rst. */
const PROMPT_OF_SAMPLE = /^(?:--)?data\.max[-_]prompt[-_]length(?:=|$)/;
const ANSWER_OF_SAMPLE = /^(?:--)?data\.max[-_]response[-_]length(?:=|$)/;

/** The line with the tokens of a sample, where verl has those of its prompt and of its answer. */
function asSampleLength(typed: TypedLine): MeantLine | undefined {
  if (!Object.hasOwn(typed.command.flags, 'context')) return undefined;
  const [prompt, answer] = [PROMPT_OF_SAMPLE, ANSWER_OF_SAMPLE].map((name) =>
    numberOf(typed, name),
  ) as [Slots, Slots];
  const whole = prompt.value + answer.value;
  if (prompt.at < 0 || answer.at < 0 || !(whole > 0)) return undefined;
  const written = ['--context', String(whole)];
  return {
    ...typed.lineOf([...without(typed, [prompt, answer]), ...written]),
    lead: 'prompt and answer are one sequence:',
  };
}

/** The line with the tokens of a test of llama-bench, `-pg 512,128`: ggml-org/llama.cpp tools/llama-bench/README.md. */
function asBenchTest(typed: TypedLine): MeantLine | undefined {
  const at = typed.words.findIndex((word) => /^-pg$/.test(word));
  const [, prompt, answer] = /^(\d+),(\d+)$/.exec(typed.words[at + 1] ?? '') ?? [];
  const isKnown = Object.hasOwn(typed.command.flags, 'output-tokens');
  if (at < 0 || prompt === undefined || answer === undefined || !isKnown) return undefined;
  const written = ['--prompt-tokens', prompt, '--output-tokens', answer];
  return { ...typed.corrected(at, written, 2), lead: 'prompt and answer have flags of their own:' };
}

/** Flags of llama.cpp for the slots of a server, and for the context that they share. */
const SLOTS = /^(?:-np|--parallel|--n[-_]parallel)(?:=|$)/;
const SHARED_CONTEXT = /^(?:-c|--ctx[-_]size)(?:=|$)/;

/**
 * The line with the context of a sequence, where llama.cpp has that of all slots: each has an equal part of the cache, or all
 * share it (ggml-org/llama.cpp, src/llama-context.cpp: n_ctx_seq, kv_unified).
 */
function asSlots(typed: TypedLine): MeantLine | undefined {
  const { command } = typed;
  const users = ['users', 'batch'].find((name) => Object.hasOwn(command.flags, name));
  if (users === undefined || !Object.hasOwn(command.flags, 'context')) return undefined;
  const [slots, context] = [SLOTS, SHARED_CONTEXT].map((name) => numberOf(typed, name)) as [
    Slots,
    Slots,
  ];
  const each = Math.floor(context.value / slots.value);
  if (slots.at < 0 || context.at < 0 || !(slots.value > 1) || !(each >= 1)) return undefined;
  const written = ['--context', String(each), `--${users}`, String(slots.value)];
  return {
    ...typed.lineOf([...without(typed, [slots, context]), ...written]),
    lead: 'the slots of llama.cpp share its context:',
  };
}

/** Flags of TGI for the longest prompt, and for prompt and answer together. */
const LONGEST_PROMPT = /^--max[-_]input[-_](?:length|tokens)(?:=|$)/;
const LONGEST_WHOLE = /^--max[-_]total[-_]tokens(?:=|$)/;

/** The line with the tokens of an answer, where TGI has those of prompt and answer together. */
function asAnswers(typed: TypedLine): MeantLine | undefined {
  if (!Object.hasOwn(typed.command.flags, 'output-tokens')) return undefined;
  const [prompt, whole] = [LONGEST_PROMPT, LONGEST_WHOLE].map((name) => numberOf(typed, name)) as [
    Slots,
    Slots,
  ];
  const answer = whole.value - prompt.value;
  if (prompt.at < 0 || whole.at < 0 || !(prompt.value > 0 && answer > 0)) return undefined;
  const written = ['--prompt-tokens', String(prompt.value), '--output-tokens', String(answer)];
  return {
    ...typed.lineOf([...without(typed, [prompt, whole]), ...written]),
    lead: 'prompt and answer have flags of their own:',
  };
}

/** A flag of another tool with its number. */
function numberOf({ words }: TypedLine, name: RegExp): Slots {
  const at = words.findIndex((word) => name.test(word));
  const [, value] = words[at]?.split(/=(.*)/s) ?? [];
  return { at, length: value === undefined ? 2 : 1, value: Number(value ?? words[at + 1]) };
}

/** The words of a line without some of its flags. */
function without({ words }: TypedLine, flags: readonly Slots[]): string[] {
  const removed = flags.flatMap(({ at, length }) => (length === 2 ? [at, at + 1] : [at]));
  return words.filter((_, index) => !removed.includes(index));
}

/** A flag with a number, and its place. */
interface Slots {
  readonly at: number;
  readonly length: number;
  readonly value: number;
}

/** Flags of a plan that `fit` calls otherwise in a training. */
const IN_FIT: Readonly<Record<string, string>> = {
  '--batch': '--micro-batch',
  '--tokens': '--train-tokens',
};

/** The words of a plan as a line of `fit`. */
export const fitOfPlan = (typed: TypedLine): readonly string[] => [
  'fit',
  ...typed.words.map((word) => {
    const [name = ''] = word.split('=', 1);
    return Object.hasOwn(IN_FIT, name) ? `${IN_FIT[name]}${word.slice(name.length)}` : word;
  }),
];
