import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { usageError } from '../base/errors.js';
import { shellWord } from '../base/text/shell-words.js';
import { BaseCommand, type FlagsOf } from '../cli/base-command.js';
import { details, diagramFlags, modelFlags, settingFlags, sourceOf } from '../cli/flags/flags.js';
import { quote } from '../config/quote.js';
import type { ModelFile } from '../input/model-input/model-file.js';
import { openModelSource } from '../input/model-input/model-source.js';
import { asWhole } from '../input/model-input/whole-model.js';
import { hintsOf } from '../model/architecture/training-hints.js';
import { countParameters } from '../model/budget/parameters.js';
import { resolveSetting } from '../model/budget/profile-model.js';
import { comparedDiagram, countChanges } from '../model/diagram/compare-diagrams.js';
import type { Diagram } from '../model/diagram/diagram.js';
import { findPart, flatNodes } from '../model/diagram/diagram-parts.js';
import { drawModel } from '../model/diagram/draw-model.js';
import { configType } from '../model/diagram/tensor-types.js';
import type { DrawResult } from '../report/command-results.js';
import { drawReport } from '../report/draw/draw-report.js';
import { configText } from '../report/profile/setting-notes.js';

export default class Draw extends BaseCommand {
  static override summary = 'Draw the block diagram of a model.';
  static override description =
    'Shows the layers from the token ids to the logits, with shapes, parameters and FLOPs of a forward pass. Equal ' +
    'blocks are drawn once, with their count. Tensors that several boxes use have a number where they are stored, and ' +
    'an arrow with that number at each use. --details lists the tensors in the boxes, --block draws one part, ' +
    '--against marks the differences from another model. -o writes .svg, .html, .mmd (Mermaid) or .json.';
  static override baseFlags = diagramFlags;
  static override readsHub = 'index' as const;
  static override examples = [
    '<%= config.bin %> <%= command.id %> minimind2-small',
    '<%= config.bin %> <%= command.id %> hybrid/recommended --against hybrid/original',
    '<%= config.bin %> <%= command.id %> qwen3-next-80b-a3b --block 0 --details',
    '<%= config.bin %> <%= command.id %> minimind2-small --format mermaid',
  ];

  static override args = {
    file: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'a preset, a config, - for standard input, or a checkpoint with its config',
    }),
  };
  static override flags = {
    ...modelFlags,
    batch: settingFlags.batch,
    context: settingFlags.context,
    causal: settingFlags.causal,
    details,
    block: Flags.string({
      helpValue: 'N|PATH',
      description: 'draw block N alone, from 0, or a part such as layers.3.self_attn',
    }),
    against: Flags.string({
      helpValue: 'MODEL',
      description: 'mark what differs from this model',
    }),
  };

  async run() {
    const { args, flags } = await this.parse(Draw);
    const part = flags.block === undefined ? undefined : drawnBlock(flags.block);
    const { file, family, model, setting, diagram } = await this.#drawn(args.file, flags);
    const other =
      flags.against === undefined
        ? undefined
        : await this.#drawn(flags.against, { ...flags, set: undefined });
    const whole = other ? comparedDiagram(diagram, other.diagram) : diagram;
    const found = part === undefined ? undefined : foundPart(whole, part, model.blocks.length);
    const shown = found?.diagram ?? whole;
    if (found?.isLarger) {
      this.note(
        flags,
        `${quote(String(part))} has no box of its own: drawn is the smallest that has it`,
      );
    }
    const result: DrawResult = {
      schema: 'minimind/draw@1',
      file,
      family: family.name,
      parameters: countParameters(model).parameters,
      flops: diagram.root.flops,
      batch: setting.batch,
      context: setting.context,
      blocks: model.blocks.length,
      block: typeof part === 'number' ? part : null,
      part: typeof part === 'string' ? part : null,
      nodes: flatNodes(shown),
      links: shown.links,
      against: other ? { file: other.file, ...countChanges(shown) } : null,
    };
    const drawing = {
      diagram: shown,
      hasTensors: flags.details,
      isPart: part !== undefined,
    };
    return this.answer(flags, result, () => drawReport(result, drawing, found?.path));
  }

  async #drawn(reference: string, flags: FlagsOf<typeof Draw>) {
    const source = await openModelSource(reference, sourceOf(flags));
    const loaded = asWhole(await source.model(flags.set));
    const { file, family, model, warnings, checkpoint } = loaded;
    if (checkpoint) this.note(flags, configText(checkpoint.config));
    await this.warnAbout(flags, warnings);
    const { inference: setting } = resolveSetting(
      { ...flags, dtype: 'bf16', optimizer: 'adamw' },
      hintsOf(loaded),
      model.positions,
    );
    const isFolded = flags.block === undefined;
    const typeOf = loaded.typeOf ?? typeInConfig(loaded);
    return {
      file,
      family,
      model,
      setting,
      diagram: drawModel(model, setting, { isFolded, typeOf }),
    };
  }
}

/** The type that a config names for all weights. A quantized model has several. */
function typeInConfig({ document, quantization }: ModelFile) {
  const { torch_dtype: named }: { readonly torch_dtype?: unknown } = document.model;
  const type = quantization ? undefined : configType(named);
  return type === undefined ? undefined : () => type;
}

const drawnBlock = (block: string) => (/^\d+$/.test(block) ? Number(block) : block);

/** @throws UserError for a part that the model does not have, or has several times. */
function foundPart(diagram: Diagram, part: number | string, blocks: number) {
  const found = findPart(diagram, part);
  if (found.kind === 'found') return found;
  if (typeof part === 'number') {
    const last = blocks - 1;
    throw usageError(`--block: expected at most ${last}, found ${part}`, `write --block ${last}`);
  }
  const path = quote(part);
  if (found.kind === 'several') {
    const [first = ''] = found.paths;
    throw usageError(
      `--block: ${found.paths.length} parts are called ${path}`,
      `write --block ${shellWord(first)}`,
    );
  }
  throw usageError(
    `--block: unknown part ${path}`,
    found.nearest === undefined
      ? '--details lists the names'
      : `write --block ${shellWord(found.nearest)}`,
  );
}
