import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { usageError } from '../base/errors.js';
import { BaseCommand, type FlagsOf } from '../cli/base-command.js';
import { details } from '../cli/flags/flags.js';
import { count, LIST, positive, seedOf, tokens, unreadable } from '../cli/flags/value-flags.js';
import { nearest } from '../config/nearest.js';
import { quote } from '../config/quote.js';
import type { BlockList, ModuleResult, ModulesAnswer } from '../model/modules/block-run.js';
import { type BlockSizes, type RotationCall, SMALL_SIZES } from '../model/modules/block-run.js';
import { BLOCKS, runBlock } from '../model/modules/building-blocks.js';
import { blockListReport, moduleReport } from '../report/modules-report.js';

/** The flag of each setting. */
const FLAG_OF = {
  batch: 'batch',
  tokens: 'context',
  hidden: 'hidden',
  group: 'group-size',
  heads: 'heads',
  keyHeads: 'key-heads',
  headDim: 'head-dim',
  vocab: 'vocab',
  ranks: 'world-size',
  positions: 'max-positions',
  scale: 'scale',
  base: 'base',
  dynamic: 'dynamic',
  calls: 'calls',
  tile: 'tile',
  points: 'points',
  causal: 'causal',
  eps: 'eps',
  dtype: 'dtype',
  seed: 'seed',
  initSeed: 'init-seed',
  initRange: 'init-range',
  initMean: 'init-mean',
  initStd: 'init-std',
} as const satisfies Record<keyof BlockSizes, string>;

type Setting = keyof typeof FLAG_OF;

const SETTINGS = Object.keys(FLAG_OF) as Setting[];

/** `--calls 4,9,1@4`: positions of each call, and the first one after @. */
const rotationCalls = Flags.custom<RotationCall>({
  ...LIST,
  helpValue: 'N[@OFFSET]',
  parse: async (text, _context, { name }) => {
    const [, positions, offset = '0'] = /^\s*([1-9]\d{0,8})(?:@(\d{1,9}))?\s*$/.exec(text) ?? [];
    if (positions !== undefined) return { positions: Number(positions), offset: Number(offset) };
    return unreadable(name, text, 'positions of a call', `write it as in --${name} 4,9,1@4`);
  },
});

/** Maximum initial value; larger ones exceed float32. */
const MOST_INITIAL = 1e30;

const REAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

function realIn(text: string): number | undefined {
  const value = Number(text);
  return REAL.test(text) && Math.abs(value) <= MOST_INITIAL ? value : undefined;
}

/** `--init-mean -0.5` */
const real = Flags.custom<number, { readonly least?: number }>({
  helpValue: 'NUMBER',
  parse: async (text, _context, { name, least = Number.NEGATIVE_INFINITY }) => {
    const value = realIn(text.trim());
    if (value !== undefined && value >= least) return value;
    const expected = least === 0 ? 'a number from 0 on' : 'a number';
    return unreadable(name, text, expected, `write it as in --${name} 0.02`);
  },
});

/** `--init-range -1,1`, also as Python prints it: `(-1, 1)`. */
const initRange = Flags.custom<readonly [number, number]>({
  helpValue: 'LOW,HIGH',
  parse: async (text, _context, { name }) => {
    const [low, high, ...more] = text
      .trim()
      .replace(/^[([](.*)[)\]]$/, '$1')
      .split(',')
      .map((each) => realIn(each.trim()));
    if (low !== undefined && high !== undefined && low <= high && more.length === 0) {
      return [low, high];
    }
    return unreadable(name, text, 'a range from small to large', `write it as in --${name} -1,1`);
  },
});

/** `--points -1,0,0.5`: finite numbers. */
const points = Flags.custom<number>({
  ...LIST,
  helpValue: 'X,X',
  parse: async (text, _context, { name }) => {
    const value = Number(text);
    if (/^\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*$/i.test(text) && Number.isFinite(value))
      return value;
    return unreadable(name, text, 'a number', `write numbers as in --${name} -1,0,0.5`);
  },
});

const by = (text: string, setting: Exclude<Setting, 'calls' | 'initRange' | 'points'>) =>
  `${text} [default: ${SMALL_SIZES[setting]}]`;

export default class Modules extends BaseCommand {
  static override summary = 'Run building blocks on small inputs, as PyTorch does.';
  static override description =
    'Runs one block of transformers on inputs from a seed: the same numbers as torch.manual_seed and torch.randn. Prints ' +
    'the lines of PyTorch for the inputs, all tensors, and identities that the result keeps. Compare them with your ' +
    'own code. --details has all values, --json the whole tensors. Without a block, lists all of them.';
  static override examples = [
    '<%= config.bin %> <%= command.id %> group-rms-norm --hidden 8 --group-size 4 --seed 1',
    '<%= config.bin %> <%= command.id %> group-rms-norm --hidden 8 --group-size 4 --init-range -1,1 --init-seed 42',
    '<%= config.bin %> <%= command.id %> parallel-embedding --vocab 12 --world-size 3 --init-mean 0.1 --init-std 0.02 --init-seed 42',
    '<%= config.bin %> <%= command.id %> ntk-rope --max-positions 4 --dynamic --calls 4,9,1@9',
    '<%= config.bin %> <%= command.id %> online-softmax --context 7 --tile 3',
    '<%= config.bin %> <%= command.id %> activations --points -1,0,0.5,2',
  ];

  static override args = {
    block: Args.string({
      ignoreStdin: true,
      description: `a block: ${BLOCKS.map(({ name }) => name).join(', ')}`,
    }),
  };
  static override flags = {
    batch: count({ description: by('sequences', 'batch') }),
    context: tokens({ description: by('tokens of a sequence', 'tokens') }),
    hidden: count({ description: by('width of a token', 'hidden') }),
    'group-size': count({ description: by('columns of a group of the norm', 'group') }),
    heads: count({ description: by('query heads', 'heads') }),
    'key-heads': count({ description: by('key and value heads', 'keyHeads') }),
    'head-dim': count({ description: by('width of a head', 'headDim') }),
    vocab: count({ description: by('rows of the embedding table', 'vocab') }),
    'world-size': count({ description: by('ranks that share the table', 'ranks') }),
    'max-positions': count({ description: by('positions of the training', 'positions') }),
    scale: count({ description: by('first scale of the rotation', 'scale') }),
    base: positive({ description: by('base of the rotation', 'base') }),
    dynamic: Flags.boolean({ description: 'keep the scale of a longer call for those after it' }),
    calls: rotationCalls({
      description: 'positions of each call of the rotation, and its offset [default: 4,9,1@4]',
    }),
    tile: count({ description: by('keys of a tile', 'tile') }),
    points: points({
      description: `inputs of activations [default: ${SMALL_SIZES.points.join(',')}]`,
    }),
    causal: Flags.boolean({ description: 'queries see keys up to their own position' }),
    eps: positive({ description: by('ε of the norm', 'eps') }),
    dtype: Flags.option({
      options: ['f32', 'f16', 'bf16'],
      description: by('element type of the tensors', 'dtype'),
    } as const)(),
    seed: seedOf({ description: by('seed of the inputs', 'seed') }),
    'init-seed': seedOf({
      description: 'seed of γ, β and tables; a rank adds its number [default: that of --seed]',
    }),
    'init-range': initRange({
      description: 'uniform range of γ and β [default: 0.5,1.5]',
    }),
    'init-mean': real({ aliases: ['init_mean'], description: by('mean of a table', 'initMean') }),
    'init-std': real({
      least: 0,
      description: by('standard deviation of a table', 'initStd'),
    }),
    details,
  };

  async run(): Promise<ModulesAnswer> {
    const { args, flags } = await this.parse(Modules);
    if (args.block === undefined) {
      const blocks = BLOCKS.map(({ name, summary }) => ({ name, summary, flags: flagsOf(name) }));
      const result: BlockList = { schema: 'minimind/modules@1', blocks };
      return this.answer(flags, result, (each) =>
        blockListReport(
          each.blocks.map((block) => ({ ...block, flags: block.flags.map((flag) => `--${flag}`) })),
        ),
      );
    }
    const { block } = args;
    refuseUnknown(block);
    refuseUnused(block, flags);
    const sizes = blockSizes(flags);
    const { checks, ...run } = runBlock(block, sizes);
    const result: ModuleResult = {
      schema: 'minimind/modules@1',
      block,
      sizes: {
        ...Object.fromEntries(usedBy(block).map((setting) => [setting, sizes[setting]])),
        dtype: sizes.dtype,
      },
      ...run,
      checks: checks.map((each) => ({ ...each, passed: each.difference <= each.limit })),
    };
    if (result.checks.some(({ passed }) => !passed)) process.exitCode = 1;
    return this.answer(flags, result, moduleReport);
  }
}

type ModulesFlags = FlagsOf<typeof Modules>;

/** Settings that a block uses. Every block has a dtype, and one with drawn inputs a seed. */
function usedBy(name: string): Setting[] {
  const block = BLOCKS.find((each) => each.name === name);
  return [...(block?.uses ?? []), 'dtype', ...(block?.isDrawn === false ? [] : ['seed' as const])];
}

const flagsOf = (name: string) => usedBy(name).map((setting) => FLAG_OF[setting]);

/** @throws UserError for a block that does not exist. */
function refuseUnknown(block: string): void {
  const names = BLOCKS.map(({ name }) => name);
  if (names.some((name) => name === block)) return;
  const near = nearest(block, names);
  throw usageError(
    `unknown block ${quote(block)}`,
    near
      ? `did you mean ${near}? write minimind modules ${near}`
      : `write one of ${names.join(', ')}`,
  );
}

/** @throws UserError for a flag that the block does not use. */
function refuseUnused(block: string, flags: ModulesFlags): void {
  const used = flagsOf(block);
  const idle = SETTINGS.map((setting) => FLAG_OF[setting]).find(
    (flag) => flags[flag] !== undefined && !used.includes(flag),
  );
  if (idle === undefined) return;
  throw usageError(
    `--${idle} is not used by ${block}`,
    `it uses ${used.map((flag) => `--${flag}`).join(', ')}`,
  );
}

function blockSizes(flags: ModulesFlags): BlockSizes {
  const given = SETTINGS.flatMap((setting) => {
    const value = flags[FLAG_OF[setting]];
    return value === undefined ? [] : [[setting, value] as const];
  });
  const { seed = SMALL_SIZES.seed } = flags;
  return { ...SMALL_SIZES, initSeed: seed, ...Object.fromEntries(given) };
}
