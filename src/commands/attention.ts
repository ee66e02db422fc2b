import * as Flags from '@oclif/core/flags';
import { usageError } from '../base/errors.js';
import { refuseBroken } from '../base/text/relations.js';
import { formatBytes, formatInteger, percentText } from '../base/text/units.js';
import { joined } from '../base/text/words.js';
import { BaseCommand, type FlagsOf } from '../cli/base-command.js';
import { details, modelArgument, modelFlags, sourceOf } from '../cli/flags/flags.js';
import { oneGpuName } from '../cli/flags/hardware-flags.js';
import {
  bytesLimit,
  count,
  counts,
  dtype,
  ratios,
  share,
  tokenCounts,
  tokens,
} from '../cli/flags/value-flags.js';
import type { AttentionAnswer } from '../estimate/fit/training/attention-time.js';
import { attentionSpeed } from '../estimate/fit/training/attention-time.js';
import { clusterNamed } from '../estimate/hardware/cluster-named.js';
import { onChipMemoryOf } from '../estimate/hardware/gpu.js';
import { openModelSource } from '../input/model-input/model-source.js';
import { attentionMethodsOf } from '../model/budget/attention/attention-methods.js';
import { longTextsOf } from '../model/budget/attention/long-texts.js';
import { matchRatios } from '../model/budget/attention/match-ratios.js';
import { normOperations } from '../model/budget/norm-operations.js';
import { attentionReport } from '../report/attention-report.js';
import { configText } from '../report/profile/setting-notes.js';

/** Default overlap of windows over a text, as a share of a window. */
const USUAL_OVERLAP = 0.5;

export default class Attention extends BaseCommand {
  static override summary = 'Compare methods of attention on one model.';
  static override description =
    'Counts plain, flash, grouped, sliding-window, hierarchical and block-sparse attention with the heads and layers of the ' +
    'model: memory of the scores, HBM traffic (IO model of the FlashAttention paper), FLOPs, KV cache, and how far ' +
    'back a token reaches. With --chunk, compares ways to read a text longer than the training instead: truncation, chunks, ' +
    'overlapping windows, chunks with a global model, and a sparse mask. --details has every context, --explain the formulas. Compares the operations of RMSNorm and LayerNorm, too.';
  static override readsHub = 'index' as const;
  static override examples = [
    '<%= config.bin %> <%= command.id %> minimind2-small',
    '<%= config.bin %> <%= command.id %> minimind2-small --context 512,2048,8192 --gpu h100 --window 256 --block 64',
    '<%= config.bin %> <%= command.id %> minimind2-small --context 8192 --chunk 512 --overlap 50%',
    '<%= config.bin %> <%= command.id %> hybrid/original --key-heads 16,4,1 --published 2,8,32,3.8,5.2',
  ];

  static override args = {
    file: modelArgument(),
  };
  static override flags = {
    ...modelFlags,
    context: tokenCounts({
      description:
        'contexts in tokens, as in 512,2k,8k [default: 512,2048,8192, or up to the positions of the model]',
    }),
    dtype: dtype({ default: 'bf16', description: 'element type of scores, keys and values' }),
    window: tokens({
      description:
        'tokens of the window [default: the largest of the model, or 1024; with --chunk half a chunk]',
    }),
    chunk: tokens({
      description: 'compare ways to read a longer text with a model of so many tokens, as in 512',
    }),
    overlap: share({
      description: `share of a window that the next one reads again, with --chunk [default: ${percentText(USUAL_OVERLAP)}]`,
    }),
    block: count({ default: 128, description: 'tokens of a block of the block-sparse mask' }),
    'global-heads': count({
      description:
        'heads without a window in the hierarchical row [default: as in the model, or 2]',
    }),
    'key-heads': counts({
      description:
        'key heads of grouped attention, a row each [default: as in the model, or a quarter of the heads]',
    }),
    gpu: Flags.string({
      helpValue: 'NAME',
      default: 'a100-80gb',
      description: 'GPU whose shared memory holds a tile (fit --list-gpus)',
    }),
    'on-chip': bytesLimit({
      description: 'memory on the chip for a tile, as in 96KiB [default: that of --gpu]',
      exclusive: ['gpu'],
    }),
    published: ratios({
      description: 'published ratios to look for among those counted, as in 2,8,3.8',
    }),
    details,
    explain: Flags.boolean({ description: 'add formula, inputs and source of each figure' }),
  };

  async run() {
    const { args, flags } = await this.parse(Attention);
    const given = await this.modelGiven(flags, args.file, 'minimind2-small');
    const source = await openModelSource(given, sourceOf(flags));
    const { file, family, model, warnings, checkpoint } = await source.model(flags.set);
    if (checkpoint) this.note(flags, configText(checkpoint.config));
    await this.warnAbout(flags, warnings);
    const { gpu, card, ...onChip } = onChipOf(flags, (choice) => this.note(flags, choice));
    const methods = attentionMethodsOf(model, {
      contexts: contextsOf(flags.context, model.positions, (remark) => this.note(flags, remark)),
      dtype: flags.dtype,
      onChip,
      block: flags.block,
      window: flags.window,
      globalHeads: flags['global-heads'],
      keyHeads: flags['key-heads'],
    });
    const longest = Math.max(...methods.contexts.map(({ context }) => context));
    const { chunk, overlap = USUAL_OVERLAP, window, dtype: type } = flags;
    refuseBroken(RELATIONS, flags);
    const result: AttentionAnswer = {
      schema: 'minimind/attention@1',
      file,
      family: family.name,
      gpu,
      ...methods,
      norms: normOperations(model.hidden),
      ...(card && {
        speeds: methods.contexts.flatMap(
          ({ context }) => attentionSpeed(model, card, context) ?? [],
        ),
      }),
      ...(chunk !== undefined && {
        longTexts: longTextsOf(model, { chunk, overlap, window, context: longest, dtype: type }),
      }),
      ...(flags.published && { published: matchRatios(methods, flags.published) }),
    };
    return this.answer(flags, result, (each) => attentionReport(each, flags.explain));
  }
}

const RELATIONS = [
  {
    of: ['overlap', 'requires', 'chunk'],
    advice: () => 'write it as in --chunk 512 --overlap 50%',
  },
] as const;

const USUAL_CONTEXTS = [512, 2048, 8192];

/** Contexts within the positions of the model; longer ones only on request. */
function contextsOf(
  asked: readonly number[] | undefined,
  positions: number,
  say: (remark: string) => void,
): readonly number[] {
  if (asked === undefined) return USUAL_CONTEXTS.map((context) => Math.min(context, positions));
  const beyond = asked.filter((context) => context > positions).map(formatInteger);
  if (beyond.length > 0) {
    say(
      `${joined(beyond)} tokens are more than the ${formatInteger(positions)} positions of the model: counted as with more positions`,
    );
  }
  return asked;
}

/** Memory for a tile, from the GPU or from a flag. */
function onChipOf(
  { gpu: name, 'on-chip': stated }: Pick<FlagsOf<typeof Attention>, 'gpu' | 'on-chip'>,
  say: (choice: string) => void,
) {
  if (stated !== undefined) {
    return {
      gpu: null,
      card: undefined,
      bytes: Number(stated),
      source: `${formatBytes(stated)} (--on-chip)`,
    };
  }
  const { gpu } = clusterNamed(oneGpuName(name), 1, { gpus: [], machines: [] }, say);
  const known = onChipMemoryOf(gpu);
  if (known) return { gpu: gpu.name, card: gpu, ...known };
  throw usageError(`no shared memory of ${gpu.title} is known`, 'write it as in --on-chip 64KiB');
}
