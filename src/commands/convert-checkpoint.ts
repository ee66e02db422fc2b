import fs from 'node:fs';
import path from 'node:path';
import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { usageError } from '../base/errors.js';
import { watchEnd } from '../base/files/early-end.js';
import { freeName } from '../base/files/file-system.js';
import { type NextLine, nextCommand } from '../base/text/setting.js';
import { percentText } from '../base/text/units.js';
import { CONTAINER_NAMES, containerOf } from '../checkpoint/formats.js';
import type { FlagsOf } from '../cli/base-command.js';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import {
  details,
  device,
  ENGINE_CHOICES,
  offline,
  readAs,
  setOf,
  stateDict,
  threads,
} from '../cli/flags/flags.js';
import {
  type PartsMode,
  partsFlags,
  partsMode,
  refuseIdlePlaces,
} from '../cli/flags/parts-flags.js';
import { exceededLogits, logitLimits } from '../cli/flags/thresholds.js';
import { bytesLimit, count, seedOf, tokens, unreadable } from '../cli/flags/value-flags.js';
import { pasteable } from '../cli/line-mistake.js';
import { progressDisplay, stepProgress } from '../cli/progress.js';
import { quote } from '../config/quote.js';
import type { Merge } from '../convert/conversion/conversion-choices.js';
import {
  CONVERTED_DTYPE_NAMES,
  CONVERTED_DTYPES,
  EXTENSIONS,
  LAYOUT_NAMES,
  NAMING_SCHEMES,
  QUANTIZATION_GROUP_NAMES,
  QUANTIZATION_GROUPS,
  QUANTIZATION_NAMES,
  QUANTIZATIONS,
  TIES,
} from '../convert/conversion/conversion-choices.js';
import type { ConversionResult } from '../convert/conversion/conversion-result.js';
import type { Proof } from '../convert/conversion/execute/check-output.js';
import type { ConversionRequest } from '../convert/conversion/job.js';
import { withAdapter } from '../input/model-input/adapter-model.js';
import { checkpointWarnings } from '../input/model-input/checkpoint-config.js';
import { openModelCheckpoint } from '../input/model-input/gguf/gguf-checkpoint.js';
import { onlyOneInFolder } from '../input/model-input/locate.js';
import { convertReport, exceedsBound } from '../report/convert/convert-report.js';
import { partsReport } from '../report/parts-report.js';

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

/** A relative error: `0.05`. */
const fraction = Flags.custom<number>({
  helpValue: 'E',
  parse: async (text, _context, { name }) => {
    const value = text.trim().endsWith('%') ? Number.parseFloat(text) / 100 : Number(text);
    if (text.trim() !== '' && value > 0 && value < 1) return value;
    const suggestion = `write it as in --${name} 0.05 or --${name} 5%`;
    return unreadable(name, text, 'a number between 0 and 1', suggestion);
  },
});

export default class ConvertCheckpoint extends BaseCommand {
  static override summary = 'Convert a checkpoint and report the error.';
  static override description =
    'Changes how a model stores its SRTE: one shared table, a low-rank pair, sines and cosines, or a table for each ' +
    'layer. Can also tie, cast or quantize weights, rename old tensors, convert between PyTorch files and safetensors, ' +
    'write GGUF files for llama.cpp, merge LoRA adapters, and put checkpoints of several processes together. ' +
    'The model may be larger than memory. All problems of the input are reported before anything is written. The ' +
    'input never changes, and OUT appears complete or not at all. Errors are measured on the written values.';
  static override readsHub = 'values' as const;
  static override examples = [
    '<%= config.bin %> export hybrid/tiny --random --save tiny.onnx',
    '<%= config.bin %> <%= command.id %> tiny.onnx model.pt',
    '<%= config.bin %> <%= command.id %> model.pt per-layer.pt --to per-layer --check',
    '<%= config.bin %> <%= command.id %> model.pt pair.safetensors --to low-rank --rank 4 --dry-run',
    '<%= config.bin %> <%= command.id %> model.pt proved --dtype bf16 --prove',
    '<%= config.bin %> <%= command.id %> tiny.onnx parts --dtype bf16 --parts 4 --plan plan.json',
    '<%= config.bin %> <%= command.id %> --plan plan.json --part 1',
    '<%= config.bin %> <%= command.id %> --plan plan.json --launch slurm',
    '<%= config.bin %> <%= command.id %> --plan plan.json --status',
  ];

  static override args = {
    in: Args.string({
      ignoreStdin: true,
      description:
        'a file, an index of shards, a folder, or hf:ORG/NAME [default: the checkpoint of this folder]',
    }),
    out: Args.string({
      ignoreStdin: true,
      description: 'a .safetensors, .pt or .gguf file, or a folder',
    }),
  };
  static override flags = {
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
        'type of the parameters; q8_0 and q4_0 only in a .gguf file; buffers keep their type',
      helpGroup: 'TENSOR',
    } as const)(),
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
    set: setOf(
      'override a value in the output’s config, as in training.max_seq_length=2048',
      'OUT',
    ),
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

  async run() {
    const { args, flags, metadata } = await this.parse(ConvertCheckpoint);
    const given = Object.keys(flags).filter((name) => !metadata.flags[name]?.setFromDefault);
    const files = [args.in, args.out].filter((each) => each !== undefined);
    const mode = partsMode(given, files);
    await this.refuseUnwritable(flags);
    if (mode !== undefined && mode !== 'parts') return this.#runParts(flags, mode, files[0]);
    await watchEnd();
    const { convert } = await import('../convert/conversion/conversion.js');
    const { outputTarget } = await import('../convert/conversion/job.js');
    const display = { ...progressDisplay(flags), ...stepProgress(flags) };
    const places = this.#placesOf(flags, args.in, args.out);
    outputTarget(places.out, flags.container);
    const opened = openModelCheckpoint(places.in, { stateDict: flags['state-dict'] });
    let checkpoint = opened;
    try {
      const adapter = flags['merge-lora'];
      const { config, family, 'no-config': noConfig } = flags;
      if (adapter !== undefined)
        checkpoint = await withAdapter(opened, adapter, { config, family, noConfig });
      await this.warnAbout(flags, checkpointWarnings(checkpoint));
      const request: ConversionRequest = {
        ...settingsOf(flags),
        checkpoint,
        out: places.out,
        display,
        warn: (warnings) => this.warnAbout(flags, warnings),
      };
      if (mode === 'parts') return await this.#planParts(flags, request);
      const result = await convert(request).finally(display.end);
      if (result.proof) process.exitCode = PROOF_EXIT_CODES[result.proof.verdict];
      await this.answer(flags, result, (each) =>
        convertReport(each, { again: isTaken(places.out, flags) ? undefined : realRun(this.argv) }),
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

  protected override pinsModels({ parts, plan }: { parts?: number; plan?: string }): boolean {
    return parts !== undefined || plan !== undefined;
  }

  async #planParts(flags: FlagsOf<typeof ConvertCheckpoint>, request: ConversionRequest) {
    const { makePlan } = await import('../scale/conversion-parts/parts.js');
    const { parts = 1, plan: file = '', 'state-dict': stateDict } = flags;
    const { version } = this.config;
    const result = await makePlan(request, { file, version }, { parts, stateDict }).finally(
      request.display.end,
    );
    return this.answer(flags, result, partsReport);
  }

  /** Works on a plan of parts, whose input and flags are in it. */
  async #runParts(
    flags: FlagsOf<typeof ConvertCheckpoint>,
    mode: Exclude<PartsMode, 'parts'>,
    out: string | undefined,
  ) {
    const { finishPlan, launchPlan, partsStatus, runPart } = await import(
      '../scale/conversion-parts/parts.js'
    );
    const { phase, part = 'auto', tasks, launch = 'slurm', image, claim } = flags;
    const mount = (models: readonly string[]) => this.mountModels(flags, models);
    const plan = { file: flags.plan ?? '', version: this.config.version, out };
    const display = { ...progressDisplay(flags), ...stepProgress(flags) };
    switch (mode) {
      case 'part': {
        const run = { part, phase: phase && (Number(phase) as 1 | 2), tasks, display, mount };
        const environment = process.env;
        const result = await runPart(plan, { ...run, environment }).finally(display.end);
        return this.answer(flags, result, partsReport);
      }
      case 'status':
        return this.answer(flags, await partsStatus(plan), partsReport);
      case 'finish': {
        const { force } = flags;
        const { check, wait } = { check: Boolean(flags.check), wait: Boolean(flags.wait) };
        const result = await finishPlan(plan, { display, mount, check, wait, force }).finally(
          display.end,
        );
        if (result.schema === 'minimind/convert-checkpoint@1') {
          return this.answer(flags, result, (each) => convertReport(each));
        }
        if (!result.isFinished) process.exitCode = 1;
        return this.answer(flags, result, partsReport);
      }
      case 'launch': {
        refuseIdlePlaces(flags);
        const program = [process.execPath, this.program];
        const [isSubmitted, isOffline] = [Boolean(flags.submit), flags.offline];
        const { force: isForced } = flags;
        const options = { isSubmitted, isForced, isOffline, program, tasks, image, claim };
        const result = await launchPlan(plan, launch, options);
        if (result.job && formatOf(flags) === 'table') {
          await this.write(flags, result.job.answer ?? result.job.text);
          return result;
        }
        return this.answer(flags, result, partsReport);
      }
    }
  }

  /**
   * Input and output. One alone is the output, unless it exists.
   * @throws UserError when one is missing.
   */
  #placesOf(flags: FlagsOf<typeof ConvertCheckpoint>, first?: string, second?: string) {
    if (first !== undefined && second !== undefined) return { in: first, out: second };
    if (first !== undefined && fs.existsSync(first)) {
      const { dir, name, ext } = path.parse(first);
      const out = freeName(path.join(dir, `${name}-shared${containerOf(ext) ? ext : ''}`));
      throw usageError(
        `expected IN and OUT, found only ${quote(first)}`,
        `write ${pasteable(['convert-checkpoint', ...this.argv.flatMap((word) => (word === first ? [word, out] : word))])}`,
      );
    }
    const out = first ?? freeName('shared.safetensors');
    const rest = first === undefined ? this.argv : this.argv.filter((word) => word !== first);
    const line = (found = 'model.pt') => pasteable(['convert-checkpoint', found, out, ...rest]);
    const found = onlyOneInFolder('checkpoint', line);
    if (first === undefined)
      throw usageError('expected OUT, found nothing', `write ${line(found)}`);
    this.note(flags, `using ${found === '.' ? 'the checkpoint in this folder' : found}`);
    return { in: found, out: first };
  }
}

/** The settings of a conversion, from flags. */
function settingsOf(
  flags: FlagsOf<typeof ConvertCheckpoint>,
): Omit<ConversionRequest, 'checkpoint' | 'out' | 'display' | 'warn'> {
  const { target, merge, rank, extend, tie, dequantize, saturate, dialect, heads } = flags;
  const { container, config, family, set, seed, engine, threads } = flags;
  const { resume, check, prove, device, context, output, force } = flags;
  return {
    ...{ target, merge, rank, extend, tie, dequantize, saturate, dialect, heads },
    ...{ container, config, family, set, seed, engine, threads },
    ...{ resume, check, prove, device, context, output, force },
    layout: flags.to,
    dtype: CONVERTED_DTYPES[flags.dtype],
    quantize: flags.quantize && QUANTIZATIONS[flags.quantize],
    group: flags.group && QUANTIZATION_GROUPS[flags.group],
    maxError: flags['max-error'],
    maxPositions: flags['max-positions'],
    shardSize: flags['shard-size'],
    maxMemory: flags['max-memory'],
    mergeLora: flags['merge-lora'],
    noConfig: flags['no-config'],
    dryRun: flags['dry-run'],
  };
}

function exceededError(result: ConversionResult, most: number | undefined): string[] {
  if (!exceedsBound(result)) return [];
  const error = percentText(result.srte?.relativeError ?? null);
  const bound = percentText(most ?? null);
  return [`stored SRTE error ${error} exceeds --max-error ${bound}; use a wider --dtype`];
}

/** Whether a real run would be refused, as the notes of the plan say. */
const isTaken = (out: string, { force }: { readonly force: boolean }): boolean =>
  !force && fs.existsSync(out);

/** The command line of a dry run without `--dry-run`. */
const realRun = (argv: readonly string[]): NextLine | undefined =>
  nextCommand(
    'convertCheckpoint',
    argv.filter((word) => word !== '--dry-run'),
  );

/** A requested proof that could not be made is not an error of the input. */
const PROOF_EXIT_CODES = { same: 0, differs: 0, failed: 1, skipped: 3 } as const satisfies Record<
  Proof['verdict'],
  number
>;
