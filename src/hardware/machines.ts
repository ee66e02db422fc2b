/** Machines sold with several GPUs, each with its share of the network. */
import { quote } from '../config/quote.js';
import { UserError } from '../errors.js';
import type { Cluster, Hardware, Machine } from './gpu.js';
import { network } from './gpu.js';
import { GPUS, gpuNamed, nameSuggestion } from './gpus.js';

export const MACHINES: readonly Machine[] = [
  {
    name: 'dgx-1-v100',
    title: 'NVIDIA DGX-1 with 8 V100',
    gpu: gpuNamed('v100-32gb'),
    gpus: 8,
    // Four ports of 100 Gbit/s.
    network: network('InfiniBand EDR', 50e9),
    source: 'NVIDIA DGX-1 datasheet (2019)',
  },
  {
    name: 'dgx-a100',
    title: 'NVIDIA DGX A100 640 GB',
    gpu: gpuNamed('a100-80gb'),
    gpus: 8,
    network: network('InfiniBand HDR', 200e9),
    source: 'NVIDIA DGX A100 datasheet (2021)',
  },
  {
    name: 'dgx-h100',
    title: 'NVIDIA DGX H100',
    gpu: gpuNamed('h100-80gb'),
    gpus: 8,
    network: network('InfiniBand NDR', 400e9),
    source: 'NVIDIA DGX H100 datasheet (2023)',
  },
  {
    name: 'dgx-h200',
    title: 'NVIDIA DGX H200',
    gpu: gpuNamed('h200'),
    gpus: 8,
    network: network('InfiniBand NDR', 400e9),
    source: 'NVIDIA DGX H200 datasheet (2024)',
  },
  {
    name: 'hgx-h200',
    title: 'NVIDIA HGX H200 with 8 GPUs',
    gpu: gpuNamed('h200'),
    gpus: 8,
    network: null,
    source: 'NVIDIA H200 datasheet (2024)',
  },
  {
    name: 'dgx-b200',
    title: 'NVIDIA DGX B200',
    gpu: gpuNamed('b200'),
    gpus: 8,
    network: network('InfiniBand NDR', 400e9),
    source: 'NVIDIA DGX B200 datasheet (2024)',
  },
  {
    name: 'dgx-b300',
    title: 'NVIDIA DGX B300',
    gpu: gpuNamed('b300'),
    gpus: 8,
    network: network('InfiniBand XDR', 800e9),
    source: 'NVIDIA DGX B300 datasheet (2025)',
  },
  {
    name: 'gb200-nvl72',
    title: 'NVIDIA GB200 NVL72, as in DGX GB200',
    gpu: gpuNamed('gb200'),
    gpus: 72,
    network: network('InfiniBand NDR', 400e9),
    source: 'NVIDIA DGX GB200 datasheet (2024)',
  },
  {
    name: 'hgx-h20',
    title: 'NVIDIA HGX H20 with 8 GPUs',
    gpu: gpuNamed('h20'),
    gpus: 8,
    network: null,
    source: 'as reported by SemiAnalysis (2023)',
  },
  {
    name: 'p4d.24xlarge',
    title: 'Amazon EC2 p4d.24xlarge',
    gpu: gpuNamed('a100-40gb'),
    gpus: 8,
    network: network('EFA, 400 Gbit/s of 8', 50e9),
    source: 'Amazon EC2 P4 instances, product page (2020)',
  },
  {
    name: 'p5.48xlarge',
    title: 'Amazon EC2 p5.48xlarge',
    gpu: gpuNamed('h100-80gb'),
    gpus: 8,
    network: network('EFA, 3200 Gbit/s of 8', 400e9),
    source: 'Amazon EC2 P5 instances, product page (2023)',
  },
  {
    name: 'p5e.48xlarge',
    title: 'Amazon EC2 p5e.48xlarge',
    gpu: gpuNamed('h200'),
    gpus: 8,
    network: network('EFA, 3200 Gbit/s of 8', 400e9),
    source: 'stas00, ml-engineering, network (2025)',
  },
  {
    name: 'p5en.48xlarge',
    title: 'Amazon EC2 p5en.48xlarge',
    gpu: gpuNamed('h200'),
    gpus: 8,
    network: network('EFA, 3200 Gbit/s of 8', 400e9),
    source: 'stas00, ml-engineering, network (2025)',
  },
  {
    name: 'p6-b200.48xlarge',
    title: 'Amazon EC2 p6-b200.48xlarge',
    gpu: gpuNamed('b200'),
    gpus: 8,
    network: network('EFA, 3200 Gbit/s of 8', 400e9),
    source: 'stas00, ml-engineering, network (2025)',
  },
  {
    name: 'p6-b300.48xlarge',
    title: 'Amazon EC2 p6-b300.48xlarge',
    gpu: gpuNamed('b300'),
    gpus: 8,
    network: network('EFA, 6400 Gbit/s of 8', 800e9),
    source: 'stas00, ml-engineering, network (2025)',
  },
  {
    name: 'a3-megagpu-8g',
    title: 'Google Cloud a3-megagpu-8g',
    gpu: gpuNamed('h100-80gb'),
    gpus: 8,
    network: network('GPUDirect-TCPXO', 200e9),
    source: 'stas00, ml-engineering, network (2025)',
  },
  {
    name: 'g5.48xlarge',
    title: 'Amazon EC2 g5.48xlarge',
    gpu: gpuNamed('a10g'),
    gpus: 8,
    network: network('Ethernet, 100 Gbit/s of 8', 12.5e9),
    source: 'Amazon EC2 G5 instances, product page (2021)',
  },
  {
    name: 'mi300x-platform',
    title: 'AMD Instinct MI300X platform',
    gpu: gpuNamed('mi300x'),
    gpus: 8,
    network: null,
    source: 'AMD Instinct MI300X platform datasheet (2023)',
  },
];

/** User's hardware with the table; the user's entries replace those of the same name. */
export const withTable = (own: Hardware): Hardware => ({
  gpus: joined(own.gpus, GPUS),
  machines: joined(own.machines, MACHINES),
});

const joined = <T extends { readonly name: string }>(own: readonly T[], table: readonly T[]) => [
  ...own,
  ...table.filter(({ name }) => !own.some((each) => each.name === name)),
];

/**
 * Cluster of GPUs by name, or a machine by name with its GPUs.
 * @param gpus Number of GPUs; undefined: one of a GPU, all of a machine.
 * @throws UserError with the nearest name if there is neither.
 */
export function clusterNamed(name: string, gpus: number | undefined, own: Hardware): Cluster {
  const { gpus: knownGpus, machines } = withTable(own);
  const machine = machines.find((each) => each.name === name);
  if (machine) {
    return { gpu: machine.gpu, gpus: gpus ?? machine.gpus, network: machine.network };
  }
  const known = [...knownGpus, ...machines];
  if (!known.some((each) => each.name === name)) {
    throw new UserError('usage', `${quote(name)} is no GPU or machine that is known here`, {
      suggestion: nameSuggestion(name, known),
    });
  }
  return { gpu: gpuNamed(name, own.gpus), gpus: gpus ?? 1, network: null };
}
