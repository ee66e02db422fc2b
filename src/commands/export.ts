import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { formatJson } from '../base/text/json.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { BaseCommand, type FlagsOf } from '../cli/base-command.js';
import { details, savedFile, sourceOf, weightFlags } from '../cli/flags/flags.js';
import { seedOf, weightForm } from '../cli/flags/value-flags.js';
import { progressDisplay } from '../cli/progress.js';
import type { ExportResult } from '../engine/export-files.js';
import { openWeighted } from '../input/model-input/checkpoint/weighted-model.js';
import type { ModelFile } from '../input/model-input/model-file.js';
import { exportReport } from '../report/models.js';

export default class Export extends BaseCommand {
  static override summary = 'Export a model as an ONNX graph with its weights.';
  static override description =
    'The graph maps token ids, input_ids (int64 [batch, sequence]), to logits (float32 [batch, sequence, ' +
    'vocabulary]), for any batch and length, without a cache. It opens in Netron and runs in ONNX Runtime of any ' +
    'language. Some operators are of ONNX Runtime itself (com.microsoft version 1, with operator set 20); other ' +
    'runtimes may lack them. Weights are float32 under the names of the checkpoint; with --weights, matrices are ' +
    'MatMulNBits of 8 or 4 bits, under NAME:codes, NAME:scales and NAME:zeroPoints. Beyond 1 GB they are in ' +
    'FILE.data next to the graph; keep both files together.';
  static override needsWeights = true;
  static override examples = [
    '<%= config.bin %> <%= command.id %> hybrid/tiny --random --save tiny.onnx',
    '<%= config.bin %> <%= command.id %> hybrid/tiny --random --weights int4-32 --save tiny-int4.onnx',
    '<%= config.bin %> convert-checkpoint tiny.onnx tiny',
    '<%= config.bin %> <%= command.id %> tiny --save again.onnx --json',
  ];

  static override args = {
    config: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'a preset, a config, - for standard input, or a checkpoint with its config',
    }),
  };
  static override flags = {
    ...weightFlags,
    seed: seedOf({ description: 'seed of --random [default: 0]', dependsOn: ['random'] }),
    weights: weightForm(),
    'external-data': Flags.boolean({
      description: 'always write the weights to FILE.data',
    }),
    details,
    save: savedFile({
      required: true,
      description: 'write the graph to FILE, whole or not at all, as in model.onnx',
      example: 'model.onnx',
    }),
    force: Flags.boolean({
      description: 'replace FILE and FILE.data if they exist',
      helpGroup: 'OUTPUT',
    }),
  };

  async run() {
    const { args, flags } = await this.parse(Export);
    await this.refuseUnwritable(flags);
    const opened = await openWeighted(args.config, sourceOf(flags), progressDisplay(flags));
    try {
      const { loaded, checkpoint, warnings } = opened;
      await this.warnAbout(flags, warnings);
      const result: ExportResult = {
        schema: 'minimind/export@1',
        config: loaded.file,
        family: loaded.family.name,
        checkpoint: checkpoint?.path ?? null,
        seed: checkpoint ? null : (flags.seed ?? 0),
        positions: loaded.model.positions,
        ...(await this.#written(loaded, checkpoint, flags)),
      };
      return await this.answer(flags, result, exportReport);
    } finally {
      opened.close();
    }
  }

  /** Loads the graph compiler. */
  async #written(
    { family, document, model }: ModelFile,
    checkpoint: Checkpoint | undefined,
    flags: FlagsOf<typeof Export>,
  ) {
    const { writeExport } = await import('../engine/export-files.js');
    const { planExport } = await import('../engine/onnx/plan-export.js');
    const { checkpointWeights, randomWeights } = await import('../engine/weights/weights.js');
    const weights = checkpoint
      ? checkpointWeights(model, checkpoint)
      : randomWeights(model, flags.seed ?? 0);
    const metadata = new Map([
      ['family', family.name],
      ['config', formatJson(document)],
    ]);
    const display = progressDisplay(flags);
    return writeExport({ ...flags, display }, (name) =>
      planExport(model, weights, {
        name,
        external: flags['external-data'],
        weightForm: flags.weights,
        version: this.config.version,
        metadata,
      }),
    );
  }
}
