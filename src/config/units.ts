/** Numbers with their units, read as people write them, without rounding: `26M`, `24GB`, `165TFLOP/s`. */

const BYTES = {
  '': 1n,
  b: 1n,
  kb: 10n ** 3n,
  mb: 10n ** 6n,
  gb: 10n ** 9n,
  tb: 10n ** 12n,
  pb: 10n ** 15n,
  kib: 2n ** 10n,
  mib: 2n ** 20n,
  gib: 2n ** 30n,
  tib: 2n ** 40n,
  pib: 2n ** 50n,
  // Short for kB to PB and KiB to PiB.
  k: 10n ** 3n,
  m: 10n ** 6n,
  g: 10n ** 9n,
  t: 10n ** 12n,
  p: 10n ** 15n,
  ki: 2n ** 10n,
  mi: 2n ** 20n,
  gi: 2n ** 30n,
  ti: 2n ** 40n,
  pi: 2n ** 50n,
} as const;

/** `TFLOP/s`, `TFLOPS`, and `TOPS` for integers. */
const rates = (prefix: string, scale: bigint): (readonly [string, bigint])[] =>
  ['flop/s', 'flops', 'flops/s', 'ops', 'op/s'].map((unit) => [prefix + unit, scale]);

/** Written in lower case: what people write differs in case, and no two units here differ only in that. */
const READ_UNITS: Readonly<Record<ReadUnit, Readonly<Record<string, bigint>>>> = {
  bytes: BYTES,
  'bytes/s': Object.fromEntries(
    Object.entries(BYTES).map(([unit, scale]) => [unit && `${unit}/s`, scale]),
  ),
  'FLOP/s': Object.fromEntries([
    ['', 1n],
    ...rates('', 1n),
    ...rates('g', 10n ** 9n),
    ...rates('t', 10n ** 12n),
    ...rates('p', 10n ** 15n),
  ]),
  count: { '': 1n, k: 10n ** 3n, m: 10n ** 6n, b: 10n ** 9n, t: 10n ** 12n },
};

export type ReadUnit = 'bytes' | 'bytes/s' | 'FLOP/s' | 'count';

/**
 * A number as it was printed, with commas or a unit: `13.8B` may be anything within half of its last
 * digit (50,000,000); a number with all its digits is exact. Undefined when it cannot be read.
 */
export function parseRounded(
  text: string,
): { readonly value: bigint; readonly tolerance: bigint } | undefined {
  const scaled = parseScaled(text.replace(/(?<=\d),(?=\d{3}(?!\d))/g, ''), READ_UNITS.count);
  if (!scaled || scaled.numerator % scaled.divisor !== 0n) return undefined;
  const { numerator, divisor, scale } = scaled;
  return { value: numerator / divisor, tolerance: scale / divisor / 2n };
}

/**
 * The largest whole number that is at most `text`: bytes (`24GB`, `512MiB`), a rate (`1.008TB/s`,
 * `165TFLOP/s`) or a count (`26M`, `1e9`, `7_000`). 43.6 GiB is no whole number of bytes, but as a limit
 * it is clear. A bigint beyond 2^53 − 1; undefined when it cannot be read.
 */
export function parseLimit(text: string, unit: ReadUnit): number | bigint | undefined {
  const scaled = parseScaled(text, READ_UNITS[unit]);
  if (!scaled) return undefined;
  const value = scaled.numerator / scaled.divisor;
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

/** Nothing that sizes and rates are stated of here is smaller. */
const LEAST_WITHOUT_UNIT = 1e6;

/**
 * Whether a size or rate is a small number without a unit: 30 of `--max-memory 30` are GB to its writer, and bytes to a
 * program. Zero is the same in all units.
 */
export function lacksUnit(text: string, unit: Exclude<ReadUnit, 'count'>): boolean {
  const value = parseLimit(text, unit);
  return (
    value !== undefined && value > 0 && value < LEAST_WITHOUT_UNIT && !/[a-z]$/i.test(text.trim())
  );
}

/** numerator / divisor, where a one in front of the decimal point is worth `scale`. */
interface Scaled {
  readonly numerator: bigint;
  readonly divisor: bigint;
  readonly scale: bigint;
}

const NUMBER_AND_UNIT = /^(\d+(?:_\d+)*)(?:\.(\d+))?(?:e\+?(\d{1,2}))? ?([a-z/]*)$/;

/** More than any sensible number needs, and few enough to work with at once. */
const MAX_CHARACTERS = 64;

/** Decimal arithmetic on the text: 13.4 × 10^9 in floating point need not be a whole number. */
function parseScaled(text: string, units: Readonly<Record<string, bigint>>): Scaled | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  const [, whole, fraction = '', exponent = '0', unit = ''] =
    NUMBER_AND_UNIT.exec(text.trim().toLowerCase()) ?? [];
  if (whole === undefined || !Object.hasOwn(units, unit)) return undefined;
  const digits = BigInt(whole.replaceAll('_', '') + fraction);
  const scale = (units[unit] ?? 0n) * 10n ** BigInt(exponent);
  return { numerator: digits * scale, divisor: 10n ** BigInt(fraction.length), scale };
}
