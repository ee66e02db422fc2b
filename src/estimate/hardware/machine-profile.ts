/** Stored measurements of a machine, and its description as a GPU. */
import * as z from 'zod';

export const PROFILE_SCHEMA = 'minimind/machine@2';

/** Earlier schemas with fewer fields: the machine must be measured again. */
const EARLIER_SCHEMAS: readonly unknown[] = ['minimind/machine@1'];

/** Whether a document is a profile of an earlier schema. */
export const isEarlierProfile = ({ schema }: Readonly<Record<string, unknown>>): boolean =>
  EARLIER_SCHEMAS.includes(schema);

/** Days until a machine is measured again, because drivers, libraries and clocks change. */
const MOST_DAYS = 30;

const positive = z.number().positive();

const spread = z
  .strictObject({
    /** Worst round. @real */
    least: positive,
    /** Median of the rounds. @real */
    median: positive,
    /** Best single run. @real */
    most: positive,
  })
  .refine(({ least, median, most }) => least <= median && median <= most, {
    message: 'must have least ≤ median ≤ most',
  });

/**
 * Spread from the worst round to the best single run of all measurements. The median is over the mean of each round in
 * the newest measurement. `least` is slowest for a rate and fastest for a time.
 */
export type MeasurementSpread = Readonly<z.output<typeof spread>>;

/** Rate of products of [rows, width] by [width, width]. */
const productRate = z.strictObject({
  /** Rows of the left matrix. @integer @minimum 1 */
  rows: z.int().positive(),
  /** Rows and columns of the right matrix. @integer @minimum 1 */
  width: z.int().positive(),
  /** Floating-point operations per second. */
  flops: spread.describe('Per second, two for a multiplication with its addition'),
});

export type ProductRate = Readonly<z.output<typeof productRate>>;

const speed = z.strictObject({
  /** Bytes of weights read per second. */
  weightBandwidth: spread.describe('Bytes per second of weights that are read once, for one row'),
  /** Speed of matrix products. */
  products: z.array(productRate).min(1).max(100),
  /** Bytes of values read and written per second. */
  valueBandwidth: spread.describe('Bytes per second that norms and activations read and write'),
  /** Bytes per second that threads read from the system memory; absent in older profiles. */
  memoryBandwidth: spread
    .optional()
    .describe('Bytes per second that threads read from the system memory'),
  /** Time of a call without work. */
  callSeconds: spread.describe('Of a call of one small layer'),
  /** Time of a layer without work. */
  layerSeconds: spread.describe('Of each further small layer in a call'),
});

export type MachineSpeed = Readonly<z.output<typeof speed>>;

const text = z.string().max(300);

/** Conditions of the speed that need no measurement. */
const circumstances = z.strictObject({
  /** Name of the machine. */
  hostname: text,
  /** Model of the processor. */
  cpu: text,
  /** Operating system and architecture. */
  platform: text,
  /** Version of Node.js. */
  node: text,
  /** Threads of the engine. @integer @minimum 1 */
  threads: z.int().positive(),
  /** Flags that choose the engine. */
  asked: z.strictObject({
    /** Value of `--engine`. */
    engine: text,
    /** Value of `--device`. */
    device: text,
    /** Value of `--compute`. */
    compute: text,
  }),
  /** Versions of the libraries. */
  libraries: z.record(text, text).describe('Versions of what can run a model here'),
});

export type MeasurementConditions = Readonly<z.output<typeof circumstances>>;

const engine = z.strictObject({
  /** Name of the engine. */
  name: z.enum(['onnx', 'tfjs']),
  /** Name for people. */
  title: text.describe('Library, version and what it computes on'),
  /** Device for people. */
  device: text,
  /** Whether it computes on the processor. */
  isOnCpu: z.boolean(),
  /** Element type of the computation. */
  compute: z.enum(['f32', 'f16']),
  /** Memory of a graphics card; null for the processor. @real */
  memoryBytes: positive.nullable().describe('Memory of a graphics card; null if unknown'),
});

/** Running or waiting processes per core in the last minute; null if the system does not report it. */
const load = z.number().nonnegative().nullable();

/** Measurements over which the best and the worst were found. */
const history = z.strictObject({
  /** Number of measurements. @integer @minimum 1 */
  measurements: z.int().positive(),
  /** Time of the first one. */
  since: z.iso.datetime().describe('When the first of them was'),
  /** Lowest load at the start of a measurement; null if unknown. @real */
  leastLoad: load.describe('Smallest load at the start of a measurement; null if unknown'),
});

export const machineProfileSchema = z.strictObject({
  schema: z.literal(PROFILE_SCHEMA),
  /** Time of the newest measurement. */
  measured: z.iso.datetime().describe('When the newest measurement was'),
  /** Load per core at the start; null if the system does not report it. @real */
  load: load.describe('Of each core, as it began'),
  /** Measurements that the best and the worst are from. */
  history,
  /** Circumstances that the speed depends on. */
  circumstances,
  /** Engine that was measured. */
  engine,
  /** Measured speeds. */
  speed,
});

export type MachineProfile = Readonly<z.output<typeof machineProfileSchema>>;

/** Reason why a profile is stale; null if it is current. */
export function stalenessOf(
  { circumstances: then, measured }: MachineProfile,
  now: MeasurementConditions,
  time: Date,
): string | null {
  const other = changeOf(then, now);
  if (other !== null) return `the stored measurements are of ${other}`;
  const days = (time.getTime() - Date.parse(measured)) / 86_400_000;
  if (days > MOST_DAYS) return `the stored measurements are ${Math.floor(days)} days old`;
  return days < -1 ? 'the stored measurements have a future date' : null;
}

/** First circumstance that changed; null if none did. */
function changeOf(then: MeasurementConditions, now: MeasurementConditions): string | null {
  for (const [key, what] of Object.entries(CIRCUMSTANCES)) {
    const name = key as keyof MeasurementConditions;
    if (JSON.stringify(then[name]) !== JSON.stringify(now[name])) return what;
  }
  return null;
}

/**
 * Merges a new measurement with earlier ones of the same machine and setting. The best and the worst are of both: a
 * busy machine shows less than its peak, an idle one does not show its worst. Medians are the new ones. Measurements of
 * another machine or engine are dropped.
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
      ...(now.memoryBandwidth && {
        memoryBandwidth:
          then.memoryBandwidth === undefined
            ? now.memoryBandwidth
            : widened(then.memoryBandwidth, now.memoryBandwidth),
      }),
      callSeconds: widened(then.callSeconds, now.callSeconds),
      layerSeconds: widened(then.layerSeconds, now.layerSeconds),
    },
  };
}

const widened = (older: MeasurementSpread, newer: MeasurementSpread): MeasurementSpread => ({
  least: Math.min(older.least, newer.least),
  median: newer.median,
  most: Math.max(older.most, newer.most),
});

const leastOf = (a: number | null, b: number | null): number | null =>
  a === null || b === null ? (a ?? b) : Math.min(a, b);

const CIRCUMSTANCES: Readonly<Record<keyof MeasurementConditions, string>> = {
  hostname: 'another machine',
  cpu: 'another processor',
  platform: 'another system',
  node: 'another version of Node.js',
  threads: 'another number of threads',
  asked: 'another engine or device',
  libraries: 'other versions of the libraries',
};
