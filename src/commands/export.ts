import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { BaseCommand, type FlagsOf } from '../cli/base-command.js';
import { seed, set, stateDict } from '../cli/flags.js';
import { progressDisplay } from '../cli/progress.js';
import { UserError } from '../errors.js';
import { refuseUnwritable } from '../files/write-whole.js';
import {
  checkpointWarnings,
  configOf,
  openedFor,
  ownCheckpoint,
} from '../model-input/checkpoint-config.js';
import { loadModelFile, type ModelFile, modelOf } from '../model-input/model-file.js';
import { checkedAgainst } from '../model-input/verify-checkpoint.js';
import { exportReport } from '../report/models.js';

export default class Export extends BaseCommand {
  static override summary = 'Write a model as an ONNX graph with its weights.';
  static override description =
    'The graph takes token ids, input_ids (int64 [batch, sequence]), and gives logits (float32 [batch, sequence, ' +
    'vocabulary]), for any batch and any length; it keeps no cache. It opens in Netron and runs in ONNX Runtime ' +
    'of any language: some of its operators are ONNX Runtime’s own (com.microsoft, version 1, beside ' +
    'operator set 20), which other runtimes may lack. Weights are float32, under the names that the checkpoint ' +
    'gives them; beyond 1 GB they stand beside the graph in FILE.data, and the two must stay together.';
  static override examples = [
    '<%= config.bin %> <%= command.id %> fixtures/hf/llama -o llama.onnx',
    '<%= config.bin %> <%= command.id %> fixtures/hybrid/shared-lowrank-tied/config.yaml --checkpoint fixtures/hybrid/shared-lowrank-tied/model.safetensors -o model.onnx',
    '<%= config.bin %> <%= command.id %> configs/hybrid/tiny.yaml --random -o tiny.onnx --json',
  ];

  static override args = {
    config: Args.string({
      required: true,
      description: 'a config, - for standard input, or a checkpoint with its config',
    }),
  };
  static override flags = {
    set,
    checkpoint: Flags.string({
      helpValue: 'PATH',
      description: 'a file, an index or a folder with the weights',
    }),
    'state-dict': stateDict,
    random: Flags.boolean({
      description: 'instead of those of a checkpoint: random weights, by --seed',
      exclusive: ['checkpoint', 'state-dict'],
    }),
    seed,
    'external-data': Flags.boolean({
      description: 'write the weights to FILE.data, however few they are',
    }),
    output: Flags.string({
      char: 'o',
      required: true,
      helpValue: 'FILE',
      description: 'write the graph to FILE, whole or not at all',
      helpGroup: 'OUTPUT',
    }),
    force: Flags.boolean({
      description: 'replace FILE and FILE.data if they exist',
      helpGroup: 'OUTPUT',
    }),
  };

  async run() {
    const { args, flags } = await this.parse(Export);
    if (flags.output === '-') throw isNoFile();
    await refuseUnwritable(flags.output, flags.force);
    const own = ownCheckpoint(args.config, flags);
    try {
      if (own && flags.random) throw hasWeights(args.config);
      const described = own
        ? await modelOf((await configOf(own, undefined)).document, flags)
        : await loadModelFile(args.config, flags);
      await this.warnAbout(flags, described.warnings);
      return await this.#export(described, own, flags);
    } finally {
      own?.close();
    }
  }

  /** @param own The checkpoint that includes the config. */
  async #export(described: ModelFile, own: Checkpoint | undefined, flags: ExportFlags) {
    const checkpoint = own ?? openedFor(flags);
    try {
      if (!checkpoint && !flags.random) throw hasNoWeights(described.file);
      const held =
        checkpoint && (await checkedAgainst(described, checkpoint, progressDisplay(flags)));
      if (held) await this.warnAbout(flags, [...checkpointWarnings(checkpoint), ...held.warnings]);
      const loaded = held?.loaded ?? described;
      const result = {
        schema: 'minimind/export@1',
        config: loaded.file,
        family: loaded.family.name,
        checkpoint: checkpoint?.path ?? null,
        seed: checkpoint ? null : flags.seed,
        positions: loaded.model.positions,
        ...(await this.#written(loaded, checkpoint, flags)),
      } as const;
      // `--output` names the model: the answer goes to stdout.
      return await this.answer({ ...flags, output: undefined }, result, exportReport);
    } finally {
      if (checkpoint !== own) checkpoint?.close();
    }
  }

  /** Loads the graph compiler. */
  async #written(
    { family, document, model }: ModelFile,
    checkpoint: Checkpoint | undefined,
    flags: ExportFlags,
  ) {
    const { writeExport } = await import('../runtime/export-files.js');
    const { planExport } = await import('../runtime/onnx/plan-export.js');
    const { checkpointWeights } = await import('../runtime/weights.js');
    const { randomWeights } = await import('../runtime/weights.js');
    const weights = checkpoint
      ? checkpointWeights(model, checkpoint)
      : randomWeights(model, flags.seed);
    const metadata = new Map([
      ['family', family.name],
      ['config', JSON.stringify(document)],
    ]);
    const display = progressDisplay(flags);
    return writeExport({ ...flags, display }, (name) =>
      planExport(model, weights, {
        name,
        external: flags['external-data'],
        version: this.config.version,
        metadata,
      }),
    );
  }
}

type ExportFlags = FlagsOf<typeof Export>;

const isNoFile = () =>
  new UserError('usage', 'a graph goes to a file, not to standard output', {
    suggestion: 'name one, as in -o model.onnx',
  });

const hasWeights = (config: string) =>
  new UserError('usage', `${config} is a checkpoint, and --random is for weights of none`, {
    suggestion: 'leave --random out, or name a config in its place',
  });

const hasNoWeights = (file: string) =>
  new UserError('usage', `${file} is a config, which has no weights`, {
    suggestion: 'name their checkpoint with --checkpoint PATH, or say --random for random ones',
  });
