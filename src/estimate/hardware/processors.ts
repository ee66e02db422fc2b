/** Memory of processors: channels and the fastest type that each family supports, with one module per channel. */
import { usageError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { quote } from '../../config/quote.js';
import { GPUS } from './gpus.js';

/** Memory that a processor supports. */
export interface Processor {
  /** Name for people. */
  readonly title: string;
  /** Channels of 64 bits; null where the maker publishes the bandwidth alone. */
  readonly channels: number | null;
  /** `DDR5-5600`; null where the maker publishes the bandwidth alone. */
  readonly memory: string | null;
  /** Bytes per second of all channels. */
  readonly bandwidth: number;
  readonly source: string;
}

/** Bytes that a channel moves in a transfer: 64 bits (JEDEC JESD79-4 and JESD79-5, two subchannels of 32 in DDR5). */
export const CHANNEL_BYTES = 8;

type Memory = 'DDR3' | 'DDR4' | 'DDR5' | 'LPDDR5X';

/** Names of a family, its title, channels, type and millions of transfers a second, source. */
type FamilyRow = readonly [RegExp, string, number, Memory, number, string];

const TOMS = "Tom's Hardware, memory support of Ryzen 1000 to 3000 (2019)";
const HARDWARE_TIMES = 'Hardware Times, memory of Ryzen 7000 and 12th generation (2022)';
const FPS = 'The FPS Review, memory of 12th and 13th generation (2022)';
const HEDT = 'cpu-monkey, Threadripper (2021), and i2hard, publication 34228 (2023)';
const ROME = 'llmperf.net, EPYC 7000 (2025): 8 channels of DDR4-3200';
const GENOA = 'ggml-org/llama.cpp, discussion 16569 (2025): 460.8 and 614.4 GB/s';
const AMD = 'AMD specifications (2025), not verified';
const INTEL = 'Intel specifications (2025), not verified';

/** The first row that matches counts. Names are lower case, without marks of makers and without `processor`. */
const FAMILIES: readonly FamilyRow[] = [
  [/ryzen ai max/, 'Ryzen AI Max', 4, 'LPDDR5X', 8000, AMD],
  [/ryzen ai\b/, 'Ryzen AI 300', 2, 'LPDDR5X', 7500, AMD],
  [/threadripper pro 9\d{3}wx/, 'Threadripper PRO 9000', 8, 'DDR5', 6400, AMD],
  [/threadripper pro 7\d{3}wx/, 'Threadripper PRO 7000', 8, 'DDR5', 5200, HEDT],
  [/threadripper pro [35]\d{3}wx/, 'Threadripper PRO 3000 and 5000', 8, 'DDR4', 3200, AMD],
  [/threadripper 9\d{3}/, 'Threadripper 9000', 4, 'DDR5', 6400, AMD],
  [/threadripper 7\d{3}/, 'Threadripper 7000', 4, 'DDR5', 5200, HEDT],
  [/threadripper 3\d{3}/, 'Threadripper 3000', 4, 'DDR4', 3200, HEDT],
  [/threadripper [12]\d{3}/, 'Threadripper 1000 and 2000', 4, 'DDR4', 2667, AMD],
  [/epyc 9\d\d5/, 'EPYC 9005', 12, 'DDR5', 6400, GENOA],
  [/epyc 9[\dv]\d4/, 'EPYC 9004', 12, 'DDR5', 4800, GENOA],
  [/epyc 8\d\d4/, 'EPYC 8004', 6, 'DDR5', 4800, AMD],
  [/epyc 7[\w]{2}[23]/, 'EPYC 7002 and 7003', 8, 'DDR4', 3200, ROME],
  [/epyc 7\d\d1/, 'EPYC 7001', 8, 'DDR4', 2667, AMD],
  [/epyc 4\d\d[45]/, 'EPYC 4004', 2, 'DDR5', 5200, AMD],
  [/ryzen \d (?:pro )?9\d{3}/, 'Ryzen 9000', 2, 'DDR5', 5600, AMD],
  [/ryzen \d (?:pro )?[78]\d4\d(?:hs|h|u)/, 'Ryzen 7040 and 8040', 2, 'DDR5', 5600, AMD],
  [/ryzen \d (?:pro )?[78]\d{3}/, 'Ryzen 7000 and 8000', 2, 'DDR5', 5200, HARDWARE_TIMES],
  [/ryzen \d (?:pro )?6\d{3}/, 'Ryzen 6000', 2, 'DDR5', 4800, AMD],
  [/ryzen \d (?:pro )?[345]\d{3}/, 'Ryzen 3000 to 5000', 2, 'DDR4', 3200, TOMS],
  [/ryzen \d (?:pro )?2\d{3}/, 'Ryzen 2000', 2, 'DDR4', 2933, TOMS],
  [/ryzen \d (?:pro )?1\d{3}/, 'Ryzen 1000', 2, 'DDR4', 2667, TOMS],
  [/ultra \d 2\d\dv/, 'Core Ultra 200V', 2, 'LPDDR5X', 8533, INTEL],
  [/ultra \d 2\d\d/, 'Core Ultra 200', 2, 'DDR5', 6400, INTEL],
  [/ultra \d 1\d\d/, 'Core Ultra 100', 2, 'DDR5', 5600, INTEL],
  [/i\d[- ]1[34]\d{2,3}/, 'Core of the 13th and 14th generation', 2, 'DDR5', 5600, FPS],
  [/i\d[- ]12\d{2,3}/, 'Core of the 12th generation', 2, 'DDR5', 4800, FPS],
  [/i\d[- ]11\d{2,3}/, 'Core of the 11th generation', 2, 'DDR4', 3200, INTEL],
  [/i9[- ]109\d0xe?/, 'Core X of the 10th generation', 4, 'DDR4', 2933, INTEL],
  [/i[79][- ][79]\d{3}xe?/, 'Core X of the 7th and 9th generation', 4, 'DDR4', 2667, INTEL],
  [/i\d[- ]10\d{2,3}/, 'Core of the 10th generation', 2, 'DDR4', 2933, INTEL],
  [/i\d[- ][89]\d{3}/, 'Core of the 8th and 9th generation', 2, 'DDR4', 2667, INTEL],
  [/i\d[- ][67]\d{3}/, 'Core of the 6th and 7th generation', 2, 'DDR4', 2400, INTEL],
  [/i\d[- ][34]\d{3}/, 'Core of the 3rd and 4th generation', 2, 'DDR3', 1600, INTEL],
  [/xeon 6 69\d\dp|xeon 69\d\dp/, 'Xeon 6900', 12, 'DDR5', 6400, INTEL],
  [/xeon (?:6 )?6[57]\d\d[pe]/, 'Xeon 6500 and 6700', 8, 'DDR5', 6400, INTEL],
  [/w[579]-3[45]\d\d/, 'Xeon W-3400', 8, 'DDR5', 4800, INTEL],
  [/w[3579]-2[45]\d\d/, 'Xeon W-2400', 4, 'DDR5', 4800, INTEL],
  [
    /(?:platinum|gold|silver|bronze) \d5\d\d/,
    'Xeon Scalable, 5th generation',
    8,
    'DDR5',
    5600,
    INTEL,
  ],
  [
    /(?:platinum|gold|silver|bronze) \d4\d\d/,
    'Xeon Scalable, 4th generation',
    8,
    'DDR5',
    4800,
    INTEL,
  ],
  [
    /(?:platinum|gold|silver|bronze) \d3\d\d/,
    'Xeon Scalable, 3rd generation',
    8,
    'DDR4',
    3200,
    INTEL,
  ],
  [
    /(?:platinum|gold|silver|bronze) \d2\d\d/,
    'Xeon Scalable, 2nd generation',
    6,
    'DDR4',
    2933,
    INTEL,
  ],
  [
    /(?:platinum|gold|silver|bronze) \d1\d\d/,
    'Xeon Scalable, 1st generation',
    6,
    'DDR4',
    2667,
    INTEL,
  ],
  [/e5-\d{4}\w* ?v4/, 'Xeon E5 v4', 4, 'DDR4', 2400, INTEL],
  [/e5-\d{4}\w* ?v3/, 'Xeon E5 v3', 4, 'DDR4', 2133, INTEL],
  [/e5-\d{4}\w* ?v2/, 'Xeon E5 v2', 4, 'DDR3', 1866, INTEL],
];

const folded = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/\((?:r|tm|c)\)|[®™]/g, ' ')
    .replaceAll(/\b(?:amd|intel|core(?! ultra)|cpu|processor|\d+th gen|\d+-core)\b/g, ' ')
    .replaceAll(/@.*$/g, ' ')
    .replaceAll(/\b(ryzen|threadripper) ?(?=\d)/g, '$1 ')
    .replaceAll(/\bryzen threadripper\b/g, 'threadripper')
    .replaceAll(/\s+/g, ' ')
    .trim();

/** The memory that a processor supports; undefined for one that no row knows. @param text A name, as people or systems write it. */
export function knownProcessor(text: string): Processor | undefined {
  const query = folded(text);
  const apple = appleChip(query);
  if (apple) return apple;
  // A Threadripper or a bare number of a Ryzen: `7950x`, `5800x3d`.
  const named = /^\d{4}[a-z\d]*$/.test(query) ? `ryzen 9 ${query}` : query;
  const found = FAMILIES.find(([pattern]) => pattern.test(named));
  if (found === undefined) return undefined;
  const [, title, channels, type, megatransfers, source] = found;
  return {
    title,
    channels,
    memory: `${type}-${megatransfers}`,
    bandwidth: channels * CHANNEL_BYTES * megatransfers * 1e6,
    source,
  };
}

/** The memory of an Apple chip, which its cores and its graphics share. */
function appleChip(query: string): Processor | undefined {
  const [, chip] = /^(?:apple )?(m\d(?: (?:pro|max|ultra))?)$/.exec(query) ?? [];
  if (chip === undefined) return undefined;
  const prefix = `${chip.replace(' ', '-')}-`;
  const found = GPUS.find(
    ({ name }) => name.startsWith(prefix) && /^\d/.test(name.slice(prefix.length)),
  );
  return (
    found && {
      title: chip.toUpperCase(),
      channels: null,
      memory: null,
      bandwidth: found.bandwidth,
      source: found.source,
    }
  );
}

/** @throws UserError for a processor that no row knows. */
export function processorNamed(text: string): Processor {
  const found = knownProcessor(text);
  if (found) return found;
  throw usageError(
    `${setting('cpu')}: unknown processor ${quote(text)}`,
    `write its memory, as in ${setting('ramSpeed', 'ddr5-5600')} for two channels or ${setting('ramSpeed', '8xddr5-4800')}`,
  );
}
