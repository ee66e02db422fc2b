/** Links that many GPUs have. Per direction: half of what is printed for both. */
import type { Link } from './gpu.js';

/** PCI-SIG, 16 lanes: 8, 16 and 32 GT/s; printed as 32, 64 and 128 GB/s in both directions. */
export const PCIE_3: Link = { name: 'PCIe 3 x16', bandwidth: 16e9, gpus: 8 };
export const PCIE_4: Link = { name: 'PCIe 4 x16', bandwidth: 32e9, gpus: 8 };
export const PCIE_5: Link = { name: 'PCIe 5 x16', bandwidth: 64e9, gpus: 8 };

/** 8 lanes of it, as small cards have. */
export const PCIE_4_X8: Link = { name: 'PCIe 4 x8', bandwidth: 16e9, gpus: 8 };
export const PCIE_5_X8: Link = { name: 'PCIe 5 x8', bandwidth: 32e9, gpus: 8 };

export const nvlink = (generation: number, bandwidth: number, gpus: number): Link => ({
  name: `NVLink ${generation}`,
  bandwidth,
  gpus,
});

/** A network of machines, in bits per second for each GPU, as networks are sold. */
export const network = (name: string, bitsPerSecond: number): Link => ({
  name,
  bandwidth: bitsPerSecond / 8,
  gpus: Number.POSITIVE_INFINITY,
});
