/** Published parameters of adapters, with the reason why they differ from the counted ones. */
import { formatInteger } from '../text/units.js';

/** The published figures are all of adapters with these widths. */
const WIDTHS = { teacher: 5120, student: 1536 } as const;

interface Published {
  /** Null for a linear adapter. */
  readonly ratio: number | null;
  readonly parameters: number;
  /** As published. */
  readonly text: string;
}

/** The guidance gives the elastic figures per teacher; the verification gives the linear one. */
const PUBLISHED: readonly Published[] = [
  { ratio: null, parameters: 7_865_856, text: '7,865,856' },
  { ratio: 0.5, parameters: 17e6, text: 'about 17M' },
  { ratio: 1, parameters: 34_095_616, text: '34,095,616' },
  { ratio: 2, parameters: 68e6, text: 'about 68M' },
];

export interface PublishedParameters extends Pick<Published, 'parameters' | 'text'> {
  /** Reason why it is not the number of parameters of the teacher's adapters. */
  readonly reason: string;
}

/** Counted parameters of an adapter, and the sizes that they follow from. */
interface Counted {
  readonly width: number;
  readonly student: number;
  readonly ratio: number | null;
  readonly perAdapter: number | bigint;
}

/** Published figure for an adapter kind and ratio; null where none is published. */
export function publishedFor(counted: Counted): PublishedParameters | null {
  const { width, student, ratio, perAdapter } = counted;
  const published = PUBLISHED.find((each) => each.ratio === ratio);
  const isSame = width === WIDTHS.teacher && student === WIDTHS.student;
  // The guidance names its elastic figures for teachers of any width.
  if (published === undefined || (ratio === null && !isSame)) return null;
  const { parameters, text } = published;
  if (ratio === null) {
    const bias = formatInteger(student);
    return { parameters, text, reason: `one adapter with a bias of ${bias}; saved ones have none` };
  }
  const reason = isSame
    ? `one adapter (${formatInteger(perAdapter)}), published per teacher, which has two`
    : `one adapter of ${formatInteger(WIDTHS.teacher)} → ${formatInteger(WIDTHS.student)}, not two of ` +
      `${formatInteger(width)} → ${formatInteger(student)}`;
  return { parameters, text, reason };
}
