import fs from 'node:fs';
import * as Args from '@oclif/core/args';
import { usageError } from '../base/errors.js';
import { watchEnd } from '../base/files/early-end.js';
import { BaseCommand, givenFlags } from '../cli/base-command.js';
import { type ConvertFlags, convertFlags } from '../cli/flags/convert-flags.js';
import {
  conversionPlaces,
  conversionSettings,
  exceededLimits,
  PROOF_EXIT_CODES,
  realRun,
} from '../cli/flags/convert-request.js';
import { pictureFlags } from '../cli/flags/flags.js';
import { type PartsMode, partsMode } from '../cli/flags/parts-flags.js';
import { missingText } from '../cli/line/missing-file.js';
import { answeredFromPlan } from '../cli/plan-answer.js';
import { progressDisplay, stepProgress } from '../cli/progress.js';
import type { ConversionRequest } from '../convert/conversion/job.js';
import { checkpointWarnings } from '../input/model-input/checkpoint/checkpoint-config.js';
import { openedForConversion } from '../library/convert.js';
import { convertReport } from '../report/convert/convert-report.js';
import { partsReport } from '../report/parts-report.js';
import type { PartsResult } from '../scale/conversions/conversion-parts.js';

export default class ConvertCheckpoint extends BaseCommand {
  static override summary = 'Convert a checkpoint and report the error.';
  static override description =
    'Changes how a model stores its SRTE: one shared table, a low-rank pair, sines and cosines, or a table for each ' +
    'layer. Can also tie, cast or quantize weights, rename old tensors, convert between PyTorch files and safetensors, ' +
    'write GGUF files for llama.cpp, merge LoRA adapters, and put checkpoints of several processes together. ' +
    'The model may be larger than memory. All problems of the input are reported before anything is written. The ' +
    'input never changes, and OUT appears complete or not at all. Errors are measured on the written values.';
  static override baseFlags = pictureFlags;
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
  static override flags = convertFlags;

  async run() {
    const parsed = await this.parse(ConvertCheckpoint);
    const { args, flags } = parsed;
    const given = givenFlags(parsed);
    const files = [args.in, args.out].filter((each) => each !== undefined);
    const mode = partsMode(given, files);
    await this.refuseUnwritable(flags);
    if (mode !== undefined && mode !== 'parts') return this.#runParts(flags, mode, files[0]);
    await watchEnd();
    const { convert } = await import('../convert/conversion/conversion.js');
    const { outputTarget } = await import('../convert/conversion/job.js');
    const display = { ...progressDisplay(flags), ...stepProgress(flags) };
    const places = conversionPlaces(args.in, args.out, this.argv);
    if (places.isFound) {
      this.note(flags, `using ${places.in === '.' ? 'the checkpoint in this folder' : places.in}`);
    }
    outputTarget(places.out, flags.container);
    const checkpoint = await openedInput(places.in, flags);
    try {
      await this.warnAbout(flags, checkpointWarnings(checkpoint));
      const request: ConversionRequest = {
        ...conversionSettings(flags),
        checkpoint,
        out: places.out,
        display,
        warn: (warnings) => this.warnAbout(flags, warnings),
      };
      if (mode === 'parts') return await this.#planParts(flags, request);
      const result = await convert(request).finally(display.end);
      if (result.proof) process.exitCode = PROOF_EXIT_CODES[result.proof.verdict];
      await this.answer(flags, result, (each) =>
        convertReport(each, { again: realRun(places.out, flags, this.argv) }),
      );
      this.exceeded(exceededLimits(flags, result));
      return result;
    } finally {
      checkpoint.close();
    }
  }

  /** Plans the conversion of a file that exists. A value that is an example may not suit it. */
  override async checkWords(line: { readonly hasExample?: boolean; readonly isOfTool?: boolean }) {
    await super.checkWords(line);
    // A check reads nothing from the hub.
    const parsed = await this.readLine(ConvertCheckpoint);
    const { args, flags } = parsed;
    const isPlan = partsMode(givenFlags(parsed), []) !== undefined;
    // Lines of others name what is converted, and not always the result.
    const isMissing = args.in !== undefined && !fs.existsSync(args.in);
    if (line.isOfTool && isMissing && args.out === undefined && !isPlan) {
      throw usageError(missingText(args.in ?? ''));
    }
    const isAlone = args.in === undefined || fs.existsSync(args.in);
    if (args.out === undefined && isAlone && !isPlan) {
      conversionPlaces(args.in, args.out, this.argv);
    }
    if (line.hasExample || args.in === undefined || args.out === undefined) return;
    if (!fs.existsSync(args.in)) return;
    const { prepare } = await import('../convert/conversion/conversion.js');
    const checkpoint = await openedInput(args.in, flags);
    try {
      const { resources } = await prepare({
        ...conversionSettings(flags),
        ...{ checkpoint, out: args.out, dryRun: true },
        display: { ...progressDisplay({ quiet: true }), ...stepProgress({ quiet: true }) },
        warn: async () => undefined,
      });
      await resources.backend.close();
    } finally {
      checkpoint.close();
    }
  }

  protected override pinsModels({ parts, plan }: { parts?: number; plan?: string }): boolean {
    return parts !== undefined || plan !== undefined;
  }

  async #planParts(flags: ConvertFlags, request: ConversionRequest) {
    const { ConversionParts } = await import('../scale/conversions/conversion-parts.js');
    const { parts = 1, plan: file = '', 'state-dict': stateDict } = flags;
    const { version } = this.config;
    const result = await ConversionParts.make(
      request,
      { file, version },
      { parts, stateDict },
    ).finally(request.display.end);
    return this.answer(flags, result, partsReport);
  }

  /** Executes a plan of parts, which contains the input and flags. */
  async #runParts(flags: ConvertFlags, mode: Exclude<PartsMode, 'parts'>, out: string | undefined) {
    const { ConversionParts } = await import('../scale/conversions/conversion-parts.js');
    const { phase, part = 'auto', tasks, force, check } = flags;
    const named = { file: flags.plan ?? '', version: this.config.version, out };
    const parts = await ConversionParts[mode === 'status' ? 'open' : 'openToWrite'](named);
    const answer = (result: PartsResult) => this.answer(flags, result, partsReport);
    const isAnswered = await answeredFromPlan(mode, flags, parts, {
      ...{ answer, program: this.program, isForced: force, isOffline: flags.offline },
      write: (text) => this.write(flags, text),
    });
    if (isAnswered) return undefined;
    const mount = (models: readonly string[]) => this.mountModels(flags, models);
    const display = { ...progressDisplay(flags), ...stepProgress(flags) };
    if (mode === 'part') {
      const numbers = parts.partsFor({ part, tasks, environment: process.env });
      const run = { phase: phase && (Number(phase) as 1 | 2), display, mount };
      return answer(await parts.run(numbers, run).finally(display.end));
    }
    const finish = { display, mount, check: Boolean(check), force };
    const result = await parts.finish(finish).finally(display.end);
    return result.schema === 'minimind/convert-checkpoint@1'
      ? this.answer(flags, result, (each) => convertReport(each))
      : answer(result);
  }
}

/** The checkpoint of a conversion, with the adapter that it merges. */
const openedInput = (place: string, flags: ConvertFlags) =>
  openedForConversion(place, {
    ...flags,
    stateDict: flags['state-dict'],
    mergeLora: flags['merge-lora'],
    noConfig: flags['no-config'],
  });
