/** Teachers as a user writes them, and what is published for their sizes. */
import { quote } from '../config/quote.js';
import { UserError } from '../errors.js';
import type { Teacher } from './projector.js';

const WRITTEN = /^(.+):(\d+)(?:x(\d+))?$/s;

/**
 * A teacher written as NAME:WIDTH or NAME:WIDTHxLAYERS. Undefined when it is neither, as a path would be.
 * @throws UserError when a size is none.
 */
export function parseTeacher(text: string): Teacher | undefined {
  const [, name, width, layers] = WRITTEN.exec(text) ?? [];
  if (name === undefined) return undefined;
  const sizes = [width, layers].filter((size) => size !== undefined).map(Number);
  if (sizes.some((size) => !Number.isSafeInteger(size) || size < 1 || size > MOST)) {
    throw new UserError('usage', `--teacher: ${quote(text)} has a size that is none`, {
      suggestion: 'write its width and layers as in --teacher Qwen2-14B:5120x40',
    });
  }
  const [ownWidth = 0, ownLayers] = sizes;
  return { name, width: ownWidth, ...(ownLayers !== undefined && { layers: ownLayers }) };
}

/** Of widths and layers: so that every width times 16 is exact. */
const MOST = 2 ** 31;

/** The size of a model, in parameters. */
export interface TeacherSize {
  readonly parameters: number;
  /** Its name says it, or its config was counted. */
  readonly from: 'name' | 'config';
}

/** `14B`, `8x7B`; what is active at a time, as A3B in Qwen3-30B-A3B, is no size. */
const SIZE_IN_NAME = /(?<![\d.]|[-_]a)(?:(\d{1,3})x)?(\d{1,4}(?:\.\d{1,3})?)([bm])(?![a-z\d])/i;

/** The size that a name states, as `14B` in Qwen2-14B. Of 8x7B it is the product, and what experts share counts often. */
export function sizeInName(name: string): TeacherSize | undefined {
  const [, experts = '1', number, unit = ''] = SIZE_IN_NAME.exec(name) ?? [];
  if (number === undefined) return undefined;
  const scale = unit.toLowerCase() === 'b' ? 1e9 : 1e6;
  return { parameters: Math.round(Number(experts) * Number(number) * scale), from: 'name' };
}

/** A name is the size in few digits: what is further from the count than this is the size of something else. */
const NAME_TOLERANCE = 0.05;

/**
 * The size of a model whose parameters are counted. Guidance is for models by the size in their names, which says 14B of
 * 13.96 billion: where a ratio depends on that, the name counts.
 */
export function sizeOfModel(name: string, parameters: number): TeacherSize {
  const counted: TeacherSize = { parameters, from: 'config' };
  const named = sizeInName(name);
  if (named === undefined) return counted;
  const isSameModel = Math.abs(named.parameters - parameters) <= NAME_TOLERANCE * parameters;
  const isSameRatio = recommendationFor(named).ratio === recommendationFor(counted).ratio;
  return isSameModel && !isSameRatio ? named : counted;
}

/** The published guidance for teachers from so many parameters on, the largest first. */
const GUIDANCE = [
  { from: 30e9, ratio: 2 },
  { from: 14e9, ratio: 1 },
  { from: 0, ratio: 0.5 },
] as const;

/** What is called a model of 70 billion has up to so many; beyond, nothing is published. */
const GUIDANCE_ENDS = 71e9;

export interface Recommendation {
  readonly ratio: number;
  /** Whether the teacher is larger than any that something is published for. */
  readonly isBeyond: boolean;
}

/** The ratio for a teacher's size: from exactly 14 billion on 1, from exactly 30 billion on 2. */
export function recommendationFor({ parameters }: TeacherSize): Recommendation {
  const ratio = GUIDANCE.find(({ from }) => parameters >= from)?.ratio ?? 0.5;
  return { ratio, isBeyond: parameters > GUIDANCE_ENDS };
}
