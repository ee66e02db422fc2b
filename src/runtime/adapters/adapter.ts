/** What is known of a graphics adapter. */

/** Something that graphics libraries compute on. */
export interface Adapter {
  readonly name: string;
  /** As people write it: `NVIDIA`. Null when nobody tells. */
  readonly vendor: string | null;
  /** Whether it computes on the processor: no graphics card. */
  readonly isSoftware: boolean;
  /** Its own, or where it has none all of the machine's; null when nobody tells. */
  readonly memoryBytes: number | null;
  /** Of one buffer at most; null, like the two that follow, when nobody tells. */
  readonly maxBufferBytes: number | null;
  /** What one operation sees of a buffer at most. */
  readonly maxBindingBytes: number | null;
  /** Whether its programs may compute in float16. */
  readonly hasFloat16: boolean | null;
  /** Who told: `webgpu`, `nvidia-smi`, `sysfs`, … */
  readonly source: string;
}

type Known = Pick<Adapter, 'name' | 'vendor' | 'source'>;

/** A graphics card of which little is known. */
export const card = ({ name, vendor, source, ...more }: Known & Partial<Adapter>): Adapter => ({
  name,
  vendor,
  isSoftware: false,
  memoryBytes: null,
  maxBufferBytes: null,
  maxBindingBytes: null,
  hasFloat16: null,
  source,
  ...more,
});

/** More is no name. */
const MAX_CHARACTERS = 100;

/** A name out of a driver in one line, without what would steer a terminal; null when nothing is left of it. */
export function cleanName(text: unknown): string | null {
  if (typeof text !== 'string') return null;
  const line = text.replace(/[\p{C}\s]+/gu, ' ').trim();
  return [...line].slice(0, MAX_CHARACTERS).join('') || null;
}
