/** Why it is not certain that hardware can do what is asked. */
import type { Cluster } from '../../hardware/gpu.js';
import type { ServingFit, ServingLoad } from '../serving/serving.js';
import type { TrainingFit } from '../training/training.js';

export interface Doubt {
  readonly about: 'training' | 'serving' | 'load';
  readonly text: string;
}

interface Asked {
  readonly cluster: Cluster;
  readonly training: { readonly fit: Pick<TrainingFit, 'verdict'> } | null;
  readonly serving: { readonly fit: Pick<ServingFit, 'verdict' | 'load'> } | null;
}

/** None where it is certain: by the upper bound of memory, and by the speed that is expected. */
export function doubtsOf({ cluster, training, serving }: Asked): Doubt[] {
  const doubts: Doubt[] = [];
  for (const [about, asked] of [
    ['training', training],
    ['serving', serving],
  ] as const) {
    if (asked === null || asked.fit.verdict === 'fits') continue;
    doubts.push({ about, text: `${about} ${asked.fit.verdict}` });
  }
  const load = serving?.fit.load && shortageOf(serving.fit.load, cluster);
  return load === undefined ? doubts : [...doubts, { about: 'load', text: load }];
}

/** What is missing to meet a load as expected. */
function shortageOf({ expected }: ServingLoad, { gpus }: Cluster): string | undefined {
  if (!expected.met) return 'no number of GPUs meets the load as expected';
  const there = gpus === 1 ? '1 is there' : `${gpus} are there`;
  return expected.gpus.value > gpus
    ? `the load takes ${expected.gpus.value} GPUs as expected, and ${there}`
    : undefined;
}
