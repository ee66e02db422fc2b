/** Generations of chips, as far as a constant depends on one: what memory they have, and how well programs use them. */

/** HBM stands on the chip's package, GDDR on a card, LPDDR is shared with a processor. */
export type MemoryKind = 'hbm' | 'gddr' | 'lpddr';

/**
 * NVIDIA's by compute capability, as compilers call them (CUDA programming guide, compute capabilities); others by the
 * names that their makers give them.
 */
const MEMORY_OF = {
  /** V100. */
  sm70: 'hbm',
  /** Turing: T4, GeForce RTX 20. */
  sm75: 'gddr',
  /** A100, A30. */
  sm80: 'hbm',
  /** The other Ampere chips: A10, A40, RTX A, GeForce RTX 30. */
  sm86: 'gddr',
  /** Jetson Orin. */
  sm87: 'lpddr',
  /** Ada: L4, L40, RTX Ada, GeForce RTX 40. */
  sm89: 'gddr',
  /** Hopper. */
  sm90: 'hbm',
  /** Blackwell: B200. */
  sm100: 'hbm',
  /** Blackwell Ultra: B300. */
  sm103: 'hbm',
  /** RTX PRO Blackwell, GeForce RTX 50. */
  sm120: 'gddr',
  /** GB10, of DGX Spark. */
  sm121: 'lpddr',
  cdna1: 'hbm',
  cdna2: 'hbm',
  cdna3: 'hbm',
  cdna4: 'hbm',
  rdna3: 'gddr',
  /** Ryzen AI Max. */
  'rdna3.5': 'lpddr',
  rdna4: 'gddr',
  'tpu-v4': 'hbm',
  'tpu-v5e': 'hbm',
  'tpu-v5p': 'hbm',
  'tpu-v6e': 'hbm',
  tpu7x: 'hbm',
  neuron2: 'hbm',
  gaudi2: 'hbm',
  gaudi3: 'hbm',
  /** Intel Arc A. */
  xe: 'gddr',
  /** Intel Arc B. */
  xe2: 'gddr',
  apple: 'lpddr',
} as const satisfies Record<string, MemoryKind>;

export type Architecture = keyof typeof MEMORY_OF;

export const ARCHITECTURES = Object.keys(MEMORY_OF) as Architecture[];

/** What memory its chips have. */
export const memoryKindOf = (architecture: Architecture): MemoryKind => MEMORY_OF[architecture];

/** Of NVIDIA's: whether it is Hopper or later. */
export const isFromHopperOn = (architecture: Architecture): boolean =>
  /^sm\d+$/.test(architecture) && Number(architecture.slice(2)) >= 90;
