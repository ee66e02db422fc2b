import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { isAdapterFolder } from '../base/files/config-names.js';
import { openAdapterFiles } from '../checkpoint/adapter/adapter.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { openCheckpoint } from '../checkpoint/open.js';
import { bytesOfViews, viewsOf } from '../checkpoint/sharing.js';
import type { Measurement } from '../checkpoint/statistics.js';
import { measureTensors } from '../checkpoint/statistics.js';
import type { StoredTensor } from '../checkpoint/stored-tensor.js';
import type { FlagsOf } from '../cli/base-command.js';
import { BaseCommand, givenFlags } from '../cli/base-command.js';
import { details, offline, pictureFlags, readAs, stateDict } from '../cli/flags/flags.js';
import { counts } from '../cli/flags/value-flags.js';
import { filterByName } from '../cli/name-filter.js';
import { progress } from '../cli/progress.js';
import type { SrteSurvey } from '../convert/conversion/srte/survey-srte.js';
import { checkpointWarnings } from '../input/model-input/checkpoint/checkpoint-config.js';
import { inspectCheckpoint } from '../library/inspect.js';
import { inspectReport } from '../report/inspect/inspect-report.js';

export default class Inspect extends BaseCommand {
  static override summary = 'Show the tensors of a checkpoint.';
  static override description =
    'Reads safetensors, PyTorch files (.pt, .pth, .bin, also from before 1.6), GGUF, ONNX, sharded models by their folder or ' +
    'index, checkpoints of several processes (DCP, DeepSpeed ZeRO), and LoRA adapters. Pickles are read as data; nothing in them is ever run. Only the index is read, unless --stats, --hash or ' +
    '--srte need the values.';
  static override baseFlags = pictureFlags;
  static override readsHub = 'index' as const;
  static override examples = [
    '<%= config.bin %> export hybrid/tiny --random --save tiny.onnx',
    '<%= config.bin %> <%= command.id %> tiny.onnx',
    '<%= config.bin %> convert-checkpoint tiny.onnx tiny.safetensors',
    '<%= config.bin %> <%= command.id %> tiny.safetensors --stats',
    "<%= config.bin %> <%= command.id %> tiny.safetensors --filter '*.weight' --hash --format csv",
  ];

  static override args = {
    path: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'a file, an index of shards, or a folder',
    }),
  };
  static override flags = {
    tensors: Flags.boolean({ description: 'list every tensor' }),
    filter: Flags.string({
      helpValue: 'GLOB',
      description:
        'list only tensors with matching names, as in *.bias, layers.{0,1}.* or *.[qkv].weight',
    }),
    stats: Flags.boolean({
      description:
        'add minimum, maximum, mean, deviation, norm, zeros, NaN and infinities of each tensor',
    }),
    hash: Flags.boolean({ description: 'add the sha256 of the values of each tensor' }),
    srte: Flags.boolean({
      description: 'compare the SRTE tables of the layers and estimate the error of sharing them',
    }),
    ranks: counts({
      dependsOn: ['srte'],
      description: 'ranks for --srte [default: powers of two]',
    }),
    details,
    family: readAs,
    offline,
    'state-dict': stateDict,
  };

  async run() {
    const parsed = await this.parse(Inspect);
    const { args, flags } = parsed;
    const adapter = isAdapterFolder(args.path) ? openAdapterFiles(args.path) : undefined;
    let checkpoint: Checkpoint;
    try {
      const options = { stateDict: flags['state-dict'], keepPacked: true };
      checkpoint = adapter?.checkpoint ?? openCheckpoint(args.path, options);
    } catch (error) {
      const { weightsInstead } = await import('../cli/undescribed.js');
      const { weightsReport } = await import('../report/weights-report.js');
      const weights = await weightsInstead(error, args.path, { given: givenFlags(parsed) });
      return this.answer(flags, weights, weightsReport);
    }
    try {
      await this.warnAbout(flags, checkpointWarnings(checkpoint));
      const chosen = filterByName(checkpoint.tensors, flags.filter);
      const result = await inspectCheckpoint(checkpoint, {
        ...{ chosen, adapter, family: flags.family, filter: flags.filter },
        measurements: await measured(chosen, flags),
        srte: flags.srte ? await surveyed(checkpoint, flags) : undefined,
      });
      const listed = [flags.tensors, flags.stats, flags.hash, flags.filter !== undefined].some(
        Boolean,
      );
      return await this.answer(flags, result, (each) => inspectReport(each, { listed }));
    } finally {
      checkpoint.close();
    }
  }
}

type InspectFlags = FlagsOf<typeof Inspect>;

async function measured(
  tensors: ReadonlyMap<string, StoredTensor>,
  flags: InspectFlags,
): Promise<ReadonlyMap<string, Measurement>> {
  if (!flags.stats && !flags.hash) return new Map();
  const views = viewsOf(tensors);
  const { add, end } = progress(flags, 'reading', bytesOfViews(views));
  try {
    return await measureTensors(views, { ...flags, onBytes: add });
  } finally {
    end();
  }
}

async function surveyed(checkpoint: Checkpoint, flags: InspectFlags): Promise<SrteSurvey> {
  const { bytesToSurvey, surveySrte } = await import('../convert/conversion/srte/survey-srte.js');
  const { add, end } = progress(flags, 'comparing', await bytesToSurvey(checkpoint));
  try {
    return await surveySrte(checkpoint, {
      ...(flags.ranks && { ranks: flags.ranks }),
      onBytes: add,
    });
  } finally {
    end();
  }
}
