import fs from 'node:fs';
import path from 'node:path';
import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { CONTAINER_NAMES, containerOf } from '../checkpoint/formats.js';
import { openCheckpoint } from '../checkpoint/open.js';
import { BaseCommand, type FlagsOf, formatOf } from '../cli/base-command.js';
import { pasteable } from '../cli/command-line.js';
import {
  bytesLimit,
  count,
  device,
  ENGINE_CHOICES,
  seedOf,
  setOf,
  stateDict,
  threads,
  tokens,
} from '../cli/flags.js';
import { progressDisplay, stepProgress } from '../cli/progress.js';
import { exceededLogits, logitLimits } from '../cli/thresholds.js';
import { quote } from '../config/quote.js';
import type { Merge } from '../conversion/choices.js';
import {
  DTYPE_NAMES,
  DTYPES,
  EXTENSIONS,
  LAYOUT_NAMES,
  NAMING_SCHEMES,
  TIES,
} from '../conversion/choices.js';
import type { ConversionResult } from '../conversion/conversion.js';
import type { Proof } from '../conversion/execute/check-output.js';
import { UserError } from '../errors.js';
import { warningsOf } from '../model-input/checkpoint-config.js';
import { checkpointOfFolder } from '../model-input/working-folder.js';
import { convertReport, exceedsBound } from '../report/convert/convert.js';
import { percentText } from '../text/units.js';

/** `mean`, `first` or `layer:N`. */
const merge = Flags.custom<Merge>({
  helpValue: 'mean|first|layer:N',
  parse: async (written) => {
    const text = written.trim().toLowerCase();
    if (text === 'mean' || text === 'first') return text;
    if (text === 'average' || text === 'avg') return 'mean';
    const [, layer] = /^(?:layer[:=]?)?(\d{1,5})$/.exec(text) ?? [];
    if (layer !== undefined) return { layer: Number(layer) };
    throw new UserError('usage', `--merge: expected mean, first or layer:N, found ${quote(text)}`, {
      suggestion: 'write --merge mean, or --merge layer:3 for one layer',
    });
  },
});

/** A relative error: `0.05`. */
const fraction = Flags.custom<number>({
  helpValue: 'E',
  parse: async (text, _context, { name }) => {
    const value = text.trim().endsWith('%') ? Number.parseFloat(text) / 100 : Number(text);
    if (text.trim() !== '' && value > 0 && value < 1) return value;
    throw new UserError(
      'usage',
      `--${name}: expected a number between 0 and 1, found ${quote(text)}`,
      {
        suggestion: `write it as in --${name} 0.05 or --${name} 5%`,
      },
    );
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
    in: Args.string({
      ignoreStdin: true,
      description:
        'a file, an index of shards, or a folder [default: the checkpoint of this folder]',
    }),
    out: Args.string({
      ignoreStdin: true,
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
    'max-positions': tokens({
      description: 'rows of a table: fewer are cut, for more say --extend',
      exclusive: ['target'],
      helpGroup: 'SRTE',
    }),
    extend: Flags.option({
      options: EXTENSIONS,
      description: 'what stands in further rows: the table again from its first row on, or zeros',
      helpGroup: 'SRTE',
    } as const)(),
    seed: seedOf({
      default: 0,
      description: 'seed of the search for a low-rank pair, and of the tokens of --prove',
      helpGroup: 'SRTE',
    }),
    dtype: Flags.option({
      options: DTYPE_NAMES,
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
    context: tokens({
      dependsOn: ['prove'],
      description: 'tokens of --prove [default: 512, or all positions]',
    }),
    ...logitLimits('prove'),
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
    const places = this.#placesOf(flags, args.in, args.out);
    const checkpoint = openCheckpoint(places.in, { stateDict: flags['state-dict'] });
    try {
      await this.warnAbout(flags, warningsOf(checkpoint));
      const result = await convert({
        ...flags,
        checkpoint,
        out: places.out,
        dtype: DTYPES[flags.dtype],
        display,
        warn: (warnings) => this.warnAbout(flags, warnings),
      }).finally(display.end);
      if (result.proof) process.exitCode = PROOF_EXIT_CODES[result.proof.verdict];
      await this.answer(flags, result, (each) =>
        convertReport(each, { flat: formatOf(flags) === 'csv' }),
      );
      const against = result.proof?.against;
      this.exceeded([
        ...exceededError(result, flags['max-error']),
        ...(against ? exceededLogits(flags, against.logits) : []),
      ]);
      return result;
    } finally {
      checkpoint.close();
    }
  }

  /**
   * Input and output. One alone is the output, unless it exists.
   * @throws UserError when one is missing.
   */
  #placesOf(flags: FlagsOf<typeof ConvertCheckpoint>, first?: string, second?: string) {
    if (first !== undefined && second !== undefined) return { in: first, out: second };
    const example = 'model.pt shared.safetensors';
    if (first !== undefined && fs.existsSync(first)) {
      const { dir, name, ext } = path.parse(first);
      const out = path.join(dir, `${name}-shared${containerOf(ext) ? ext : ''}`);
      throw new UserError('usage', `expected IN and OUT, found only ${quote(first)}`, {
        suggestion: `write ${pasteable(['convert-checkpoint', ...this.argv.flatMap((word) => (word === first ? [word, out] : word))])}`,
      });
    }
    const found = checkpointOfFolder('convert-checkpoint', example);
    if (first === undefined) {
      throw new UserError('usage', 'expected OUT, found nothing', {
        suggestion: `write minimind convert-checkpoint ${found} shared.safetensors`,
      });
    }
    this.note(flags, `using ${found === '.' ? 'the checkpoint in this folder' : found}`);
    return { in: found, out: first };
  }
}

function exceededError(result: ConversionResult, most: number | undefined): string[] {
  if (!exceedsBound(result)) return [];
  const error = percentText(result.srte?.relativeError ?? null);
  const bound = percentText(most ?? null);
  return [`stored SRTE error ${error} exceeds --max-error ${bound}; use a wider --dtype`];
}

/** A requested proof that could not be made is not an error of the input. */
const PROOF_EXIT_CODES = { same: 0, differs: 0, failed: 1, skipped: 3 } as const satisfies Record<
  Proof['verdict'],
  number
>;
