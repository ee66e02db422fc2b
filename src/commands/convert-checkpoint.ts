import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { openCheckpoint } from '../checkpoint/open.js';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import { warningsOf } from '../cli/checkpoint-config.js';
import { bytesLimit, count, seed, set, stateDict, threads } from '../cli/flags.js';
import { quote } from '../config/quote.js';
import type { DialectName } from '../conversion/dialects.js';
import type { Container } from '../conversion/places.js';
import type { Extension, LayoutName, Merge, Tie } from '../conversion/request.js';
import { UserError } from '../errors.js';
import { convertReport } from '../report/convert.js';
import type { EngineChoice } from '../runtime/devices.js';
import type { EncodableDtype } from '../tensor/encode.js';

// As the files of conversion have them, which are loaded only when something is converted.
const LAYOUTS = ['shared', 'low-rank', 'sincos', 'per-layer'] as const satisfies LayoutName[];
const EXTENSIONS = ['repeat', 'zero'] as const satisfies Extension[];
const TIES = ['embed', 'head', 'mean'] as const satisfies Tie[];
const CONTAINERS = ['safetensors', 'pt'] as const satisfies Container[];
const DIALECTS = ['minimind'] as const satisfies DialectName[];
const ENGINES = ['auto', 'onnx', 'tfjs'] as const satisfies EngineChoice[];
const DTYPES = ['keep', 'f32', 'f16', 'bf16'] as const;

/** `mean`, `first` or `layer:N`. */
const merge = Flags.custom<Merge>({
  helpValue: 'mean|first|layer:N',
  parse: async (text) => {
    if (text === 'mean' || text === 'first') return text;
    const [, layer] = /^layer:(\d{1,5})$/.exec(text) ?? [];
    if (layer !== undefined) return { layer: Number(layer) };
    throw new UserError('usage', `--merge: ${quote(text)} is no way to merge tables`, {
      suggestion: 'write mean, first, or the number of a layer as in layer:3',
    });
  },
});

/** A relative error: `0.05`. */
const fraction = Flags.custom<number>({
  helpValue: 'E',
  parse: async (text, _context, { name }) => {
    const value = Number(text);
    if (text.trim() !== '' && value > 0 && value < 1) return value;
    throw new UserError('usage', `--${name}: ${quote(text)} is no number between 0 and 1`, {
      suggestion: `write one as in --${name} 0.05`,
    });
  },
});

export default class ConvertCheckpoint extends BaseCommand {
  static override summary = 'Turn a checkpoint into another layout, and tell what it costs.';
  static override description =
    'Makes one SRTE table out of those of all layers, or a low-rank pair, sines and cosines, or tables for ' +
    'each layer again; ties, casts and moves between PyTorch files and safetensors on the way. Tensors are ' +
    'read piece by piece, so a model may be larger than the memory. All that is missing, extra or misshapen ' +
    'is told before anything is written, the input is never changed, and the output appears whole or not at ' +
    'all. The report says how far each layer’s new table is from the one it had.';
  static override examples = [
    '<%= config.bin %> <%= command.id %> fixtures/checkpoints/valid/zip_proto5.pt shared.pt --to shared --dry-run',
    '<%= config.bin %> <%= command.id %> fixtures/checkpoints/valid/zip_proto5.pt low-rank.safetensors --to low-rank --rank 4',
    '<%= config.bin %> <%= command.id %> fixtures/hybrid/shared-lowrank-tied per-layer --to per-layer --dtype bf16 --check',
  ];

  static override args = {
    in: Args.string({ required: true, description: 'a file, an index of shards, or a folder' }),
    out: Args.string({
      required: true,
      description: 'a .safetensors or .pt file, or a folder for safetensors',
    }),
  };
  static override flags = {
    to: Flags.option({
      options: LAYOUTS,
      description: 'how the model is to have its SRTE',
      exclusive: ['target', 'dialect'],
    } as const)(),
    target: Flags.string({
      helpValue: 'CONFIG',
      description: 'a config to arrive at, instead of --to',
      exclusive: ['dialect'],
    }),
    merge: merge({
      default: 'mean',
      defaultHelp: 'mean',
      description: 'the shared table: the mean of all, the best there is, or that of one layer',
    }),
    rank: count({ description: 'rank of the low-rank pair', exclusive: ['max-error'] }),
    'max-error': fraction({
      description: 'instead of a rank: the smallest within this relative error of the table',
    }),
    'max-positions': count({ description: 'rows of the tables: fewer cut them' }),
    extend: Flags.option({
      options: EXTENSIONS,
      dependsOn: ['max-positions'],
      description: 'what stands in rows beyond: the table again from its first row on, or zeros',
    } as const)(),
    tie: Flags.option({
      options: TIES,
      description: 'make embedding and head one, with the weights of one of them, or their mean',
    } as const)(),
    dtype: Flags.option({
      options: DTYPES,
      default: 'keep',
      description: 'type of the parameters; buffers keep theirs',
    } as const)(),
    saturate: Flags.boolean({ description: 'cut values beyond the type to its largest' }),
    dialect: Flags.option({
      options: DIALECTS,
      dependsOn: ['heads'],
      description: 'names and RoPE of MiniMind files from before April 2025, turned into today’s',
    } as const)(),
    heads: count({
      dependsOn: ['dialect'],
      description: 'attention heads of the model, for --dialect',
    }),
    container: Flags.option({
      options: CONTAINERS,
      description: 'format of the output [default: by its name]',
    } as const)(),
    'shard-size': bytesLimit({
      description: 'the most that a shard holds [default: 5GB in a folder]',
    }),
    'max-memory': bytesLimit({ description: 'memory that it may take [default: 512MB]' }),
    config: Flags.string({
      helpValue: 'FILE',
      description: 'the config of the input [default: the one inside or beside it]',
      exclusive: ['no-config', 'dialect'],
    }),
    'no-config': Flags.boolean({ description: 'convert by names alone, whatever config there is' }),
    set,
    'state-dict': stateDict,
    seed,
    engine: Flags.option({
      options: ENGINES,
      default: 'auto',
      description: 'what multiplies matrices where there is much to multiply',
    } as const)(),
    threads: threads(),
    'dry-run': Flags.boolean({ description: 'print the plan, and write nothing' }),
    resume: Flags.boolean({ description: 'go on where an earlier run was cut short' }),
    check: Flags.boolean({ description: 'read the output again, and compare every value' }),
  };

  async run() {
    const { args, flags } = await this.parse(ConvertCheckpoint);
    const { convertCheckpoint } = await import('../cli/convert.js');
    const checkpoint = openCheckpoint(args.in, { stateDict: flags['state-dict'] });
    try {
      await this.warnAbout(flags, warningsOf(checkpoint));
      const result = await convertCheckpoint(checkpoint, args.out, {
        ...flags,
        dtype: flags.dtype === 'keep' ? undefined : DTYPE_OF[flags.dtype],
        warn: (warnings) => this.warnAbout(flags, warnings),
      });
      return await this.answer(flags, result, (each) =>
        convertReport(each, { flat: formatOf(flags) === 'csv' }),
      );
    } finally {
      checkpoint.close();
    }
  }
}

const DTYPE_OF = { f32: 'F32', f16: 'F16', bf16: 'BF16' } as const satisfies Record<
  string,
  EncodableDtype
>;
