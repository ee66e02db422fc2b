/** What was measured of a machine, as it is stored; and the GPU that this machine then is. */
import * as z from 'zod';
import type { Gpu, GpuKind } from './gpu.js';

export const PROFILE_SCHEMA = 'minimind/machine@2';

/** What files had that say less: the machine is measured again. */
const EARLIER_SCHEMAS: readonly unknown[] = ['minimind/machine@1'];

/** Whether a document says of itself that it is a profile of an earlier form. */
export const isEarlierProfile = ({ schema }: Readonly<Record<string, unknown>>): boolean =>
  EARLIER_SCHEMAS.includes(schema);

/** Days after which a machine is measured again: drivers and libraries change, and clocks. */
const MOST_DAYS = 30;

const positive = z.number().positive();

const spread = z
  .strictObject({ least: positive, median: positive, most: positive })
  .refine(({ least, median, most }) => least <= median && median <= most, {
    message: 'must have least ≤ median ≤ most',
  });

/**
 * From the worst round to the best single run of all measurements; the median is of what the rounds of the newest came to
 * in the mean. What is a rate is slowest at `least`; what is a time is fastest there.
 */
export type Spread = Readonly<z.output<typeof spread>>;

/** The rate of products of [rows, width] by [width, width]. */
const productRate = z.strictObject({
  rows: z.int().positive(),
  width: z.int().positive(),
  flops: spread.describe('Per second, two for a multiplication with its addition'),
});

export type ProductRate = Readonly<z.output<typeof productRate>>;

const speed = z.strictObject({
  weightBandwidth: spread.describe('Bytes per second of weights that are read once, for one row'),
  products: z.array(productRate).min(1).max(100),
  valueBandwidth: spread.describe('Bytes per second that norms and activations read and write'),
  callSeconds: spread.describe('Of a call of one small layer'),
  layerSeconds: spread.describe('Of each further small layer in a call'),
});

export type MachineSpeed = Readonly<z.output<typeof speed>>;

const text = z.string().max(300);

/** What the speed depends on, and can be told without measuring. */
const circumstances = z.strictObject({
  hostname: text,
  cpu: text,
  platform: text,
  node: text,
  threads: z.int().positive(),
  asked: z.strictObject({ engine: text, device: text, compute: text }),
  libraries: z.record(text, text).describe('Versions of what can run a model here'),
});

export type Circumstances = Readonly<z.output<typeof circumstances>>;

const engine = z.strictObject({
  name: z.enum(['onnx', 'tfjs']),
  title: text.describe('Library, version and what it computes on'),
  device: text,
  isOnCpu: z.boolean(),
  compute: z.enum(['f32', 'f16']),
  memoryBytes: positive.nullable().describe('Of a graphics card; null where nobody tells'),
});

/** Processes that ran or waited to, for each core, in the minute before; null where the system does not tell. */
const load = z.number().nonnegative().nullable();

/** Over what the best and the worst were found. */
const history = z.strictObject({
  measurements: z.int().positive(),
  since: z.iso.datetime().describe('When the first of them was'),
  leastLoad: load.describe('The least at which one of them began; null where none tells'),
});

export const machineProfileSchema = z.strictObject({
  schema: z.literal(PROFILE_SCHEMA),
  measured: z.iso.datetime().describe('When the newest measurement was'),
  load: load.describe('Of each core, as it began'),
  history,
  circumstances,
  engine,
  speed,
});

export type MachineProfile = Readonly<z.output<typeof machineProfileSchema>>;

/** Why a profile does not do any more; null when it does. */
export function stalenessOf(
  { circumstances: then, measured }: MachineProfile,
  now: Circumstances,
  time: Date,
): string | null {
  const other = changeOf(then, now);
  if (other !== null) return `what is known is of ${other}`;
  const days = (time.getTime() - Date.parse(measured)) / 86_400_000;
  if (days > MOST_DAYS) return `what is known is ${Math.floor(days)} days old`;
  return days < -1 ? 'what is known is of the future' : null;
}

/** The first circumstance that is not the same any more; null when all are. */
function changeOf(then: Circumstances, now: Circumstances): string | null {
  for (const [key, what] of Object.entries(CIRCUMSTANCES)) {
    const name = key as keyof Circumstances;
    if (JSON.stringify(then[name]) !== JSON.stringify(now[name])) return what;
  }
  return null;
}

/**
 * A new measurement with what was seen before of the same machine and setting: the best and the worst of both, as a
 * machine that is busy shows less than it can do, and one that is idle not how slow it can be. Medians are the new ones.
 * What is of another machine or engine is left.
 */
export function mergedProfile(older: MachineProfile, newer: MachineProfile): MachineProfile {
  const isSame =
    changeOf(older.circumstances, newer.circumstances) === null &&
    JSON.stringify(older.engine) === JSON.stringify(newer.engine);
  if (!isSame) return newer;
  const [then, now] = [older.speed, newer.speed];
  return {
    ...newer,
    history: {
      measurements: older.history.measurements + newer.history.measurements,
      since: older.history.since,
      leastLoad: leastOf(older.history.leastLoad, newer.history.leastLoad),
    },
    speed: {
      weightBandwidth: widened(then.weightBandwidth, now.weightBandwidth),
      products: now.products.map((product) => {
        const known = then.products.find(
          ({ rows, width }) => rows === product.rows && width === product.width,
        );
        return known ? { ...product, flops: widened(known.flops, product.flops) } : product;
      }),
      valueBandwidth: widened(then.valueBandwidth, now.valueBandwidth),
      callSeconds: widened(then.callSeconds, now.callSeconds),
      layerSeconds: widened(then.layerSeconds, now.layerSeconds),
    },
  };
}

const widened = (older: Spread, newer: Spread): Spread => ({
  least: Math.min(older.least, newer.least),
  median: newer.median,
  most: Math.max(older.most, newer.most),
});

const leastOf = (a: number | null, b: number | null): number | null =>
  a === null || b === null ? (a ?? b) : Math.min(a, b);

const CIRCUMSTANCES: Readonly<Record<keyof Circumstances, string>> = {
  hostname: 'another machine',
  cpu: 'another processor',
  platform: 'another system',
  node: 'another version of Node.js',
  threads: 'another number of threads',
  asked: 'another engine or device',
  libraries: 'other versions of the libraries',
};

/**
 * A machine as a GPU, whose bandwidth and peak are the best of what was measured: what bounds are below.
 * @param availableBytes Of this machine's memory, now.
 */
export function gpuOfProfile(
  { engine: { title, device, isOnCpu, compute, memoryBytes }, speed, measured }: MachineProfile,
  availableBytes: number,
): Gpu {
  return {
    name: 'this-machine',
    title: `this machine, ${device}`,
    kind: isOnCpu ? 'processor' : cardKind(title),
    memoryBytes: isOnCpu ? availableBytes : (memoryBytes ?? availableBytes),
    bandwidth: speed.weightBandwidth.most,
    peakFlops: { [compute]: bestProduct(speed) },
    links: [],
    source: `measured on ${measured.slice(0, 10)} with ${title}: the best that was ever seen`,
  };
}

/** By the titles of engines, which name provider and card. */
const cardKind = (title: string): GpuKind =>
  /\b(cuda|nvidia)\b/i.test(title) ? 'nvidia' : 'other';

/** The fastest of all products, in FLOP/s. */
export const bestProduct = ({ products }: MachineSpeed): number =>
  Math.max(...products.map(({ flops }) => flops.most));
