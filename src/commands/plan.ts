import * as Flags from '@oclif/core/flags';
import { FAMILY_NAMES, loadFamily } from '../architecture/families.js';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import { bytesLimit, count, countLimit, counts, dtype, range, setOf } from '../cli/flags.js';
import { type HardwareFlags, hardwareFlags, hardwareOf } from '../cli/hardware-flags.js';
import { writeStdout, writeText } from '../cli/output.js';
import { progress } from '../cli/progress.js';
import { CRITERIA, CRITERION_NAMES } from '../plan/criteria.js';
import { decodeOn, withoutPeak } from '../plan/decode.js';
import { planModels, writtenRow } from '../plan/plan-models.js';
import { planReport } from '../report/plan.js';
import { formatInteger } from '../text/units.js';

const CRITERIA_TEXT = CRITERION_NAMES.map((name) => `${name}, ${CRITERIA[name].title}`).join('; ');

const { gpus: _, ...oneGpu } = hardwareFlags;

export default class Plan extends BaseCommand {
  static override summary = 'Find the depth, width and heads that make the most of a budget.';
  static override description =
    'Searches the depths, widths, heads, key-value heads and feed-forward widths of a family, and shows the models ' +
    'that are not beaten in parameters, memory, decode speed, width per layer and what they are sorted by all at ' +
    'once, best first. A model that does not fit into the memory of --gpu is shown without tokens/s, and --max-memory ' +
    'leaves it out. With -o FILE the best of them, or the row that --write names, becomes a config. ' +
    `To sort by: ${CRITERIA_TEXT}. A size that --set gives is no choice any more.`;
  static override examples = [
    '<%= config.bin %> <%= command.id %> --max-params 26M --vocab 6400 --gpu h100-80gb',
    '<%= config.bin %> <%= command.id %> --max-params 26M --vocab 6400 --context 4096 --depth 4..40 --sort memory',
    '<%= config.bin %> <%= command.id %> --max-params 135M --vocab 49152 --family llama --set model.tie_word_embeddings=true --top 3',
    '<%= config.bin %> <%= command.id %> --max-params 26M --vocab 6400 --write 2 -o -',
  ];

  static override flags = {
    family: Flags.option({
      options: FAMILY_NAMES,
      default: 'minimind',
      description: 'the model family',
    } as const)(),
    'max-params': countLimit({ required: true, description: 'most parameters, as in 26M' }),
    'min-params': countLimit({
      description: 'least parameters [default: 95% of the most, or of the largest below it]',
    }),
    'max-memory': bytesLimit({ description: 'most memory of inference' }),
    vocab: count({ description: 'tokens of the vocabulary [default: as the family has it]' }),
    context: count({ default: 2048, description: 'tokens of a sequence' }),
    batch: count({ default: 1, description: 'sequences at a time' }),
    dtype: dtype({ default: 'bf16', description: 'element type of weights and caches' }),
    depth: range({ description: 'layers to try [default: 2..128]' }),
    width: range({ description: 'hidden sizes to try [default: 64..65536]' }),
    'head-dim': counts({ description: 'widths of a head [default: 64 and what is usual]' }),
    align: Flags.option({
      options: ['64', '128'],
      default: '64',
      description: 'of what the feed-forward width is a multiple',
    } as const)(),
    set: setOf('give a value of the config, as in model.num_attention_heads=8'),
    sort: Flags.option({
      options: CRITERION_NAMES,
      default: 'balance',
      description: 'what makes a model the best',
    } as const)(),
    top: count({ default: 10, description: 'how many models to show' }),
    ...oneGpu,
    write: count({
      dependsOn: ['output'],
      description: 'the row that -o writes as a config [default: 1]',
    }),
  };

  async run() {
    const { flags } = await this.parse(Plan);
    const family = await loadFamily(flags.family);
    const inference = { batch: flags.batch, context: flags.context, dtype: flags.dtype };
    const cluster = await askedGpu(flags);
    let shown: ReturnType<typeof progress> | undefined;
    const plan = planModels(family, {
      ...flags,
      inference,
      ...(cluster && {
        gpu: cluster.gpu.name,
        decode: decodeOn(cluster, inference),
        withoutPeak: withoutPeak(cluster, inference),
      }),
      vocabulary: flags.vocab,
      maxParameters: flags['max-params'],
      minParameters: flags['min-params'],
      maxMemory: flags['max-memory'],
      headDims: flags['head-dim'],
      align: Number(flags.align),
      set: flags.set ?? [],
      onSearched: (_, widths) => {
        shown ??= progress(flags, 'searching widths', widths, undefined, formatInteger);
        shown.add(1);
      },
    });
    shown?.end();
    const { output } = flags;
    const result = { schema: 'minimind/plan@1', ...plan } as const;
    if (output !== undefined) {
      const text = writtenRow(plan, flags.write ?? 1);
      if (output === '-') {
        await writeStdout(text);
        return result;
      }
      await writeText(output, text, flags.force);
      this.note(flags, `wrote ${output}`);
    }
    // -o is the config, not the file of this answer.
    return this.answer({ ...flags, output: undefined }, result, (each) =>
      planReport(each, { flat: formatOf(flags) === 'csv' }),
    );
  }
}

/** The GPU for decoding, if any. */
const askedGpu = async (flags: Omit<HardwareFlags, 'gpus'>) =>
  (flags.gpu ?? flags.hardware ?? (flags['this-machine'] || undefined))
    ? hardwareOf({ ...flags, gpus: 1 })
    : undefined;
