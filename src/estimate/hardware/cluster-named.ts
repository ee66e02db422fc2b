/** The cluster that `--gpu` means. */
import { usageError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { quote } from '../../config/quote.js';
import type { Cards, Cluster, Gpu, Hardware } from './gpu.js';
import { capacityOf } from './gpu.js';
import { entryNamed, splitCount } from './gpu-names.js';
import { cloudInstance, withKnownHardware } from './machines.js';

/** GPUs that llama.cpp uses at most (src/llama.cpp: `llama_max_devices`). */
export const MOST_CARDS = 16;

/** GPUs of several kinds: the cluster of as many of the smallest, which knows them all. */
export function mixedCluster(parts: readonly Cards[]): Cluster {
  const cards: Cards[] = [];
  for (const { gpu, gpus } of parts) {
    const at = cards.findIndex((each) => each.gpu.name === gpu.name);
    const before = cards[at];
    if (before === undefined) cards.push({ gpu, gpus });
    else cards[at] = { gpu, gpus: before.gpus + gpus };
  }
  const [smallest] = cards.toSorted(
    (a, b) =>
      capacityOf(a.gpu).value - capacityOf(b.gpu).value || a.gpu.bandwidth - b.gpu.bandwidth,
  );
  if (smallest === undefined) throw new Error('a cluster without GPUs');
  const gpus = cards.reduce((sum, each) => sum + each.gpus, 0);
  if (cards.length === 1) return { gpu: smallest.gpu, gpus, network: null };
  if (gpus > MOST_CARDS) {
    throw usageError(
      `expected at most ${MOST_CARDS} GPUs of several kinds, found ${gpus}`,
      `write one kind, as in ${setting('gpu', smallest.gpu.name)}`,
    );
  }
  return { gpu: smallest.gpu, gpus, network: null, cards };
}

/** Cluster with another of each of its GPUs. */
export const withGpus = (cluster: Cluster, change: (gpu: Gpu) => Gpu): Cluster => ({
  ...cluster,
  gpu: change(cluster.gpu),
  ...(cluster.cards && {
    cards: cluster.cards.map((each) => ({ ...each, gpu: change(each.gpu) })),
  }),
});

/** Each GPU of a cluster, in order. */
export const gpusOf = ({ gpu, gpus, cards }: Cluster): Gpu[] =>
  (cards ?? [{ gpu, gpus }]).flatMap((each) => Array.from({ length: each.gpus }, () => each.gpu));

/** A plus between two kinds; that of a Ryzen AI Max+ 395 or of Colab Pro+ belongs to the name. */
const BETWEEN_KINDS = /(?<!\b(?:max|pro))\+/i;

/**
 * Cluster of GPUs as `clusterOfOne`, or of several kinds: `5090+3090`, `2x3090+4090`.
 * @throws UserError as `clusterOfOne`, and for a number of GPUs beside several kinds.
 */
export function clusterNamed(
  text: string,
  gpus: number | undefined,
  own: Hardware,
  say: (choice: string) => void = () => {},
): Cluster {
  const parts = text.split(BETWEEN_KINDS).map((part) => part.trim());
  if (parts.length === 1 || parts.includes('')) {
    return clusterOfOne(text, gpus, own, say);
  }
  const mixed = mixedCluster(parts.map((part) => clusterOfOne(part, undefined, own, say)));
  if (gpus === undefined || gpus === mixed.gpus) return mixed;
  throw usageError(
    `expected one kind of GPU with ${setting('gpus', gpus)}, found ${quote(text)}`,
    `write the numbers as in ${setting('gpu', '2x3090+4090')}`,
  );
}

/**
 * Cluster of GPUs by name, or a machine by name with its GPUs; with a count as in `8xA100`.
 * @param gpus Number of GPUs; undefined: one of a GPU, all of a machine.
 * @param say Called with the choice when the name could mean several.
 * @throws UserError with the nearest name if there is neither, and for two counts that differ.
 */
function clusterOfOne(
  text: string,
  gpus: number | undefined,
  own: Hardware,
  say: (choice: string) => void,
): Cluster {
  const { gpus: knownGpus, machines } = withKnownHardware(own);
  const isName = [...knownGpus, ...machines].some(({ name }) => name === text);
  const instance = isName ? undefined : cloudInstance(text);
  const { name, count } = isName ? { name: text } : splitCount(instance?.name ?? text);
  const { entry, isShort, ...found } = entryNamed(name, [...knownGpus, ...machines]);
  // A card of a laptop has the word in its name: without it, the card of a desktop is meant.
  const others = found.others.filter((each) => each.name !== `${entry.name}-laptop`);
  if (others.length > 0 || isShort || instance?.isSpoken) {
    const names = others.map((each) => each.name).join(', ');
    const said = instance?.isSpoken ? text.trim() : name;
    say(
      `${setting('gpu')} ${said}: using ${entry.name} (${entry.title})${names === '' ? '' : `; also ${names}`}`,
    );
  }
  const [gpu, each, network] =
    'gpu' in entry ? [entry.gpu, entry.gpus, entry.network] : [entry, 1, null];
  const counted = count === undefined ? undefined : count * each;
  if (counted === 0 || (counted !== undefined && gpus !== undefined && gpus !== counted)) {
    const suggestion = `write ${setting('gpu', entry.name)} ${setting('gpus', gpus ?? 1)}`;
    const found = gpus === undefined ? '' : ` and ${setting('gpus', gpus)}`;
    throw usageError(`expected one number of GPUs, found ${quote(text)}${found}`, suggestion);
  }
  const machine = 'gpu' in entry && { machine: entry.name };
  return { gpu, gpus: gpus ?? counted ?? each, network, ...machine };
}
