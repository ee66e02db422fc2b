/** The cluster that `--gpu` means. */
import { usageError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { quote } from '../../config/quote.js';
import type { Cards, Cluster, Gpu, Hardware } from './gpu.js';
import { capacityOf, memoryOf } from './gpu.js';
import { entryNamed, splitCount } from './gpu-names.js';
import { cloudInstance, withKnownHardware } from './machines.js';

/** GPUs that llama.cpp uses at most (src/llama.cpp: `llama_max_devices`). */
export const MOST_CARDS = 16;

/**
 * GPUs of several kinds: the cluster of as many with the least memory and the least speed of all, which knows them all.
 * @throws UserError for more than llama.cpp uses, and for a chip that shares the memory of its system.
 */
export function mixedCluster(parts: readonly Cards[]): Cluster {
  const cards: Cards[] = [];
  for (const { gpu, gpus } of parts) {
    const at = cards.findIndex((each) => each.gpu.name === gpu.name);
    const before = cards[at];
    if (before === undefined) cards.push({ gpu, gpus });
    else cards[at] = { gpu, gpus: before.gpus + gpus };
  }
  const all = cards.map((each) => each.gpu);
  const [least] = all.toSorted((a, b) => capacityOf(a).value - capacityOf(b).value);
  const [slowest] = all.toSorted(
    (a, b) => densePeak(a) - densePeak(b) || a.bandwidth - b.bandwidth,
  );
  if (least === undefined || slowest === undefined) throw new Error('a cluster without GPUs');
  const gpus = cards.reduce((sum, each) => sum + each.gpus, 0);
  if (cards.length === 1) return { gpu: slowest, gpus, network: null };
  const chip = all.find((each) => memoryOf(each).kind === 'shared');
  if (chip) {
    throw usageError(
      `expected graphics cards between plus signs, found ${chip.name} (${chip.title}), which shares the memory of its system`,
      `write ${setting('gpu', chip.name)} alone`,
    );
  }
  if (gpus > MOST_CARDS) {
    throw usageError(
      `expected at most ${MOST_CARDS} GPUs of several kinds, found ${gpus}`,
      `write one kind, as in ${setting('gpu', slowest.name)}`,
    );
  }
  const { usable: _, ...rest } = slowest;
  const gpu = {
    ...rest,
    memoryBytes: least.memoryBytes,
    ...(least.usable && { usable: least.usable }),
    bandwidth: Math.min(...all.map((each) => each.bandwidth)),
  };
  return { gpu, gpus, network: null, cards };
}

/** Dense operations per second in 16 bits, or in the type with the next best peak that is known. */
const densePeak = ({ peakFlops: { bf16, f16, f32 } }: Gpu): number => bf16 ?? f16 ?? f32 ?? 0;

/** Name of a cluster for `--gpu`, without the number of GPUs of one kind: `2xrtx-3090+rtx-4090`. */
export const clusterName = ({ gpu, cards }: Cluster): string =>
  cards
    ? cards.map((each) => `${each.gpus === 1 ? '' : `${each.gpus}x`}${each.gpu.name}`).join('+')
    : gpu.name;

/** Cluster with another of each of its GPUs. */
export const withGpus = (cluster: Cluster, change: (gpu: Gpu) => Gpu): Cluster => ({
  ...cluster,
  gpu: change(cluster.gpu),
  ...(cluster.cards && {
    cards: cluster.cards.map((each) => ({ ...each, gpu: change(each.gpu) })),
  }),
});

/** Each GPU of a cluster, in order. */
export const gpusInOrder = ({ gpu, gpus, cards }: Cluster): Gpu[] =>
  (cards ?? [{ gpu, gpus }]).flatMap((each) => Array.from({ length: each.gpus }, () => each.gpu));

/** Words that are in the name of a card of a laptop, and in those of a faster one: without them, another card is meant. */
const OF_LAPTOPS = ['laptop'];
const OF_FASTER = [...OF_LAPTOPS, 'ti', 'super'];

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
  const mixed = mixedCluster(
    // A list of several cards is a rig that exists, so each name is the whole name of a card.
    parts.map((part) => clusterOfOne(part, undefined, own, say, OF_FASTER)),
  );
  if (gpus === undefined || gpus === mixed.gpus) return mixed;
  throw usageError(
    `expected one kind of GPU with ${setting('gpus', gpus)}, found ${quote(text)}`,
    `write the numbers as in ${setting('gpu', '2x3090+4090')}`,
  );
}

/**
 * Name in a text with a number of GPUs, as in `8xA100` or `4060+4060`; undefined without a number, and for several kinds.
 * @param cluster The GPUs that the text names.
 */
export function nameWithoutCount(text: string, { gpu, cards }: Cluster): string | undefined {
  const { gpus, machines } = withKnownHardware({ gpus: [], machines: [] });
  if (cards || [...gpus, ...machines].some(({ name }) => name === text)) return;
  if (text.split(BETWEEN_KINDS).length > 1) return gpu.name;
  const instance = cloudInstance(text)?.name ?? text;
  const { name, count } = splitCount(instance);
  return count === undefined ? undefined : name;
}

/**
 * Cluster of GPUs by name, or a machine by name with its GPUs; with a count as in `8xA100`.
 * @param gpus Number of GPUs; undefined: one of a GPU, all of a machine.
 * @param say Called with the choice when the name could mean several.
 * @param marks Words after a name that make it that of another card.
 * @throws UserError with the nearest name if there is neither, and for two counts that differ.
 */
function clusterOfOne(
  text: string,
  gpus: number | undefined,
  own: Hardware,
  say: (choice: string) => void,
  marks: readonly string[] = OF_LAPTOPS,
): Cluster {
  const { gpus: knownGpus, machines } = withKnownHardware(own);
  const isName = [...knownGpus, ...machines].some(({ name }) => name === text);
  const instance = isName ? undefined : cloudInstance(text);
  const { name, count } = isName ? { name: text } : splitCount(instance?.name ?? text);
  const { entry, isShort, ...found } = entryNamed(name, [...knownGpus, ...machines]);
  const others = found.others.filter(
    (each) => !marks.some((word) => each.name.startsWith(`${entry.name}-${word}`)),
  );
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
  if (counted === 0) {
    throw usageError(
      `expected 1 GPU or more, found ${quote(text)}`,
      `write a number before the name, as in ${setting('gpu', `2x${entry.name}`)}`,
    );
  }
  if (counted !== undefined && gpus !== undefined && gpus !== counted) {
    const suggestion = `write ${setting('gpu', entry.name)} ${setting('gpus', gpus ?? 1)}`;
    const found = gpus === undefined ? '' : ` and ${setting('gpus', gpus)}`;
    throw usageError(`expected one number of GPUs, found ${quote(text)}${found}`, suggestion);
  }
  const machine = 'gpu' in entry && { machine: entry.name };
  return { gpu, gpus: gpus ?? counted ?? each, network, ...machine };
}
