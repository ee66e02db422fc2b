/** Parses numbers with common units exactly: `26M`, `24GB`, `165TFLOP/s`. */

/** `kB`, `KiB` and their short forms `k`, `Ki`, up to 1000^5 and 1024^5. */
const BYTES: Readonly<Record<string, bigint>> = Object.fromEntries([
  ['', 1n],
  ['b', 1n],
  ...[...'kmgtp'].flatMap((prefix, index) => {
    const [decimal, binary] = [1000n ** BigInt(index + 1), 1024n ** BigInt(index + 1)];
    return [
      [prefix, decimal],
      [`${prefix}b`, decimal],
      [`${prefix}i`, binary],
      [`${prefix}ib`, binary],
    ];
  }),
]);

/** `TFLOP/s`, `TFLOPS`, and `TOPS` for integers. */
const RATES = Object.entries({ '': 1n, g: 10n ** 9n, t: 10n ** 12n, p: 10n ** 15n }).flatMap(
  ([prefix, scale]) =>
    ['flop/s', 'flops', 'flops/s', 'ops', 'op/s'].map((unit) => [prefix + unit, scale] as const),
);

/** Lower case, because spelling varies and no two units here differ only in case. */
const READ_UNITS: Readonly<Record<ReadUnit, Readonly<Record<string, bigint>>>> = {
  bytes: BYTES,
  'bytes/s': Object.fromEntries(
    Object.entries(BYTES).map(([unit, scale]) => [unit && `${unit}/s`, scale]),
  ),
  'FLOP/s': Object.fromEntries([['', 1n], ...RATES]),
  count: { '': 1n, k: 10n ** 3n, m: 10n ** 6n, b: 10n ** 9n, t: 10n ** 12n },
  // Context lengths are powers of two: a context of 32k is 32,768 tokens.
  tokens: { '': 1n, k: 2n ** 10n, m: 2n ** 20n, ki: 2n ** 10n, mi: 2n ** 20n },
};

export type ReadUnit = 'bytes' | 'bytes/s' | 'FLOP/s' | 'count' | 'tokens';

/**
 * A whole number: `128`, `32_768`, `32,768`, `1e4`, `32k`. With the unit `tokens`, k is 1,024. Undefined for a fraction,
 * a number beyond 2^53 − 1, and digits after a leading zero.
 */
export function parseCount(text: string, unit: 'count' | 'tokens' = 'count'): number | undefined {
  if (/^\s*0[\d,]/.test(text)) return undefined;
  const value = Number(parseRounded(text, unit)?.value);
  return Number.isSafeInteger(value) ? value : undefined;
}

/**
 * Parses a printed number with commas or a unit. `13.8B` covers half of its last digit in both directions
 * (50,000,000); a full number is exact. Undefined if it cannot be read.
 */
export function parseRounded(
  text: string,
  unit: ReadUnit = 'count',
): { readonly value: bigint; readonly tolerance: bigint } | undefined {
  const scaled = parseScaled(text, unit);
  if (!scaled || scaled.numerator % scaled.divisor !== 0n) return undefined;
  const { numerator, divisor, scale } = scaled;
  return { value: numerator / divisor, tolerance: scale / divisor / 2n };
}

/**
 * Largest whole number up to `text`: bytes (`24GB`, `512MiB`), a rate (`1.008TB/s`, `165TFLOP/s`) or a count
 * (`26M`, `1e9`, `7_000`). A fractional number of bytes, such as 43.6 GiB, is valid as a limit. A bigint beyond
 * 2^53 − 1; undefined if it cannot be read.
 */
export function parseLimit(text: string, unit: ReadUnit): number | bigint | undefined {
  const scaled = parseScaled(text, unit);
  if (!scaled) return undefined;
  const value = scaled.numerator / scaled.divisor;
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

/** All realistic sizes and rates are at least this large. */
const LEAST_WITHOUT_UNIT = 1e6;

/**
 * Whether a size or rate is a small number without a unit: in `--max-memory 30`, the user means GB, but a program
 * reads bytes. Zero needs no unit.
 */
export function lacksUnit(text: string, unit: Exclude<ReadUnit, 'count'>): boolean {
  const value = parseLimit(text, unit);
  return (
    value !== undefined && value > 0 && value < LEAST_WITHOUT_UNIT && !/[a-z]$/i.test(text.trim())
  );
}

/** numerator / divisor, where one unit before the decimal point is worth `scale`. */
interface ScaledFraction {
  readonly numerator: bigint;
  readonly divisor: bigint;
  readonly scale: bigint;
}

/** The commas between groups of three digits: `32,768`. */
const GROUPING_COMMA = /(?<=\d),(?=\d{3}(?!\d))/g;
const NUMBER_AND_UNIT = /^(\d+(?:_\d+)*)(?:\.(\d+))?(?:e\+?(\d{1,2}))? ?([a-z/]*)$/;

/** Longer than any sensible number, and short enough to process at once. */
const MAX_CHARACTERS = 64;

/** Decimal arithmetic on the text: 13.4 × 10^9 in floating point need not be a whole number. */
function parseScaled(text: string, unit: ReadUnit): ScaledFraction | undefined {
  const plain = text.replace(GROUPING_COMMA, '');
  if (plain.length > MAX_CHARACTERS) return undefined;
  const [, whole, fraction = '', exponent = '0', written = ''] =
    NUMBER_AND_UNIT.exec(plain.trim().toLowerCase()) ?? [];
  const units = READ_UNITS[unit];
  if (whole === undefined || !Object.hasOwn(units, written)) return undefined;
  const digits = BigInt(whole.replaceAll('_', '') + fraction);
  const scale = (units[written] ?? 0n) * 10n ** BigInt(exponent);
  return { numerator: digits * scale, divisor: 10n ** BigInt(fraction.length), scale };
}
