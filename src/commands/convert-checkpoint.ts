import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { CONTAINER_NAMES } from '../checkpoint/formats.js';
import { openCheckpoint } from '../checkpoint/open.js';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import {
  bytesLimit,
  count,
  device,
  ENGINE_CHOICES,
  setOf,
  stateDict,
  threads,
} from '../cli/flags.js';
import { progressDisplay, stepProgress } from '../cli/progress.js';
import { quote } from '../config/quote.js';
import type { Merge } from '../conversion/choices.js';
import {
  CONVERTED_DTYPE_NAMES,
  CONVERTED_DTYPES,
  EXTENSIONS,
  LAYOUT_NAMES,
  NAMING_SCHEMES,
  TIES,
} from '../conversion/choices.js';
import type { Proof } from '../conversion/execute/check-output.js';
import { UserError } from '../errors.js';
import { checkpointWarnings } from '../model-input/checkpoint-config.js';
import { convertReport, exceedsBound } from '../report/convert/convert.js';
import { percentText } from '../text/units.js';

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
  static override summary = 'Bring a checkpoint into another layout, and tell what that costs.';
  static override description =
    'Makes one SRTE table of those of all layers, or a low-rank pair, or sines and cosines; or makes tables for ' +
    'each layer again. On the way it ties, casts, renames, and moves between PyTorch files and safetensors. A ' +
    'model may be larger than the memory. All that is missing, extra or misshapen is told before anything is ' +
    'written; the input is never changed; the output appears whole or not at all. The report says how far each ' +
    'layer’s SRTE is from the one that it had, measured on what was written.';
  static override examples = [
    '<%= config.bin %> <%= command.id %> fixtures/checkpoints/valid/zip_proto5.pt shared.pt --to shared --dry-run',
    '<%= config.bin %> <%= command.id %> fixtures/checkpoints/valid/zip_proto5.pt pair.safetensors --to low-rank --max-error 0.75',
    '<%= config.bin %> <%= command.id %> fixtures/hybrid/shared-lowrank-tied per-layer --to per-layer --dtype bf16 --check',
    '<%= config.bin %> <%= command.id %> fixtures/checkpoints/valid/zip_proto5.pt model.safetensors --container safetensors',
    '<%= config.bin %> <%= command.id %> fixtures/hybrid/shared-lowrank-tied proved --dtype bf16 --prove',
  ];

  static override args = {
    in: Args.string({ required: true, description: 'a file, an index of shards, or a folder' }),
    out: Args.string({
      required: true,
      description: 'a .safetensors or .pt file, or a folder for safetensors and their config',
    }),
  };
  static override flags = {
    to: Flags.option({
      options: LAYOUT_NAMES,
      description: 'the SRTE that the output has',
      exclusive: ['target', 'dialect'],
      helpGroup: 'SRTE',
    } as const)(),
    target: Flags.string({
      helpValue: 'FILE',
      description: 'instead of --to: the config of the output',
      exclusive: ['dialect'],
      helpGroup: 'SRTE',
    }),
    merge: merge({
      default: 'mean',
      defaultHelp: 'mean',
      description:
        'the table for all: the mean of those of the layers, which is the nearest to all, or one of them',
      helpGroup: 'SRTE',
    }),
    rank: count({
      description: 'rank of a low-rank pair',
      exclusive: ['max-error', 'target'],
      helpGroup: 'SRTE',
    }),
    'max-error': fraction({
      description:
        'instead of --rank: the smallest rank whose reported SRTE error is at most E, as in 0.05',
      exclusive: ['target'],
      helpGroup: 'SRTE',
    }),
    'max-positions': count({
      description: 'rows of a table: fewer are cut, for more say --extend',
      exclusive: ['target'],
      helpGroup: 'SRTE',
    }),
    extend: Flags.option({
      options: EXTENSIONS,
      description: 'what stands in further rows: the table again from its first row on, or zeros',
      helpGroup: 'SRTE',
    } as const)(),
    seed: Flags.integer({
      min: 0,
      default: 0,
      helpValue: 'N',
      description: 'of the search for a low-rank pair, and of the tokens of --prove',
      helpGroup: 'SRTE',
    }),
    dtype: Flags.option({
      options: CONVERTED_DTYPE_NAMES,
      default: 'keep',
      description: 'type of the parameters; buffers keep theirs',
      helpGroup: 'TENSOR',
    } as const)(),
    saturate: Flags.boolean({
      description: 'values that --dtype cannot hold become its largest, instead of an error',
      helpGroup: 'TENSOR',
    }),
    tie: Flags.option({
      options: TIES,
      description:
        'make embedding and head one tensor, with the values of one of them or their mean',
      helpGroup: 'TENSOR',
    } as const)(),
    dialect: Flags.option({
      options: NAMING_SCHEMES,
      dependsOn: ['heads'],
      description:
        'turn the names and the RoPE of MiniMind files from before April 2025 into today’s',
      helpGroup: 'TENSOR',
    } as const)(),
    heads: count({
      dependsOn: ['dialect'],
      description: 'attention heads of the model, for --dialect',
      helpGroup: 'TENSOR',
    }),
    config: Flags.string({
      helpValue: 'FILE',
      description: 'the config of the input [default: the one inside or beside it]',
      exclusive: ['no-config', 'dialect'],
      helpGroup: 'INPUT',
    }),
    'no-config': Flags.boolean({
      description: 'convert by names alone, whatever config there is',
      helpGroup: 'INPUT',
    }),
    'state-dict': { ...stateDict, helpGroup: 'INPUT' },
    container: Flags.option({
      options: CONTAINER_NAMES,
      description: 'format of OUT [default: by its name]',
      helpGroup: 'OUT',
    } as const)(),
    'shard-size': bytesLimit({
      description: 'the most that a file of a folder holds, as in 2GB [default: 5GB]',
      helpGroup: 'OUT',
    }),
    set: setOf(
      'override a value of the output’s config, as in training.max_seq_length=2048',
      'OUT',
    ),
    force: Flags.boolean({
      description: 'replace OUT, its config and the FILE of --output, if they exist',
      helpGroup: 'OUT',
    }),
    engine: Flags.option({
      options: ENGINE_CHOICES,
      default: 'auto',
      description: 'what multiplies matrices where there is much to multiply',
    } as const)(),
    'dry-run': Flags.boolean({ description: 'print the plan, and write nothing' }),
    check: Flags.boolean({ description: 'read OUT again, and compare every value' }),
    prove: Flags.boolean({
      description:
        'run IN and OUT on the same random tokens at the end, and tell how far they are apart',
      exclusive: ['dry-run', 'no-config', 'dialect'],
    }),
    device: device({ dependsOn: ['prove'] }),
    context: count({
      dependsOn: ['prove'],
      description: 'tokens of --prove [default: 512, or all positions]',
    }),
    resume: Flags.boolean({
      description: 'go on where a run was cut short: what it had finished is kept',
    }),
    'max-memory': bytesLimit({ description: 'memory that it may take [default: 512MB]' }),
    threads: threads(),
  };

  async run() {
    const { args, flags } = await this.parse(ConvertCheckpoint);
    const { convert } = await import('../conversion/conversion.js');
    await this.refuseUnwritable(flags);
    const display = { ...progressDisplay(flags), ...stepProgress(flags) };
    const checkpoint = openCheckpoint(args.in, { stateDict: flags['state-dict'] });
    try {
      await this.warnAbout(flags, checkpointWarnings(checkpoint));
      const result = await convert({
        ...flags,
        checkpoint,
        out: args.out,
        dtype: CONVERTED_DTYPES[flags.dtype],
        display,
        warn: (warnings) => this.warnAbout(flags, warnings),
      }).finally(display.end);
      if (exceedsBound(result)) {
        const error = percentText(result.srte?.relativeError ?? null);
        const most = percentText(flags['max-error'] ?? null);
        const why = `as it is stored, the SRTE error is ${error}, more than --max-error ${most}`;
        this.note(flags, `${why}: use a wider --dtype`);
        process.exitCode = 1;
      } else if (result.proof) process.exitCode = PROOF_EXIT_CODES[result.proof.verdict];
      return await this.answer(flags, result, (each) =>
        convertReport(each, { flat: formatOf(flags) === 'csv' }),
      );
    } finally {
      checkpoint.close();
    }
  }
}

/** A requested proof that could not be made is not an error of the input. */
const PROOF_EXIT_CODES = { same: 0, differs: 0, failed: 1, skipped: 3 } as const satisfies Record<
  Proof['verdict'],
  number
>;
