/** The flags of `minimind convert-checkpoint`. */
import * as Flags from '@oclif/core/flags';
import { CONTAINER_NAMES } from '../../checkpoint/formats.js';
import type { Merge } from '../../convert/conversion/conversion-choices.js';
import {
  CONVERTED_DTYPE_NAMES,
  EXTENSIONS,
  LAYOUT_NAMES,
  NAMING_SCHEMES,
  QUANTIZATION_GROUP_NAMES,
  QUANTIZATION_NAMES,
  TIES,
} from '../../convert/conversion/conversion-choices.js';
import type { OutputFlags } from '../base-command.js';
import {
  details,
  device,
  ENGINE_CHOICES,
  offline,
  type ParsedFlags,
  readAs,
  setOf,
  stateDict,
  threads,
} from './flags.js';
import { partsFlags } from './parts-flags.js';
import { logitLimits } from './thresholds.js';
import { bytesLimit, count, seedOf, tokens, unreadable } from './value-flags.js';

/** `mean`, `first` or `layer:N`. */
const merge = Flags.custom<Merge>({
  helpValue: 'mean|first|layer:N',
  parse: async (written) => {
    const text = written.trim().toLowerCase();
    if (text === 'mean' || text === 'first') return text;
    if (text === 'average' || text === 'avg') return 'mean';
    const [, layer] = /^(?:layer[:=]?)?(\d{1,5})$/.exec(text) ?? [];
    if (layer !== undefined) return { layer: Number(layer) };
    const suggestion = 'write --merge mean, or --merge layer:0 for one layer';
    return unreadable('merge', text, 'mean, first or layer:N', suggestion);
  },
});

/** A relative error such as `0.05`. */
const fraction = Flags.custom<number>({
  helpValue: 'E',
  parse: async (text, _context, { name }) => {
    const value = text.trim().endsWith('%') ? Number.parseFloat(text) / 100 : Number(text);
    if (text.trim() !== '' && value > 0 && value < 1) return value;
    const suggestion = `write it as in --${name} 0.05 or --${name} 5%`;
    return unreadable(name, text, 'a number between 0 and 1', suggestion);
  },
});

export const convertFlags = {
  to: Flags.option({
    options: LAYOUT_NAMES,
    description: 'SRTE layout of the output',
    exclusive: ['target', 'dialect'],
    helpGroup: 'SRTE',
  } as const)(),
  target: Flags.string({
    helpValue: 'FILE',
    description: 'config of the output, instead of --to',
    exclusive: ['dialect'],
    helpGroup: 'SRTE',
  }),
  merge: merge({
    description: 'values of a shared table: mean of all layers, or one layer [default: mean]',
    helpGroup: 'SRTE',
  }),
  rank: count({
    description: 'rank of a low-rank pair',
    exclusive: ['max-error', 'target'],
    helpGroup: 'SRTE',
  }),
  'max-error': fraction({
    description: 'use the smallest rank with an SRTE error of at most E, as in 0.05',
    exclusive: ['target'],
    helpGroup: 'SRTE',
  }),
  'max-positions': tokens({
    description: 'rows of a table, as in 32k; more rows than the input has require --extend',
    exclusive: ['target'],
    helpGroup: 'SRTE',
  }),
  extend: Flags.option({
    options: EXTENSIONS,
    description: 'values of additional rows: the table repeated from row 0, or zeros',
    relationships: [{ type: 'some', flags: ['max-positions', 'target'] }],
    helpGroup: 'SRTE',
  } as const)(),
  seed: seedOf({
    description: 'seed of the low-rank search and of the tokens of --prove [default: 0]',
    helpGroup: 'SRTE',
  }),
  dtype: Flags.option({
    options: CONVERTED_DTYPE_NAMES,
    default: 'keep',
    description:
      'type of the parameters; q8_0 to q2_k_s only in a .gguf file; buffers keep their type',
    helpGroup: 'TENSOR',
  } as const)(),
  imatrix: Flags.string({
    helpValue: 'FILE',
    description:
      'importance matrix of llama-imatrix (.gguf or .dat), for --dtype q4_k_m and the like',
    helpGroup: 'TENSOR',
  }),
  quantize: Flags.option({
    options: QUANTIZATION_NAMES,
    description:
      'quantize weights of linear layers, into the layout pack-quantized of compressed-tensors',
    helpGroup: 'TENSOR',
  } as const)(),
  group: Flags.option({
    options: QUANTIZATION_GROUP_NAMES,
    dependsOn: ['quantize'],
    description: 'values that share a scale, for --quantize [default: 32]',
    helpGroup: 'TENSOR',
  } as const)(),
  dequantize: Flags.boolean({
    description: 'write packed weights of IN as floats, of the type of their scales or --dtype',
    exclusive: ['quantize'],
    helpGroup: 'TENSOR',
  }),
  saturate: Flags.boolean({
    description: 'clamp values that overflow --dtype',
    helpGroup: 'TENSOR',
  }),
  tie: Flags.option({
    options: TIES,
    description: 'tie embedding and head, with the values of one of them or their mean',
    helpGroup: 'TENSOR',
  } as const)(),
  dialect: Flags.option({
    options: NAMING_SCHEMES,
    dependsOn: ['heads'],
    description: 'convert names and RoPE of MiniMind files from before April 2025',
    helpGroup: 'TENSOR',
  } as const)(),
  heads: count({
    dependsOn: ['dialect'],
    description: 'attention heads of the model, as in 8, for --dialect',
    helpGroup: 'TENSOR',
  }),
  config: Flags.string({
    helpValue: 'FILE',
    description: 'config of the input [default: inside IN or in its folder]',
    exclusive: ['no-config', 'dialect'],
    helpGroup: 'INPUT',
  }),
  family: { ...readAs, exclusive: ['no-config', 'dialect'], helpGroup: 'INPUT' },
  offline: { ...offline, helpGroup: 'INPUT' },
  'no-config': Flags.boolean({
    description: 'ignore configs and convert by tensor names',
    helpGroup: 'INPUT',
  }),
  'state-dict': { ...stateDict, helpGroup: 'INPUT' },
  'merge-lora': Flags.string({
    helpValue: 'DIR',
    description: 'add the LoRA adapter in this folder or hf:ORG/NAME (PEFT) to the weights of IN',
    exclusive: ['prove', 'dialect'],
    helpGroup: 'INPUT',
  }),
  container: Flags.option({
    options: CONTAINER_NAMES,
    description: 'format of OUT [default: by its name]',
    helpGroup: 'OUT',
  } as const)(),
  'shard-size': bytesLimit({
    description: 'maximum size of a file in a folder, as in 2GB [default: 5GB]',
    helpGroup: 'OUT',
  }),
  set: setOf('override a value in the output’s config, as in training.max_seq_length=2048', 'OUT'),
  force: Flags.boolean({
    description: 'replace OUT, its config and the FILE of --output if they exist',
    helpGroup: 'OUT',
  }),
  engine: Flags.option({
    options: ENGINE_CHOICES,
    default: 'auto',
    description: 'engine for large matrix products',
  } as const)(),
  'dry-run': Flags.boolean({ description: 'show the plan and write nothing' }),
  check: Flags.boolean({
    description: 'read OUT back and compare every value',
    exclusive: ['dry-run'],
  }),
  prove: Flags.boolean({
    description: 'run IN and OUT on the same random tokens and compare the logits',
    exclusive: ['dry-run', 'no-config', 'dialect'],
  }),
  device: device({ dependsOn: ['prove'] }),
  context: tokens({
    dependsOn: ['prove'],
    description: 'tokens of --prove [default: 512, or all positions]',
  }),
  ...logitLimits('prove'),
  resume: Flags.boolean({
    description: 'continue an interrupted run; finished files are kept',
    exclusive: ['dry-run'],
  }),
  details,
  'max-memory': bytesLimit({
    description: 'memory limit [default: 512MB, or what the conversion needs]',
  }),
  threads: threads(),
  ...partsFlags,
};

export type ConvertFlags = OutputFlags & ParsedFlags<typeof convertFlags>;
