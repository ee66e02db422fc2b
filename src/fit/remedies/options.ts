/** What of a training could be set otherwise so that it needs less memory. */
import type { LanguageModel } from '../../architecture/layer.js';
import type { TrainingFitSetting, ZeroStage } from '../training/training-setting.js';

export type Flags = Partial<TrainingFitSetting>;

/** A change of one setting. */
export interface Change {
  /** In words. */
  readonly words: string;
  readonly flags: Flags;
  /** Less of it, which may do as well. */
  readonly simpler?: Change;
}

/** Something that can be set otherwise: the changes of it, that which saves least and costs least first. */
export interface Lever {
  readonly name: LeverName;
  readonly changes: readonly Change[];
}

/** Less than this is no text to learn from. */
const SHORTEST_CONTEXT = 128;

/** GPUs that share a layer are those of one machine. */
const MOST_SHARING = 8;

/** `from`, doubled again and again, up to `to`. */
export const doubled = (from: number, to: number): number[] =>
  from > to ? [] : [from, ...doubled(2 * from, to)];

const halved = (from: number): number[] => {
  const half = Math.floor(from / 2);
  return half >= 1 ? [half, ...halved(half)] : [];
};

const FUSED: Change = { words: 'fused attention', flags: { attention: 'fused' } };
const CHUNKED: Change = { words: 'a loss in chunks', flags: { loss: 'chunked' } };
const SEQUENCE: Change = { words: 'sequence parallelism', flags: { sequenceParallel: true } };
const SELECTIVE: Change = {
  words: 'selective recomputation',
  flags: { recompute: 'selective' },
};
const FULL: Change = { words: 'full recomputation', flags: { recompute: 'full' } };

type Changes = (setting: TrainingFitSetting, model: LanguageModel) => readonly Change[];

/**
 * In the order of what they cost: nothing; communication or work that is small; another way to spread the same training;
 * work again; and what changes the training itself.
 */
const CHANGES = {
  attention: ({ attention }) => (attention === 'plain' ? [FUSED] : []),
  loss: ({ loss }) => (loss === 'full' ? [CHUNKED] : []),
  sequence: ({ sequenceParallel, tensorParallel }) =>
    tensorParallel > 1 && !sequenceParallel ? [SEQUENCE] : [],
  zero: ({ zero, cluster }) =>
    cluster.gpus === 1
      ? []
      : ([1, 2, 3] as const satisfies readonly ZeroStage[])
          .filter((stage) => stage > zero)
          .map((stage) => ({ words: `ZeRO-${stage}`, flags: { zero: stage } })),
  recompute: ({ recompute }) => {
    if (recompute === 'full') return [];
    return recompute === 'none' ? [SELECTIVE, FULL] : [FULL];
  },
  microBatch: ({ microBatch }) =>
    halved(microBatch).map((smaller) => ({
      words: `a micro-batch of ${smaller}`,
      flags: { microBatch: smaller },
    })),
  tensor: ({ tensorParallel, pipelineParallel, cluster: { gpus } }) =>
    doubled(2 * tensorParallel, Math.min(MOST_SHARING, gpus / pipelineParallel)).map((tensor) => ({
      words: `tensor and sequence parallelism of ${tensor}`,
      flags: { tensorParallel: tensor, sequenceParallel: true },
      simpler: {
        words: `tensor parallelism of ${tensor}`,
        flags: { tensorParallel: tensor },
      },
    })),
  pipeline: ({ tensorParallel, pipelineParallel, cluster: { gpus } }, { blocks }) =>
    doubled(2 * pipelineParallel, Math.min(blocks.length, gpus / tensorParallel)).map((stages) => ({
      words: `${stages} pipeline stages`,
      flags: { pipelineParallel: stages },
    })),
  optimizer: ({ optimizer }) =>
    optimizer === 'adamw' ? [{ words: 'AdamW in 8 bits', flags: { optimizer: 'adamw-8bit' } }] : [],
  context: ({ context }) =>
    halved(context)
      .filter((shorter) => shorter >= SHORTEST_CONTEXT)
      .map((shorter) => ({ words: `a context of ${shorter}`, flags: { context: shorter } })),
} as const satisfies Record<string, Changes>;

export type LeverName = keyof typeof CHANGES;

/** Those that make another training of it. */
export const CHANGING: readonly LeverName[] = ['optimizer', 'context'];

/** Those of which more does not always need less: fewer replicas are left to divide among. */
export const SPREADING: readonly LeverName[] = ['tensor', 'pipeline'];

/** Those that can be moved. */
export const leversOf = (setting: TrainingFitSetting, model: LanguageModel): Lever[] =>
  (Object.keys(CHANGES) as LeverName[])
    .map((name) => ({ name, changes: CHANGES[name](setting, model) }))
    .filter(({ changes }) => changes.length > 0);

/** The same training on so many GPUs. */
export const onGpus = ({ cluster }: Pick<TrainingFitSetting, 'cluster'>, gpus: number): Change => ({
  words: `${gpus} GPUs`,
  flags: { cluster: { ...cluster, gpus } },
});
