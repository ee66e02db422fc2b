/** Packings of data: how they are recognised, and the limits of what they unpack to. */
import { UserError } from '../../../base/errors.js';
import { formatInteger } from '../../../base/text/units.js';

/**
 * Maximum ratio of unpacked to packed bytes of gzip and Zstandard data, beyond the first ones. Texts have 3 to 20.
 */
export const UNPACKING_BOUNDS = { ratio: 100, first: 100_000_000 } as const;

/** Ways to store records that are unpacked, by the first bytes of a file. */
const PACKINGS = {
  gzip: '\x1f\x8b',
  zstd: '\x28\xb5\x2f\xfd',
  parquet: 'PAR1',
} as const;

export type Packing = keyof typeof PACKINGS;

/** Name of a source in messages. */
export const nameOfSource = (file: string): string => (file === '-' ? '<stdin>' : file);

/** Packing of a file by its first bytes. */
export function packingOf(head: Uint8Array): Packing | null {
  const start = Buffer.from(head.subarray(0, 4)).toString('latin1');
  const found = Object.entries(PACKINGS).find(([, magic]) => start.startsWith(magic));
  return found === undefined ? null : (found[0] as Packing);
}

/** Refuses data that unpack to much more than their bytes. @throws UserError for these. */
export function refuseTooMuch(name: string, packing: Packing, packed: number, bytes: number): void {
  const { first, ratio } = UNPACKING_BOUNDS;
  if (bytes <= Math.max(first, ratio * packed)) return;
  const [from, to] = [packed, bytes].map((each) => formatInteger(Math.floor(each)));
  throw new UserError(
    'refused-file',
    `${name}: its first ${from} bytes of ${packing} data unpack to ${to}, more than ${ratio} times as many`,
    { suggestion: 'check where the file comes from; if it is right, give the unpacked one' },
  );
}
