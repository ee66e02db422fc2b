import { type Dtype, parseDtype } from '../../../base/tensor/dtype.js';
import {
  type PublishedBytes,
  type PublishedFigure,
  parsePublished,
} from '../../../config/parse-published.js';

/** A published number, a size with the element type that the publication names. */
export type PublishedNumber =
  | Exclude<PublishedFigure, { readonly unit: 'bytes' }>
  | (PublishedBytes & { readonly dtype?: Dtype });

/** Reads `22,143,967,232`, `~13.8B`, `536MB fp16`, `57x`, `50-70%` and `+96M`; undefined for another text. */
export function parsePublishedNumber(text: string): PublishedNumber | undefined {
  const published = parsePublished(text);
  if (published === undefined || published.unit !== 'bytes') return published;
  const dtype = parseDtype(published.type ?? '');
  if (published.type !== undefined && dtype === undefined) return undefined;
  return { ...published, ...(dtype && { dtype }) };
}
