/** The flags of `minimind quick-test`. */
import * as Flags from '@oclif/core/flags';
import { CHECK_NAMES } from '../../check/checks.js';
import type { OutputFlags } from '../base-command.js';
import {
  compute,
  details,
  device,
  ENGINE_CHOICES,
  offline,
  type ParsedFlags,
  readAs,
  savedFile,
  seed,
  set,
  stateDict,
  threads,
} from './flags.js';
import { logitLimits } from './thresholds.js';
import { count, LIST, learningRate, tokens, weightForm } from './value-flags.js';

const OF_CHECKS = ['only', 'cross-check', 'repeat', 'output-tokens'];
const OF_ENGINES = ['engine', 'device', 'compute'];

/** Flags of a run, unused by --trace. */
const NOT_TRACED = [
  ...['checkpoint', 'state-dict', ...OF_CHECKS, 'seed', ...OF_ENGINES],
  ...['threads', 'full', 'save', 'against', 'weights'],
];

/** Flags unused by --overfit, which trains in float32 on the CPU. */
const NOT_TRAINED = [...OF_CHECKS, ...OF_ENGINES, 'save', 'against', 'weights', 'trace'];

/** Flags unused by --against. */
const NOT_COMPARED = [...OF_CHECKS, 'save', 'trace', 'weights'];

export const quickTestFlags = {
  set,
  family: readAs,
  offline,
  checkpoint: Flags.string({
    helpValue: 'PATH',
    description: 'a file, an index or a folder with the weights [default: random weights]',
  }),
  'state-dict': stateDict,
  batch: count({ description: 'sequences at a time [default: 1]' }),
  context: tokens({ description: 'tokens of a sequence [default: 512, or all positions]' }),
  ids: Flags.string({
    helpValue: 'IDS',
    description: 'token ids: 1,2,3, or a JSON file [[5, 17, 3], …] [default: random ids]',
  }),
  seed,
  only: Flags.option({
    options: CHECK_NAMES,
    ...LIST,
    description: 'run only these checks',
  } as const)(),
  'cross-check': Flags.boolean({ description: 'also compare with the other engine' }),
  'output-tokens': tokens({
    description:
      'last tokens of --context to generate one by one, with a cache and without [default: 32, at most half]',
  }),
  repeat: count({ description: 'timed runs [default: those of half a second]' }),
  engine: Flags.option({
    options: ENGINE_CHOICES,
    default: 'auto',
    description:
      'engine that runs the model; auto takes the first that passes its self-check: onnx, then tfjs with ' +
      'tfjs-node-gpu, tfjs-node, WebAssembly, JavaScript',
  } as const)(),
  device: device(),
  compute: compute('type of matrix products; with f16 the error against f32 is reported'),
  weights: weightForm(),
  threads: threads(),
  full: Flags.boolean({ description: 'run the whole model layer by layer, at any size' }),
  details,
  save: savedFile({
    description: 'write logits and the output of every block to a safetensors file',
    example: 'logits.safetensors',
  }),
  against: Flags.string({
    helpValue: 'OTHER',
    description:
      'compare with a checkpoint, a config, or the same model in float32 on another engine (tfjs, onnx) or ' +
      'device (cpu, cuda, webgpu, …)',
    exclusive: NOT_COMPARED,
  }),
  ...logitLimits('against', 'weights'),
  overfit: Flags.boolean({
    description:
      'train on one batch for some seconds on the CPU, with the training section of the file: the loss must fall',
    exclusive: NOT_TRAINED,
  }),
  steps: count({
    description: 'with --overfit: training steps [default: 40]',
    dependsOn: ['overfit'],
  }),
  seconds: count({
    description: 'with --overfit: most seconds of training [default: 20]',
    dependsOn: ['overfit'],
  }),
  lr: learningRate({
    description: 'with --overfit: instead of that of the file [default: 0.001]',
    dependsOn: ['overfit'],
  }),
  trace: Flags.boolean({
    description: 'print the shape of every step and run nothing',
    exclusive: NOT_TRACED,
  }),
};

export type QuickTestFlags = OutputFlags & ParsedFlags<typeof quickTestFlags>;
