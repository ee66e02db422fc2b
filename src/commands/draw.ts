import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { usageError } from '../base/errors.js';
import { BaseCommand, type FlagsOf } from '../cli/base-command.js';
import { details, diagramFlags, modelFlags, settingFlags, sourceOf } from '../cli/flags/flags.js';
import { openModelSource } from '../input/model-input/model-source.js';
import { countParameters } from '../model/budget/parameters.js';
import { resolveSetting } from '../model/budget/profile-model.js';
import { comparedDiagram, countChanges } from '../model/diagram/compare-diagrams.js';
import { blockOf, flatNodes } from '../model/diagram/diagram-parts.js';
import { drawModel } from '../model/diagram/draw-model.js';
import type { DrawResult } from '../report/command-results.js';
import { drawReport } from '../report/draw/draw-report.js';
import { configText } from '../report/profile/setting-notes.js';

export default class Draw extends BaseCommand {
  static override summary = 'Draw the block diagram of a model.';
  static override description =
    'Shows the layers from the token ids to the logits, with shapes, parameters and FLOPs of a forward pass. Equal ' +
    'blocks are drawn once, with their count. Tensors that several boxes use have a number where they are stored, and ' +
    'an arrow with that number at each use. --details lists the tensors in the boxes, --block draws one block, ' +
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
    block: Flags.integer({ min: 0, helpValue: 'N', description: 'draw block N alone, from 0' }),
    against: Flags.string({
      helpValue: 'MODEL',
      description: 'mark what differs from this model',
    }),
  };

  async run() {
    const { args, flags } = await this.parse(Draw);
    const { file, family, model, setting, diagram } = await this.#drawn(args.file, flags);
    const other =
      flags.against === undefined
        ? undefined
        : await this.#drawn(flags.against, { ...flags, set: undefined });
    const whole = other ? comparedDiagram(diagram, other.diagram) : diagram;
    const { block } = flags;
    if (block !== undefined && block >= model.blocks.length) {
      throw usageError(
        `--block: expected at most ${model.blocks.length - 1}, found ${block}`,
        `write --block ${model.blocks.length - 1}`,
      );
    }
    const shown = block === undefined ? whole : blockOf(whole, block);
    const result: DrawResult = {
      schema: 'minimind/draw@1',
      file,
      family: family.name,
      parameters: countParameters(model).parameters,
      flops: diagram.root.flops,
      batch: setting.batch,
      context: setting.context,
      blocks: model.blocks.length,
      block: block ?? null,
      nodes: flatNodes(shown),
      links: shown.links,
      against: other ? { file: other.file, ...countChanges(whole) } : null,
    };
    const drawing = {
      diagram: shown,
      hasTensors: flags.details,
      isPart: block !== undefined,
    };
    return this.answer(flags, result, () => drawReport(result, drawing));
  }

  async #drawn(reference: string, flags: FlagsOf<typeof Draw>) {
    const source = await openModelSource(reference, sourceOf(flags));
    const { file, family, document, model, warnings, checkpoint } = await source.model(flags.set);
    if (checkpoint) this.note(flags, configText(checkpoint.config));
    await this.warnAbout(flags, warnings);
    const hints = family.trainingHints?.(document) ?? {};
    const { inference: setting } = resolveSetting(
      { ...flags, dtype: 'bf16', optimizer: 'adamw' },
      hints,
      model.positions,
    );
    return { file, family, model, setting, diagram: drawModel(model, setting) };
  }
}
