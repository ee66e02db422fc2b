/** The programs whose configs are read, in the order in which a file is recognised. */
import type { TrainingProgram } from '../program.js';
import { ACCELERATE } from './accelerate.js';
import { AXOLOTL } from './axolotl.js';
import { DEEPSPEED } from './deepspeed.js';
import { LITGPT } from './litgpt.js';
import { LLAMA_FACTORY, LLAMA_FACTORY_1 } from './llama-factory.js';
import { MEGATRON } from './megatron.js';
import { NANOTRON } from './nanotron.js';
import { TORCHTITAN } from './torchtitan.js';
import { TRANSFORMERS } from './transformers.js';

export const TRAINING_PROGRAMS = {
  axolotl: AXOLOTL,
  'llama-factory': LLAMA_FACTORY,
  'llama-factory-1': LLAMA_FACTORY_1,
  nanotron: NANOTRON,
  torchtitan: TORCHTITAN,
  litgpt: LITGPT,
  megatron: MEGATRON,
  accelerate: ACCELERATE,
  deepspeed: DEEPSPEED,
  transformers: TRANSFORMERS,
} as const satisfies Record<string, TrainingProgram>;

export type TrainingProgramName = keyof typeof TRAINING_PROGRAMS;

export const TRAINING_PROGRAM_NAMES = Object.keys(TRAINING_PROGRAMS) as TrainingProgramName[];
