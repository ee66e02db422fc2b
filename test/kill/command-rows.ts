/** Lines to interrupt: at least one for each command, most of them with an input that takes a second or more. */
import fs from 'node:fs';
import path from 'node:path';
import { inPackage } from '../fixtures.js';
import { runCli } from '../run-cli.js';

export interface CommandRow {
  /** The words after `minimind`, in the folder of the inputs. Outputs begin with `out`. */
  readonly words: readonly string[];
  /** Text to type after each of the seconds. */
  readonly typed?: readonly string[];
  /** Times that Ctrl-C is pressed, 0.1 s apart; 1 by default. The first one can end an answer only. */
  readonly presses?: number;
}

const row = (line: string, options: Omit<CommandRow, 'words'> = {}): CommandRow => ({
  words: line.split(' '),
  ...options,
});

const range = (first: number, last: number, step = 1): string =>
  Array.from({ length: (last - first) / step + 1 }, (_, at) => first + at * step).join(',');

const SWEEP = `compare hybrid/tiny --set model.num_layers=${range(1, 20)} --set model.hidden_size=${range(64, 512, 64)}`;

const TINY = 'generate tiny --ids 1,2,3 --max-tokens 250 --device cpu';

/** Rows by the commands' names in the manifest. */
export const COMMAND_ROWS: Readonly<Record<string, readonly CommandRow[]>> = {
  attention: [row('attention minimind2-small --context 512,8192,65536 --gpu h100 --details')],
  compare: [
    row(SWEEP),
    row('compare --plan compare.json --part 1'),
    row('compare --plan compare.json --finish --wait'),
  ],
  'compare-srte': [row('compare-srte hybrid/original --ranks 256,128,64,32 --presets')],
  completion: [row('completion bash')],
  'convert-checkpoint': [
    row('convert-checkpoint big.safetensors out.safetensors --dtype bf16 --force'),
    row('convert-checkpoint big.safetensors out --dtype bf16 --shard-size 100MB --check'),
    row('convert-checkpoint big.safetensors out.pt --dtype f16'),
    row('convert-checkpoint tall.safetensors out.pt --to low-rank --rank 24'),
    row('convert-checkpoint tall.safetensors out --prove --dtype bf16'),
    row('convert-checkpoint --plan convert.json --part 1'),
    row('convert-checkpoint --plan convert.json --finish --wait'),
  ],
  data: [
    row('data texts.jsonl --tokenizer bpe.json'),
    row('data chats.jsonl --tokenizer chat --answer-start a: --answer-end u:'),
  ],
  diff: [row('diff big.safetensors big2.safetensors --values')],
  doctor: [row('doctor')],
  evaluate: [
    row('evaluate tiny --ids ids.json --context 128 --stride 1'),
    row('evaluate big.safetensors --ids ids.json --context 64'),
  ],
  export: [
    row('export hybrid/tiny --random --save out.onnx --set model.vocab_size=1000000'),
    row('export big.safetensors --external-data --save out.onnx'),
  ],
  fit: [row('fit llama/llama-3.2-1b --gpu h100 --for training --details')],
  generate: [
    row(TINY),
    row(`${TINY} -o out.json --engine tfjs`),
    row('generate big.safetensors --ids 1,2,3 --max-tokens 200'),
    row('generate chat --max-tokens 100 --device cpu', { typed: ['Hello'], presses: 3 }),
    row('generate chat Hello --chat --max-tokens 100'),
  ],
  init: [row('init', { typed: ['', ''] }), row('init hybrid/tiny --save out.yaml')],
  inspect: [row('inspect big.safetensors --stats --hash'), row('inspect hf:org/name')],
  'kv-projector:convert': [row('kv-projector convert projector.pt out.safetensors')],
  'kv-projector:init': [
    row('kv-projector init out.safetensors --teacher Qwen2-7B:3584x28 --student 2048'),
  ],
  'kv-projector:params': [row('kv-projector params --teacher Qwen2-7B:896x28 --student 256')],
  'kv-projector:project': [
    row('kv-projector project projector.safetensors kv.safetensors --save out.safetensors'),
  ],
  'kv-projector:verify': [row('kv-projector verify --teacher-width 640 --student 192')],
  draw: [row('draw deepseek-v3 --details'), row('draw hybrid/original -o out.svg')],
  explore: [row('explore hybrid/tiny --no-open'), row('explore hybrid/tiny --save page.html')],
  list: [row('list --details')],
  mcp: [row('mcp')],
  modules: [row('modules online-softmax --context 2000 --tile 3')],
  plan: [
    row('plan --max-params 1.3B --vocab 32k --gpu h100 --depth 4..80'),
    row('plan --plan plan.json --part 1 -o out.json'),
  ],
  profile: [row('profile hybrid/original --explain'), row('profile hf:org/name')],
  'quick-test': [
    row('quick-test hybrid/tiny --repeat 2000'),
    row('quick-test big.safetensors'),
    row('quick-test hybrid/tiny --overfit'),
    row('quick-test tiny --save out.safetensors'),
  ],
  rope: [row('rope minimind2-small --context 131072')],
  schema: [row('schema hybrid')],
  'train-plan': [row('train-plan hybrid/original --tokens 1B --gpu h100')],
  validate: [row('validate -'), row('validate long.yaml')],
  verify: [row('verify big.safetensors --values big2.safetensors')],
};

/** Words of the large input's vocabulary. */
const BIG_ROWS = 1_500_000;

/** Makes the inputs of all rows in a folder. */
export function makeInputs(folder: string): void {
  const run = (line: string) => {
    const { code, stderr } = runCli(line.split(' '), { cwd: folder });
    if (code !== 0) throw new Error(`${line}: ${stderr}`);
  };
  const write = (name: string, text: string) => fs.writeFileSync(path.join(folder, name), text);
  run('export hybrid/tiny --random --save tiny.onnx');
  run('convert-checkpoint tiny.onnx tiny');
  makeBig(folder, 'big');
  makeBig(folder, 'big2');
  run(
    'export hybrid/tiny --random --set model.max_position_embeddings=60000 --set model.srte_factorized_rank=0 --save tall.onnx',
  );
  run('convert-checkpoint tall.onnx tall.safetensors');
  run('kv-projector init projector.pt --teacher Qwen2-7B:896x28 --student 256');
  run('kv-projector init projector.safetensors --teacher A:64x2 --student 32');
  writeZeros(path.join(folder, 'kv.safetensors'), {
    'A.K': { dtype: 'F32', shape: [400_000, 64] },
    'A.V': { dtype: 'F32', shape: [400_000, 64] },
  });
  run(`${SWEEP} --parts 2 --plan compare.json`);
  run('convert-checkpoint big.safetensors parts --dtype bf16 --parts 2 --plan convert.json');
  run('plan --max-params 135M --vocab 32k --parts 2 --plan plan.json');
  write('ids.json', JSON.stringify([Array.from({ length: 5000 }, (_, at) => (at * 7) % 256)]));
  fs.copyFileSync(inPackage('fixtures/tokenizers/bpe-4096.json'), path.join(folder, 'bpe.json'));
  const text = fs.readFileSync(inPackage('fixtures/tokenizers/text.txt'), 'utf8');
  write(
    'texts.jsonl',
    Array.from({ length: 20_000 }, (_, at) =>
      JSON.stringify({ text: `${at} ${text.slice(at % 1000, (at % 1000) + 800)}` }),
    ).join('\n'),
  );
  const messages = (at: number) => [
    { role: 'user', content: `Question ${at}` },
    { role: 'assistant', content: `Answer ${at}` },
  ];
  write(
    'chats.jsonl',
    Array.from({ length: 30_000 }, (_, at) => JSON.stringify({ messages: messages(at) })).join(
      '\n',
    ),
  );
  write('long.yaml', `model:\n${' '.repeat(2)}x: [${'[1], '.repeat(190_000)}]\n`);
  makeChat(folder);
}

type Tensors = Readonly<Record<string, { readonly dtype: string; readonly shape: number[] }>>;

/** A safetensors file of F32 tensors whose values are zeros that no disk block holds. */
function writeZeros(file: string, tensors: Tensors): void {
  let end = 0;
  const header: Record<string, unknown> = {};
  for (const [name, { dtype, shape }] of Object.entries(tensors)) {
    const begin = end;
    end += 4 * shape.reduce((a, b) => a * b, 1);
    header[name] = { dtype, shape, data_offsets: [begin, end] };
  }
  const text = Buffer.from(JSON.stringify(header));
  const head = Buffer.alloc(8);
  head.writeBigUInt64LE(BigInt(text.length));
  fs.writeFileSync(file, Buffer.concat([head, text]));
  fs.truncateSync(file, 8 + text.length + end);
}

/** A checkpoint of the small preset with a large vocabulary. */
function makeBig(folder: string, name: string): void {
  const small = fs.readFileSync(path.join(folder, 'tiny/model.safetensors'));
  const length = Number(small.readBigUInt64LE(0));
  const { __metadata__, ...tensors } = JSON.parse(small.subarray(8, 8 + length).toString());
  for (const [tensor, entry] of Object.entries(tensors as Tensors)) {
    if (/embed|lm_head/.test(tensor) && entry.shape[0] === 256) entry.shape[0] = BIG_ROWS;
  }
  writeZeros(path.join(folder, `${name}.safetensors`), tensors);
  const config = fs.readdirSync(path.join(folder, 'tiny')).find((each) => /ya?ml|json$/.test(each));
  const document = fs.readFileSync(path.join(folder, 'tiny', config ?? ''), 'utf8');
  fs.writeFileSync(
    path.join(folder, `${name}.config.yaml`),
    document.replace(/vocab_size: 256/, `vocab_size: ${BIG_ROWS}`),
  );
}

/** A model with a tokenizer and a chat template. */
function makeChat(folder: string): void {
  const chat = path.join(folder, 'chat');
  fs.cpSync(inPackage('fixtures/hf/llama'), chat, { recursive: true });
  const letters = Array.from({ length: 94 }, (_, at) => [String.fromCharCode(33 + at), at + 3]);
  const tokenizer = {
    version: '1.0',
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: { type: 'Split', pattern: { Regex: '' }, behavior: 'Isolated', invert: false },
    post_processor: null,
    decoder: { type: 'Fuse' },
    model: {
      type: 'BPE',
      merges: [],
      unk_token: '?',
      vocab: Object.fromEntries([['?', 0], ...letters.filter(([letter]) => letter !== '?')]),
    },
  };
  const write = (name: string, content: object | string) =>
    fs.writeFileSync(
      path.join(chat, name),
      typeof content === 'string' ? content : JSON.stringify(content),
    );
  write('tokenizer.json', tokenizer);
  write('tokenizer_config.json', {});
  write(
    'chat_template.jinja',
    '{% for m in messages %}{{ m.role[0] }}:{{ m.content }}{% endfor %}a:',
  );
}
