/**
 * NVIDIA GeForce cards of laptops. The same chip runs at 35 to 175 W, as the maker of the laptop chose; peaks are those of
 * the boost clock in the table of the source, which a laptop of less power does not reach. Memory does not depend on it.
 */
import { ada, ampere, blackwell } from './geforce.js';
import type { Gpu, GpuArchitecture } from './gpu.js';
import { PCIE_4_X8, publisher, TECHPOWERUP } from './gpu.js';

/** Model, memory in GB if there are several, bandwidth in GB/s, peak of float32 in TFLOP/s. */
type LaptopRow = readonly [model: string, gigabytes: number, bandwidth: number, f32: number];

const AMPERE: readonly LaptopRow[] = [
  ['RTX 3050', 4, 192, 5.5],
  ['RTX 3050', 6, 168, 7.64],
  ['RTX 3050 Ti', 4, 192, 5.3],
  ['RTX 3060', 6, 336, 10.94],
  ['RTX 3070', 8, 448, 15.97],
  ['RTX 3070 Ti', 8, 448, 16.6],
  ['RTX 3080', 8, 448, 18.98],
  ['RTX 3080 Ti', 16, 512, 18.71],
];

const ADA: readonly LaptopRow[] = [
  ['RTX 4050', 6, 192, 8.99],
  ['RTX 4060', 8, 256, 11.61],
  ['RTX 4070', 8, 256, 15.62],
  ['RTX 4080', 12, 432, 24.72],
  ['RTX 4090', 16, 576, 32.98],
];

const BLACKWELL: readonly LaptopRow[] = [
  ['RTX 5050', 8, 384, 7.68],
  ['RTX 5060', 8, 384, 9.68],
  ['RTX 5070', 8, 384, 13.13],
  ['RTX 5070 Ti', 12, 672, 17.04],
  ['RTX 5080', 16, 896, 23.04],
  ['RTX 5090', 24, 896, 31.8],
];

const geforce = publisher('nvidia', 'NVIDIA GeForce ');

function laptops(
  rows: readonly LaptopRow[],
  architecture: GpuArchitecture,
  peaksOf: (f32: number) => Readonly<Record<string, number>>,
): Gpu[] {
  return rows.map(([model, gigabytes, bandwidth, f32]) => {
    const isOne = rows.filter(([other]) => other === model).length === 1;
    const size = isOne ? '' : ` ${gigabytes} GB`;
    const name = `${model} Laptop${size}`.toLowerCase().replace(' gb', 'gb').replaceAll(' ', '-');
    return geforce(name, `${model} Laptop${size}`, architecture, gigabytes, bandwidth, {
      peaks: peaksOf(f32),
      links: [PCIE_4_X8],
      source: `${TECHPOWERUP}, "Mobile"; its power and its PCIe depend on the laptop; ratios of peaks: those of the desktop cards`,
    });
  });
}

export const LAPTOPS: readonly Gpu[] = [
  ...laptops(AMPERE, 'sm86', ampere),
  ...laptops(ADA, 'sm89', ada),
  ...laptops(BLACKWELL, 'sm120', blackwell),
];
