import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { countParameters } from '../budget/parameters.js';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import { fitFlags, fitRequestOf, PURPOSES } from '../cli/fit-flags.js';
import { modelFlags } from '../cli/flags.js';
import { hardwareFlags, hardwareOf, ownHardware } from '../cli/hardware-flags.js';
import { UserError } from '../errors.js';
import { fitsOf, forwardOn } from '../fit/fits.js';
import { doubtsOf } from '../fit/remedies/remedies.js';
import { withTable } from '../hardware/gpus.js';
import { openModelSource } from '../model-input/model-source.js';
import { fitReport, hardwareReport } from '../report/fit/fit.js';
import { configText } from '../report/inspect/inspect-text.js';

export default class Fit extends BaseCommand {
  static override summary =
    'Tell whether a model can be trained and served on some hardware, and how fast.';
  static override description =
    'Memory of the fullest GPU and the time of a step, each with a lower, an expected and an upper bound; what limits ' +
    'it; and if it does not fit, the fewest changes that make it fit, as flags. --explain derives every figure. Nothing is run, ' +
    'unless --this-machine measures what this machine can do.';
  static override examples = [
    '<%= config.bin %> <%= command.id %> configs/hybrid/recommended.yaml --gpu h100-80gb --gpus 8',
    '<%= config.bin %> <%= command.id %> configs/hybrid/bench-60m.yaml --gpu rtx-4090 --for training --micro-batch 8 --train-tokens 3e9',
    '<%= config.bin %> <%= command.id %> configs/minimind/minimind2.yaml --gpu l4 --for serving --qps 100 --prompt 200 --output 50 --p95 2s',
    '<%= config.bin %> <%= command.id %> --list-gpus',
  ];

  static override args = {
    file: Args.string({
      description: 'a config, - for standard input, or a checkpoint with its config',
    }),
  };
  static override flags = {
    // `--output` is tokens here, so the file of the answer has another flag.
    'output-file': Flags.string({
      char: 'o',
      helpValue: 'FILE',
      description: 'write the answer to FILE, whole or not at all',
      helpGroup: 'OUTPUT',
    }),
    ...modelFlags,
    for: Flags.option({
      options: PURPOSES,
      description: 'what is asked [default: both]',
    } as const)(),
    explain: Flags.boolean({ description: 'add formula, inputs and source of each figure' }),
    check: Flags.boolean({
      description:
        'exit with 1 unless it fits by the upper bounds, and the GPUs meet the load as expected',
    }),
    'list-gpus': Flags.boolean({ description: 'print the GPUs and machines that have a name' }),
    ...hardwareFlags,
    ...fitFlags,
  };

  async run() {
    const { args, flags } = await this.parse(Fit);
    const output = { ...flags, output: flags['output-file'] };
    if (flags['list-gpus']) {
      const known = withTable(await ownHardware(flags.hardware));
      const result = { schema: 'minimind/gpus@1', ...known } as const;
      return this.answer(output, result, hardwareReport);
    }
    const source = await openModelSource(args.file ?? refuseNothing(), flags);
    const loaded = await source.model(flags.set);
    if (loaded.checkpoint) this.note(output, configText(loaded.checkpoint.config));
    await this.warnAbout(output, loaded.warnings);
    const { quantization } = loaded;
    if (quantization?.served && flags.dtype === undefined && flags.for !== 'training') {
      const { dtype } = quantization.served;
      this.note(output, `Serving in ${dtype}: the weights are stored as ${quantization.label}.`);
    }
    const { profile = null, ...cluster } = await hardwareOf(flags);
    const fits = fitsOf(loaded.model, fitRequestOf(loaded, cluster, flags));
    const doubts = doubtsOf({ cluster, ...fits });
    const result = {
      schema: 'minimind/fit@1',
      file: loaded.file,
      family: loaded.family.name,
      parameters: countParameters(loaded.model).parameters,
      cluster,
      profile,
      ...fits,
      doubts,
      forward:
        profile &&
        forwardOn(profile, loaded, flags, (await import('../quicktest/memory.js')).memoryNeed),
    } as const;
    if (flags.check && doubts.length > 0) {
      process.exitCode = 1;
      this.note(output, `--check: ${doubts.map(({ text }) => text).join('; ')}`);
    }
    return this.answer(output, result, (each) =>
      fitReport(each, { explain: flags.explain, flat: formatOf(flags) === 'csv' }),
    );
  }
}

function refuseNothing(): never {
  throw new UserError('usage', 'no model is named', {
    suggestion: 'name a config, as in minimind fit configs/hybrid/tiny.yaml --gpu h100-80gb',
  });
}
