/** Who makes graphics cards. */
import type { Adapter } from './adapter.js';

/**
 * Their ids on the PCI bus, by https://pci-ids.ucw.cz. Whose cards only show pictures are not among them: those
 * of servers (ASPEED, Matrox) and of virtual machines (Red Hat's virtio, VMware, Bochs, VirtualBox, Hyper-V).
 */
const PCI_IDS = {
  '10de': 'NVIDIA',
  '1002': 'AMD',
  '8086': 'Intel',
  '106b': 'Apple',
  '5143': 'Qualcomm',
  '1ed5': 'Moore Threads',
} as const satisfies Record<string, string>;

/** @param id Four hexadecimal digits, with or without `0x`. */
export function pciVendor(id: string): string | null {
  const key = id.trim().toLowerCase().replace(/^0x/, '');
  return Object.hasOwn(PCI_IDS, key) ? PCI_IDS[key as keyof typeof PCI_IDS] : null;
}

/** In words that people, drivers and WebGPU use of them, in small letters; some are software's. */
const WORDS = {
  nvidia: 'NVIDIA',
  amd: 'AMD',
  ati: 'AMD',
  radeon: 'AMD',
  intel: 'Intel',
  apple: 'Apple',
  qualcomm: 'Qualcomm',
  arm: 'ARM',
  broadcom: 'Broadcom',
  imgtec: 'Imagination',
  imagination: 'Imagination',
  samsung: 'Samsung',
  microsoft: 'Microsoft',
  google: 'Google',
  mesa: 'Mesa',
} as const satisfies Record<string, string>;

/** The first that a text has a word of: `sppci_vendor_amd`, `Intel`. */
export function vendorIn(text: string): string | null {
  const word = text
    .toLowerCase()
    .split(/[^a-z]+/)
    .find((each) => Object.hasOwn(WORDS, each));
  return word === undefined ? null : WORDS[word as keyof typeof WORDS];
}

/** Those that make cards with memory of their own first: a library that is asked for speed takes them. */
const FASTEST_FIRST: readonly (string | null)[] = ['NVIDIA', 'AMD', 'Apple', 'Intel'];

function rank(vendor: string | null): number {
  const at = FASTEST_FIRST.indexOf(vendor);
  return at === -1 ? FASTEST_FIRST.length : at;
}

type Rated = Pick<Adapter, 'vendor' | 'memoryBytes'>;

/** The order in which a library that is asked for speed would take them: a guess, which is right for most machines. */
export const byLikelySpeed = (a: Rated, b: Rated): number =>
  rank(a.vendor) - rank(b.vendor) || (b.memoryBytes ?? 0) - (a.memoryBytes ?? 0);
