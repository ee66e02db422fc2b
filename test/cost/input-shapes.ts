/**
 * Files of other programs that are expensive for a naive reader: training configs, results of benchmarks, prompts and
 * texts.
 */
import { gzipSync } from 'node:zlib';
import { commands, oneFile, type Shape } from './shape.js';

const MODEL = 'configs/minimind/minimind2-small.yaml';

/** Texts of about a number of characters. */
type Text = (size: number) => string;

/** Parts with their number, until they have about this many characters. */
const many = (size: number, part: (at: number) => string): string =>
  Array.from({ length: Math.max(1, Math.floor(size / part(99_999).length)) }, (_, at) =>
    part(at),
  ).join('');

const nested = (size: number, open: string, close: string): string => {
  const depth = Math.floor(size / (open.length + close.length));
  return open.repeat(depth) + close.repeat(depth);
};

/** Configs are refused above 1 MB, so the cost of reading them shows below it. */
const CONFIG_SIZES = [250_000, 990_000];

const TRAIN = commands(
  'validate FILE',
  'train-plan FILE',
  `train-plan ${MODEL} --training-config FILE`,
  `fit ${MODEL} --gpu h100 --training-config FILE`,
);

const TOML = '[job]\ndump_folder = "out"\n[model]\nname = "llama3"\nflavor = "8B"\n[training]\n';

const tomls: readonly (readonly [name: string, text: Text])[] = [
  ['keys', (size) => many(size, (at) => `k${at} = 1\n`)],
  ['tables', (size) => many(size, (at) => `[t${at}]\na = 1\n`)],
  ['one dotted key', (size) => `${many(size, () => 'a.')}b = 1\n`],
  ['dotted keys', (size) => many(size, (at) => `a${at}.b.c.d.e.f = 1\n`)],
  ['one long header', (size) => `[${many(size, () => 'a.')}b]\n`],
  ['brackets', (size) => `x = ${nested(size, '[', ']')}\n`],
  ['braces', (size) => `x = ${nested(size, '{a=', '}')}\n`],
  ['numbers', (size) => `x = [${many(size, () => '1,')}]\n`],
  ['tables of a list', (size) => many(size, () => '[[x]]\n')],
  ['one long text', (size) => `x = "${'a'.repeat(size)}"\n`],
  ['escapes', (size) => `x = "${many(size, () => '\\n')}"\n`],
  ['comments', (size) => many(size, () => '#\n')],
  ['one long number', (size) => `x = ${'1'.repeat(size)}\n`],
];

const SCRIPT = '#!/bin/bash\n';
const FLAGS = 'python pretrain_gpt.py --num-layers 2 --hidden-size 64 --micro-batch-size 1';

const scripts: readonly (readonly [name: string, text: Text])[] = [
  ['words', (size) => `${FLAGS} ${many(size, (at) => `--flag-${at} 1 `)}\n`],
  ['values', (size) => `${FLAGS} --seq-length ${many(size, () => '1 ')}\n`],
  [
    'doubled variables',
    (size) => `A0=xx\n${many(size, (at) => `A${at + 1}=$A${at}$A${at}\n`)}${FLAGS} --x $A40\n`,
  ],
  ['a doubled variable', (size) => `A=x\n${many(size, () => 'A=$A$A\n')}${FLAGS} --x $A\n`],
  ['an appended variable', (size) => `A=x\n${many(size, () => 'A+=$A\n')}${FLAGS} --x $A\n`],
  [
    'doubled lists',
    (size) => `A=(x)\n${many(size, () => `A+=(\${A[@]} \${A[@]})\n`)}${FLAGS} \${A[@]}`,
  ],
  ['a variable of itself', (size) => `${many(size, () => 'A=$B\nB=$A\n')}${FLAGS} --x $A\n`],
  ['nested fallbacks', (size) => `${FLAGS} --x ${nested(size, '${A:-', '}')}\n`],
  ['nested arithmetic', (size) => `${FLAGS} --x $((${nested(size, '(', ')')}))\n`],
  ['long arithmetic', (size) => `${FLAGS} --x $((1${many(size, () => '+1')}))\n`],
  ['powers', (size) => `${FLAGS} --x $((9${many(size, () => '**9')}))\n`],
  ['open quotes', (size) => `${FLAGS} ${many(size, () => `"'`)}\n`],
  ['commands', (size) => `${FLAGS} --x ${nested(size, '$(', ')')}\n`],
  ['continued lines', (size) => `${FLAGS} ${many(size, () => '\\\n')}\n`],
  ['conditions', (size) => `${many(size, () => 'if [ $A ]; then\n')}${FLAGS}\n`],
  ['lines', (size) => `${many(size, () => '\n')}${FLAGS}\n`],
  ['here documents', (size) => `${many(size, (at) => `cat <<E${at}\n`)}${FLAGS}\n`],
];

const AXOLOTL =
  'base_model: meta-llama/Llama-3.1-8B\nadapter: lora\nmicro_batch_size: 1\ndatasets:\n';

const yamls: readonly (readonly [name: string, text: Text])[] = [
  ['unknown keys', (size) => `  - path: a\n${many(size, (at) => `k${at}: 1\n`)}`],
  [
    'keys almost right',
    (size) => `  - path: a\n${many(size, (at) => `micro_batch_siz${at}: 1\n`)}`,
  ],
  ['datasets', (size) => many(size, () => '  - path: a\n')],
  ['modules', (size) => `  - path: a\nlora_target_modules: [${many(size, () => 'q_proj,')}]\n`],
  ['one long name', (size) => `  - path: ${'a'.repeat(size)}\n`],
  ['sections', (size) => `  - path: a\nx:\n${many(size, (at) => `  k${at}: {a: {b: 1}}\n`)}`],
];

const jsons: readonly (readonly [name: string, text: Text])[] = [
  ['brackets', (size) => `{"zero_optimization":{"stage":${nested(size, '[', ']')}}}`],
  ['keys', (size) => `{"zero_optimization":{"stage":2},${many(size, (at) => `"k${at}":1,`)}"z":1}`],
  ['one key', (size) => `{"zero_optimization":{"stage":2},${many(size, () => '"k":1,')}"z":1}`],
  [
    'braces',
    (size) =>
      `{"zero_optimization":{"stage":2},"x":${nested(size, '{"a":', '}').replace('}', '1}')}}`,
  ],
];

const training = [
  ...tomls.map(([name, text]) => [`a TOML of ${name}`, 'a.toml', text, TOML] as const),
  ...scripts.map(([name, text]) => [`a script of ${name}`, 'a.sh', text, SCRIPT] as const),
  ...yamls.map(
    ([name, text]) => [`an axolotl config of ${name}`, 'a.yaml', text, AXOLOTL] as const,
  ),
  ...jsons.map(([name, text]) => [`a DeepSpeed config of ${name}`, 'a.json', text, ''] as const),
];

const row =
  '{"model_type":"llama 1B Q8_0","n_prompt":512,"n_gen":0,"avg_ts":100,"backends":"CUDA"}';

const benchmarks: readonly (readonly [name: string, file: string, text: Text])[] = [
  ['rows', 'a.json', (size) => `[${many(size, () => `${row},`)}${row}]`],
  ['lines', 'a.jsonl', (size) => many(size, () => `${row}\n`)],
  ['brackets', 'b.json', (size) => nested(size, '[', ']')],
  ['open brackets', 'c.json', (size) => '['.repeat(size)],
  [
    'columns',
    'a.csv',
    (size) => `${many(size / 2, (at) => `c${at},`)}\n${many(size / 2, () => ',')}\n`,
  ],
  ['quotes', 'b.csv', (size) => `build_commit,${many(size, () => '"')}\n`],
  ['cells', 'a.md', (size) => `| model | size |\n| --- | --- |\n${many(size, () => '|')}\n`],
  ['bars', 'b.md', (size) => many(size, () => '| a | b |\n')],
];

/** Only for texts that are refused: the cost of others is that of the model. */
const EVALUATE =
  'evaluate fixtures/hf/llama --tokenizer fixtures/tokenizers/bpe-512.json --device cpu --text FILE';
const DATA = 'data --tokenizer fixtures/tokenizers/bpe-512.json FILE';

const texts: readonly (readonly [
  name: string,
  file: string,
  text: (size: number) => string | Uint8Array,
])[] = [
  ['brackets', 'a.jsonl', (size) => '['.repeat(size)],
  ['nested lines', 'b.jsonl', (size) => `{"text":${nested(size, '[', ']')}}`],
  ['empty texts', 'c.jsonl', (size) => many(size, () => '{"text":""}\n')],
  ['keys', 'd.jsonl', (size) => `{${many(size, (at) => `"${at}":1,`)}"text":"a"}\n`],
  ['empty lines', 'e.jsonl', (size) => '\n'.repeat(size)],
  ['zeros in gzip', 'f.jsonl.gz', (size) => gzipSync(Buffer.alloc(Math.min(size * 100, 5e8)))],
  ['garbage in Parquet', 'g.parquet', (size) => `PAR1${'\u0015'.repeat(size)}PAR1`],
  ['garbage in zstd', 'h.jsonl.zst', (size) => Buffer.from(`28b52ffd${'ff'.repeat(size)}`, 'hex')],
];

const GENERATE = commands(
  'generate fixtures/hf/llama --device cpu --max-tokens 1 --ids FILE',
  'generate fixtures/hf/llama --device cpu --max-tokens 1 --batch FILE',
);

const prompts: readonly (readonly [name: string, text: Text])[] = [
  ['brackets', (size) => '['.repeat(size)],
  ['ids', (size) => `[${many(size, () => '1,')}1]`],
  ['one line of ids', (size) => `{"ids":[${many(size, () => '1,')}1]}`],
  ['nested lines', (size) => `{"ids":${nested(size, '[', ']')}}`],
];

export const INPUT_SHAPES: readonly Shape[] = [
  ...training.map(([name, file, text, head]) => ({
    name,
    sizes: CONFIG_SIZES,
    make: oneFile(file, (size) => head + text(size)),
    commands: TRAIN,
  })),
  ...benchmarks.map(([name, file, text]) => ({
    name: `results of a benchmark: ${name}`,
    make: oneFile(file, text),
    commands: commands(`fit ${MODEL} --gpu h100 --calibrate FILE`),
  })),
  ...texts.map(([name, file, text]) => ({
    name: `a text of ${name}`,
    make: oneFile(file, text),
    commands: commands(...(/gzip|garbage/.test(name) ? [EVALUATE] : []), DATA),
  })),
  ...prompts.map(([name, text]) => ({
    name: `prompts of ${name}`,
    make: oneFile('prompts.json', text),
    commands: GENERATE,
  })),
];
