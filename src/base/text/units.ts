/** Minus sign of texts for people; the hyphen is for values. */
const MINUS = '−';

/** `22,143,967,232`. @throws RangeError for a value other than an integer. */
export function formatInteger(value: number | bigint): string {
  return String(BigInt(value))
    .replace(/\B(?=(\d{3})+$)/g, ',')
    .replace('-', MINUS);
}

const COUNT_UNITS = { B: 1_000_000_000n, M: 1_000_000n, K: 1_000n } as const;

/** Thousands, millions or billions; `''` for plain integers. */
export type CountUnit = keyof typeof COUNT_UNITS | '';

/** Unit for a whole column with the largest number `largest`. */
export function countUnit(largest: number | bigint): CountUnit {
  const units = Object.keys(COUNT_UNITS) as (keyof typeof COUNT_UNITS)[];
  return units.find((unit) => largest >= COUNT_UNITS[unit]) ?? '';
}

/** `22.144B`: three decimals of `unit`. @throws RangeError for a value other than an integer. */
export function formatCount(
  value: number | bigint,
  unit: CountUnit = countUnit(absolute(BigInt(value))),
): string {
  if (unit === '') return formatInteger(value);
  return `${decimal(BigInt(value), COUNT_UNITS[unit], 3)}${unit}`;
}

/** `25.8M`, `8.19B`: three significant digits, exact below 10,000. @throws RangeError for a value other than an integer. */
export function shortCount(value: number | bigint): string {
  const size = absolute(BigInt(value));
  if (size < 10_000n) return formatInteger(value);
  // Rounded first, so that 999,999 is 1.00M instead of 1000K.
  const digits = String(size).length - 3;
  const three = roundedQuotient(BigInt(value), 10n ** BigInt(digits)) * 10n ** BigInt(digits);
  const unit = countUnit(absolute(three)) as keyof typeof COUNT_UNITS;
  const whole = String(absolute(three) / COUNT_UNITS[unit]).length;
  return `${decimal(three, COUNT_UNITS[unit], Math.max(0, 3 - whole))}${unit}`;
}

/** `38.8%`, as `percentText`; `–` if the whole is zero. */
export const formatShare = (part: number | bigint, whole: number | bigint): string =>
  percentText(BigInt(whole) === 0n ? null : Number(part) / Number(whole));

/** Smallest ratio shown as a factor: +1463.2% is hard to read, and −100.0% would mean zero. */
const LARGE_CHANGE = 10n;

/**
 * `+4.1%`, `−37.6%`, `×12.3`, `÷12.3`: change from a base, or an empty text for no change or a base of zero. A
 * change that rounds to zero is `<+0.1%`. @throws RangeError for a value other than an integer.
 */
export function formatChange(value: number | bigint, base: number | bigint): string {
  const [now, before] = [BigInt(value), BigInt(base)];
  if (now === before || before <= 0n || now < 0n) return '';
  if (now >= LARGE_CHANGE * before) return `×${decimal(now, before, 1)}`;
  if (now > 0n && before >= LARGE_CHANGE * now) return `÷${decimal(before, now, 1)}`;
  const sign = now > before ? '+' : MINUS;
  const percent = decimal(absolute(now - before) * 100n, before, 1);
  return percent === '0.0' ? `<${sign}0.1%` : `${sign}${percent}%`;
}

/** `319.3 MB`, with MB = 10^6 bytes. @throws RangeError for a value other than an integer. */
export function formatBytes(bytes: number | bigint): string {
  return scaled(BigInt(bytes), 1000n, ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB']);
}

/** `304.5 MiB`, with MiB = 2^20 bytes. @throws RangeError for a value other than an integer. */
export function formatBinaryBytes(bytes: number | bigint): string {
  return scaled(BigInt(bytes), 1024n, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']);
}

/** `2 × 512 tokens`: sequences of a batch. */
export const formatSequences = (batch: number, context: number): string =>
  `${formatInteger(batch)} × ${formatInteger(context)} tokens`;

/** `26.4 GFLOPs`: a number of operations, not a speed. @throws RangeError for a value other than an integer. */
export function formatFlops(flops: number | bigint): string {
  const prefixes = ['', 'k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'];
  return scaled(
    BigInt(flops),
    1000n,
    prefixes.map((prefix) => `${prefix}FLOPs`),
  );
}

/** `28.4 TMACs`: a number of operations, not a speed. @throws RangeError for a value other than an integer. */
export function formatMacs(macs: number | bigint): string {
  return formatFlops(macs).replace('FLOPs', 'MACs');
}

/** `7 s`, `2 min 5 s`, `1 h 12 min`: rounded up to whole seconds. */
export function formatDuration(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? `${minutes} min ${whole % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** One decimal, in the smallest unit that keeps the number at most 999.9 (1023.9). */
function scaled(value: bigint, base: bigint, units: readonly string[]): string {
  const size = absolute(value);
  const last = units.length - 1;
  let index = 0;
  let divisor = 1n;
  // Checked after rounding, so 999,950 bytes are 1.0 MB instead of 1000.0 kB.
  while (index < last && roundedQuotient(size * 10n, divisor) >= base * 10n) {
    index++;
    divisor *= base;
  }
  const digits = index === 0 ? formatInteger(value) : decimal(value, divisor, 1);
  return `${digits} ${units[index]}`;
}

/** `value / divisor` with a fixed number of decimals. */
function decimal(value: bigint, divisor: bigint, decimals: number): string {
  const scale = 10n ** BigInt(decimals);
  const quotient = roundedQuotient(value * scale, divisor);
  const size = absolute(quotient);
  const fraction = String(size % scale).padStart(decimals, '0');
  const sign = quotient < 0n ? MINUS : '';
  return `${sign}${formatInteger(size / scale)}${decimals === 0 ? '' : `.${fraction}`}`;
}

/** `value / divisor` to the nearest integer, halves away from zero. */
function roundedQuotient(value: bigint, divisor: bigint): bigint {
  const negative = value < 0n !== divisor < 0n;
  const by = absolute(divisor);
  const size = (2n * absolute(value) + by) / (2n * by);
  return negative ? -size : size;
}

function absolute(value: bigint): bigint {
  return value < 0n ? -value : value;
}

const TIMES = [
  { unit: 'µs', seconds: 1e-6, below: 1e-3 },
  { unit: 'ms', seconds: 1e-3, below: 1 },
  { unit: 's', seconds: 1, below: 300 },
  { unit: 'min', seconds: 60, below: 7200 },
  { unit: 'h', seconds: 3600, below: 172_800 },
  { unit: 'days', seconds: 86_400, below: 1e8 },
  { unit: 'years', seconds: 31_557_600, below: Number.POSITIVE_INFINITY },
] as const;

/** `4.98 ms`, `12.3 s`, `3.40 days`: three digits of an approximate time. */
export function formatSeconds(seconds: number): string {
  const { unit, seconds: one } = TIMES.find(({ below }) => seconds < below) ?? TIMES[6];
  return `${significant(seconds / one)} ${unit}`;
}

/** Smallest number whose zeros are hard to count. */
const UNCOUNTED = 1e15;

/** Three digits, without a power of ten up to 10^15: `4.98`, `1,240`, `0.0123`, `2.50e+20`. */
export function significant(value: number): string {
  if (value < 0) return `${MINUS}${significant(-value)}`;
  if (value === 0 || !Number.isFinite(value)) return String(value);
  if (value >= UNCOUNTED) return value.toExponential(2);
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(value)));
  return value.toLocaleString('en-US', {
    minimumFractionDigits: Math.min(decimals, 20),
    maximumFractionDigits: Math.min(decimals, 20),
  });
}

/**
 * Three digits at most, without zeros at the end: `0`, `12.5`, `250k`, `3e-4`, `1.25e-5`. For axes and settings.
 * @param most Other number of digits.
 */
export function shortNumber(value: number, most = 3): string {
  if (value < 0) return `${MINUS}${shortNumber(-value, most)}`;
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const [digits = '', exponent = '0'] = value.toExponential(most - 1).split('e');
  const power = Number(exponent);
  if (power < -2 || power >= 15) return `${Number(digits)}e${power}`;
  const { scale, unit } = SHORT_UNITS.find(({ from }) => power >= from) ?? { scale: 0, unit: '' };
  return `${Number(`${digits}e${power - scale}`)}${unit}`;
}

/** Thousands begin at 10,000: `4096` is better known than `4.1k`. */
const SHORT_UNITS = [
  { from: 12, scale: 12, unit: 'T' },
  { from: 9, scale: 9, unit: 'B' },
  { from: 6, scale: 6, unit: 'M' },
  { from: 4, scale: 3, unit: 'k' },
] as const;

/** Decimals of a percentage, by the size of the share: small shares must not look like zero. */
const DECIMALS = [
  { from: 0.1, digits: 1 },
  { from: 0.001, digits: 2 },
  { from: 0, digits: 3 },
] as const;

/**
 * `38.8%`, `8.61%`, `0.86%`, `0.034%`, and `–` for null: the one form of a share in texts for people. Shares that would round to `0.000%` or `100.0%` without being exact are
 * `<0.001%` and `>99.9%`.
 * @param decimals Fixed number of decimals, for a table that a published one is compared with.
 */
export function percentText(share: number | null, decimals?: number): string {
  if (share === null) return '–';
  if (share < 0) return `${MINUS}${percentText(-share, decimals)}`;
  if (decimals !== undefined) return `${(share * 100).toFixed(decimals)}%`;
  const { digits } = DECIMALS.find(({ from }) => share >= from) ?? DECIMALS[2];
  const text = `${(share * 100).toFixed(digits)}%`;
  if (text === '0.000%') return share === 0 ? '0%' : '<0.001%';
  return text === '100.0%' && share < 1 ? '>99.9%' : text;
}

// Machine load as text

/** @param load Running and waiting processes per core; null where the system does not report it. */
export const loadText = (load: number | null): string =>
  load === null ? 'an unknown load' : `a load of ${load.toFixed(2)} for each core`;

/** Form of quantized weights: `int4, groups of 32`. */
export const weightFormText = ({
  bits,
  group,
}: {
  readonly bits: number;
  readonly group: number;
}): string => `int${bits}, groups of ${group}`;

/** Names of types in texts for people, as for the weights that `fit` serves. JSON keeps the names of the types. */
const DTYPE_WORDS: ReadonlyMap<string, string> = new Map([
  ['f8_e4m3', 'f8'],
  ['i8', 'int8'],
  ['i4', 'int4'],
]);

/** `int4` for `i4`. */
export const dtypeWord = (dtype: string): string => DTYPE_WORDS.get(dtype) ?? dtype;
