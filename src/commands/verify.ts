import path from 'node:path';
import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { usageError } from '../base/errors.js';
import { hubSuggestion } from '../base/text/hub-names.js';
import { shellWord } from '../base/text/words.js';
import { openAdapter } from '../checkpoint/adapter/adapter.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { BaseCommand, type FlagsOf } from '../cli/base-command.js';
import { details, offline, readAs, set, sourceOf, stateDict } from '../cli/flags/flags.js';
import { LineMistake, pasteable } from '../cli/line/line-mistake.js';
import { progressDisplay } from '../cli/progress.js';
import type { ConfigDocument } from '../config/document.js';
import { basePathOf } from '../input/model-input/adapter-model.js';
import { checkpointWarnings, findConfig } from '../input/model-input/checkpoint-config.js';
import { openModelCheckpoint } from '../input/model-input/gguf/gguf-checkpoint.js';
import {
  hasWeights,
  isAdapterPlace,
  locateModel,
  type ModelPlace,
} from '../input/model-input/locate.js';
import { modelOf } from '../input/model-input/model-file.js';
import { openModelSource, withErrorOf } from '../input/model-input/model-source.js';
import { onnxViewOf } from '../input/model-input/onnx/onnx-tensors.js';
import { readConfig } from '../input/model-input/read-model-file.js';
import type { VerifyAnswer } from '../input/model-input/verify-checkpoint.js';
import {
  compareValues,
  type ValueComparison,
  type VerifyResult,
  verifiedAdapter,
  verifyCheckpoint,
} from '../input/model-input/verify-checkpoint.js';
import { verifyReport } from '../report/verify-report.js';

export default class Verify extends BaseCommand {
  static override summary = 'Check a checkpoint against a config.';
  static override description =
    'Reports tensors that are missing, extra, of the wrong shape or type, or wrongly tied, and the config values that ' +
    'would explain them. A LoRA adapter is checked against the config of its model. Reads the index, the values of tied tensors, and up to 1 GiB of weights for NaN and infinities; with --scan and ' +
    '--values all values. Exits with 1 if something is wrong.';
  static override readsHub = 'index' as const;
  static override examples = [
    '<%= config.bin %> export hybrid/tiny --random --save tiny.onnx',
    '<%= config.bin %> <%= command.id %> tiny.onnx',
    '<%= config.bin %> convert-checkpoint tiny.onnx tiny',
    '<%= config.bin %> <%= command.id %> tiny --values tiny.onnx',
    '<%= config.bin %> <%= command.id %> hybrid/tiny tiny --json',
  ];

  static override args = {
    config: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'a config, - for standard input, or a checkpoint with its config',
    }),
    checkpoint: Args.string({
      description: 'a file, also an exported ONNX graph, an index of shards, or a folder',
    }),
  };
  static override flags = {
    set,
    family: readAs,
    offline,
    'state-dict': stateDict,
    values: Flags.string({
      helpValue: 'ORIGINAL',
      description: 'also compare all values with those of another checkpoint of the model',
    }),
    scan: Flags.boolean({
      description: 'search weights of any size for NaN and infinities, also on the hub',
    }),
    details,
    strict: Flags.boolean({ description: 'treat warnings as errors' }),
  };

  async run() {
    const { args, flags } = await this.parse(Verify);
    const config = locateModel(args.config);
    const checkpointPlace = args.checkpoint === undefined ? config : locateModel(args.checkpoint);
    if (isAdapterPlace(checkpointPlace)) {
      const result = await this.#adapter(
        checkpointPlace.path,
        args.checkpoint && args.config,
        flags,
      );
      if (!result.matches) process.exitCode = 1;
      return await this.answer(flags, result, verifyReport);
    }
    const isOne = args.checkpoint === undefined;
    const isCheckpoint = config.kind === 'checkpoint';
    if (isOne && !isCheckpoint) {
      const found = `expected CONFIG and CHECKPOINT, found only ${args.config}`;
      const folder = path.dirname(args.config);
      const isBeside = config.kind === 'config' && path.basename(args.config) === 'config.json';
      if (isBeside && hasWeights(folder))
        throw new LineMistake(found, [this.#withWords({ [args.config]: folder })]);
      const suggestion = config.kind === 'config' ? undefined : hubSuggestion(args.config);
      throw usageError(found, suggestion ?? commandForm(args.config, 'CHECKPOINT'));
    }
    // The user may have given a folder with weights for the config in it.
    if (!isOne && isCheckpoint && config.config === config.path) {
      const found = `expected a config first, found the checkpoint ${args.config}`;
      const { path: other, kind } = checkpointPlace;
      throw kind === 'checkpoint'
        ? usageError(found, commandForm('CONFIG', args.config))
        : new LineMistake(found, [
            {
              ...this.#withWords({ [args.config]: other, [other]: args.config }),
              models: [other],
            },
          ]);
    }
    const checkpoint = await this.#opened(config, checkpointPlace, flags);
    try {
      const found = await findConfig(checkpoint, isOne ? undefined : config);
      if (!found) {
        const { path: file } = checkpoint;
        throw usageError(`no config in ${file} or its folder`, commandForm('CONFIG', file));
      }
      const verified = await verifyCheckpoint(checkpoint, found.document, flags, {
        display: progressDisplay(flags),
        warn: (warnings) => this.warnAbout(flags, warnings),
      });
      const values =
        flags.values === undefined
          ? undefined
          : await this.#compared(checkpoint, found.document, verified, flags);
      const graph = onnxViewOf(checkpoint);
      const differs = values !== undefined && values.beyond.length + values.missing.length > 0;
      const matches = verified.matches && !differs;
      if (!matches) process.exitCode = 1;
      const result: VerifyAnswer = {
        schema: 'minimind/verify@1',
        ...verified,
        matches,
        ...(values && { values }),
        ...(graph && { onnx: graph }),
      };
      return await this.answer(flags, result, verifyReport);
    } finally {
      checkpoint.close();
    }
  }

  /** The line with some words replaced. */
  #withWords(others: Readonly<Record<string, string>>) {
    return { words: ['verify', ...this.argv.map((word) => others[word] ?? word)] };
  }

  /** Opens the checkpoint. @throws UserError with the faults of the config too, if both are wrong. */
  async #opened(
    config: ModelPlace,
    checkpoint: ModelPlace,
    flags: FlagsOf<typeof Verify>,
  ): Promise<Checkpoint> {
    try {
      const listing = 'listing' in checkpoint ? checkpoint.listing : undefined;
      return openModelCheckpoint(checkpoint.path, { stateDict: flags['state-dict'], listing });
    } catch (error) {
      if (checkpoint === config) throw error;
      throw await withErrorOf(error, checkpoint.path, config.path, async () =>
        modelOf(await readConfig(config), flags),
      );
    }
  }

  /** Checks an adapter against the config of its model. */
  async #adapter(
    folder: string,
    base: string | undefined,
    flags: FlagsOf<typeof Verify>,
  ): Promise<VerifyAnswer> {
    for (const flag of ['values', 'state-dict', 'scan'] as const) {
      if (!flags[flag]) continue;
      const merged = `minimind convert-checkpoint BASE merged --merge-lora ${shellWord(folder)}`;
      throw usageError(
        `--${flag}: expected the checkpoint of a whole model, found the LoRA adapter ${folder}`,
        flag === 'values'
          ? `merge it first: ${merged}; then minimind verify merged --values ${shellWord(flags.values ?? '')}`
          : `leave --${flag} out`,
      );
    }
    const adapter = await openAdapter(folder);
    try {
      const model =
        base ??
        basePathOf(adapter, (each) => `verify ${each} ${shellWord(adapter.checkpoint.path)}`);
      await this.warnAbout(flags, checkpointWarnings(adapter.checkpoint));
      const source = await openModelSource(model, sourceOf(flags));
      const loaded = await source.model(flags.set, { isChecked: false });
      return { schema: 'minimind/verify@1', ...verifiedAdapter(loaded, adapter) };
    } finally {
      adapter.checkpoint.close();
    }
  }

  async #compared(
    checkpoint: Checkpoint,
    document: ConfigDocument,
    { notes }: VerifyResult,
    flags: FlagsOf<typeof Verify>,
  ): Promise<ValueComparison> {
    const copies = notes.flatMap(({ kind, names }) => (kind === 'stored-again' ? names : []));
    const original = openModelCheckpoint(flags.values ?? '');
    try {
      return await compareValues(checkpoint, original, progressDisplay(flags), {
        copies: new Set(copies),
        described: await modelOf(document, flags),
      });
    } finally {
      original.close();
    }
  }
}

/** The form of the line, with the given input. */
const commandForm = (config: string, checkpoint: string): string =>
  `write it as in ${pasteable(['verify', config, checkpoint])}`;
