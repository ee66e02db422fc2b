/** The cluster that `--gpu` means. */
import { usageError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { quote } from '../../config/quote.js';
import type { Cluster, Hardware } from './gpu.js';
import { entryNamed, splitCount } from './gpu-names.js';
import { cloudInstance, withKnownHardware } from './machines.js';

/**
 * Cluster of GPUs by name, or a machine by name with its GPUs; with a count as in `8xA100`.
 * @param gpus Number of GPUs; undefined: one of a GPU, all of a machine.
 * @param say Called with the choice when the name could mean several.
 * @throws UserError with the nearest name if there is neither, and for two counts that differ.
 */
export function clusterNamed(
  text: string,
  gpus: number | undefined,
  own: Hardware,
  say: (choice: string) => void = () => {},
): Cluster {
  const { gpus: knownGpus, machines } = withKnownHardware(own);
  const isName = [...knownGpus, ...machines].some(({ name }) => name === text);
  const instance = isName ? undefined : cloudInstance(text);
  const { name, count } = isName ? { name: text } : splitCount(instance?.name ?? text);
  const { entry, others, isShort } = entryNamed(name, [...knownGpus, ...machines]);
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
