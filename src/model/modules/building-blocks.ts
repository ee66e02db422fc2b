/** Building blocks that run on small inputs, as `torch.manual_seed` and the same fills make them. */
import { runActivations } from './activation-runs.js';
import { runGqa, runOnlineSoftmax } from './attention-runs.js';
import { type BlockRun, type BlockSizes, countOf } from './block-run.js';
import { runParallelEmbedding, runVocabEmbedding } from './embedding-runs.js';
import { runGroupRmsNorm, runLayerNorm, runRmsNorm, runSwiglu } from './norm-runs.js';
import { runInterleavedRope, runNtkRope, runSinusoidal } from './rotation-runs.js';
import { mistake } from './tensor.js';

export interface BuildingBlock {
  readonly name: string;
  readonly summary: string;
  /** Settings that it uses, in addition to dtype and seed. */
  readonly uses: readonly (keyof BlockSizes)[];
  /** Whether its inputs are drawn, from the seed. Default true. */
  readonly isDrawn?: boolean;
  readonly run: (sizes: BlockSizes) => BlockRun;
}

const NORM = ['batch', 'tokens', 'hidden', 'eps', 'initSeed', 'initRange'] as const;
const EMBEDDING = [
  ...['batch', 'tokens', 'hidden', 'vocab'],
  ...['initSeed', 'initMean', 'initStd'],
] as const;
const ATTENTION = ['batch', 'tokens', 'heads', 'keyHeads', 'headDim', 'causal'] as const;

export const BLOCKS: readonly BuildingBlock[] = [
  { name: 'rms-norm', summary: 'RMSNorm', uses: NORM, run: runRmsNorm },
  { name: 'layer-norm', summary: 'LayerNorm', uses: NORM, run: runLayerNorm },
  {
    name: 'group-rms-norm',
    summary: 'RMSNorm in groups of columns',
    uses: [...NORM, 'group'],
    run: runGroupRmsNorm,
  },
  {
    name: 'swiglu',
    summary: 'silu(gate) · up',
    uses: ['batch', 'tokens', 'hidden'],
    run: runSwiglu,
  },
  {
    name: 'activations',
    summary: 'ReLU, GELU and SiLU with their gradients, at given points',
    uses: ['points'],
    isDrawn: false,
    run: runActivations,
  },
  {
    name: 'vocab-embedding',
    summary: 'rows of a table by token ids',
    uses: EMBEDDING,
    run: runVocabEmbedding,
  },
  {
    name: 'parallel-embedding',
    summary: 'the table split over ranks, and the sum of their parts',
    uses: [...EMBEDDING, 'ranks'],
    run: runParallelEmbedding,
  },
  {
    name: 'sinusoidal',
    summary: 'sinusoidal positions (SinPE), sines and cosines side by side',
    uses: ['tokens', 'hidden', 'base'],
    isDrawn: false,
    run: runSinusoidal,
  },
  {
    name: 'interleaved-rope',
    summary: 'RoPE that rotates neighbours (x_0, x_1), as GPT-J does',
    uses: ['batch', 'tokens', 'heads', 'headDim', 'base'],
    run: runInterleavedRope,
  },
  {
    name: 'ntk-rope',
    summary: 'NTK-aware RoPE: the scale after each call, static or dynamic',
    uses: ['batch', 'heads', 'headDim', 'positions', 'scale', 'base', 'dynamic', 'calls'],
    run: runNtkRope,
  },
  { name: 'gqa', summary: 'grouped-query attention', uses: ATTENTION, run: runGqa },
  {
    name: 'online-softmax',
    summary: 'attention tile by tile, with the running maximum and sum',
    uses: [...ATTENTION, 'tile'],
    run: runOnlineSoftmax,
  },
];

/** Sizes of axes, each of which some tensor has. */
const TENSOR_SIZES = [
  'batch',
  'tokens',
  'hidden',
  'heads',
  'keyHeads',
  'headDim',
  'vocab',
  'ranks',
] as const satisfies readonly (keyof BlockSizes)[];

/** Runs a block. @throws UserError for an unknown block, or sizes that do not fit it. */
export function runBlock(name: string, sizes: BlockSizes): BlockRun {
  const block = BLOCKS.find((each) => each.name === name);
  if (block) {
    for (const setting of TENSOR_SIZES) if (block.uses.includes(setting)) countOf([sizes[setting]]);
    return block.run(sizes);
  }
  throw mistake(
    'modules',
    `unknown block ${name}`,
    `write one of ${BLOCKS.map((each) => each.name).join(', ')}`,
  );
}
