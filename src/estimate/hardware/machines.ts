/** Machines with several GPUs, and instances of clouds. */
import type { GpuMachine, Hardware, Link } from './gpu.js';
import { GPUS, gpuNamed } from './gpus.js';

/** Network between machines, from Gbit/s per GPU. */
const network = (name: string, gigabitsPerSecond: number): Link => ({
  name,
  bandwidth: (gigabitsPerSecond * 1e9) / 8,
  gpus: Number.POSITIVE_INFINITY,
});

/** Four ports of 100 Gbit/s for eight GPUs. */
const INFINIBAND_EDR = network('InfiniBand EDR', 50);
const INFINIBAND_HDR = network('InfiniBand HDR', 200);
const INFINIBAND_NDR = network('InfiniBand NDR', 400);
const INFINIBAND_XDR = network('InfiniBand XDR', 800);
const EFA_400 = network('EFA, 400 Gbit/s of 8', 50);
const EFA_3200 = network('EFA, 3200 Gbit/s of 8', 400);
const EFA_6400 = network('EFA, 6400 Gbit/s of 8', 800);
const ETHERNET_100 = network('Ethernet, 100 Gbit/s of 8', 12.5);
const EFA_800_OF_16 = network('EFA, 800 Gbit/s of 16', 50);
const EFA_3200_OF_16 = network('EFA, 3200 Gbit/s of 16', 200);
const ETHERNET_400 = network('Ethernet, 400 Gbit/s of 8', 50);
const TCPX = network('GPUDirect-TCPX, 800 Gbit/s of 8', 100);
const TCPXO = network('GPUDirect-TCPXO', 200);
const ROCE_400 = network('RoCE, 400 Gbit/s', 400);

const SURVEY = 'stas00, ml-engineering, network (2025)';

const AZURE =
  'Azure documentation, sizes of the ND family (2024); names and GPUs: huggingface.co/docs/microsoft-azure (2025)';
const NEURON = 'AWS Neuron documentation, architecture of Trn1 and Inf2 (2023)';
const TOOLKIT = 'GoogleCloudPlatform/cluster-toolkit, release 1.44.1 (2024): a ConnectX-7 for each';
const DSTACK = 'dstackai/dstack, pull request 3152 (2025): RoCE, as A3 Ultra';

function nvidiaSheet(product: string, year: number): string {
  return `NVIDIA ${product} datasheet (${year})`;
}

function ec2Page(instances: string, year: number): string {
  return `Amazon EC2 ${instances} instances, product page (${year})`;
}

/** Name, title, GPU, its share of the network if known, source, number of GPUs if not 8. */
type MachineRow = readonly [string, string, string, Link | null, string, number?];

const MACHINE_ROWS: readonly MachineRow[] = [
  [
    'dgx-1-v100',
    'NVIDIA DGX-1 with 8 V100',
    'v100-32gb',
    INFINIBAND_EDR,
    nvidiaSheet('DGX-1', 2019),
  ],
  [
    'dgx-a100',
    'NVIDIA DGX A100 640 GB',
    'a100-80gb',
    INFINIBAND_HDR,
    nvidiaSheet('DGX A100', 2021),
  ],
  ['dgx-h100', 'NVIDIA DGX H100', 'h100-80gb', INFINIBAND_NDR, nvidiaSheet('DGX H100', 2023)],
  ['dgx-h200', 'NVIDIA DGX H200', 'h200', INFINIBAND_NDR, nvidiaSheet('DGX H200', 2024)],
  ['hgx-h200', 'NVIDIA HGX H200 with 8 GPUs', 'h200', null, nvidiaSheet('H200', 2024)],
  ['dgx-b200', 'NVIDIA DGX B200', 'b200', INFINIBAND_NDR, nvidiaSheet('DGX B200', 2024)],
  ['dgx-b300', 'NVIDIA DGX B300', 'b300', INFINIBAND_XDR, nvidiaSheet('DGX B300', 2025)],
  [
    'gb200-nvl72',
    'NVIDIA GB200 NVL72, as in DGX GB200',
    'gb200',
    INFINIBAND_NDR,
    nvidiaSheet('DGX GB200', 2024),
    72,
  ],
  [
    'gb300-nvl72',
    'NVIDIA GB300 NVL72, as in DGX GB300',
    'gb300',
    INFINIBAND_XDR,
    nvidiaSheet('DGX GB300', 2025),
    72,
  ],
  ['hgx-h20', 'NVIDIA HGX H20 with 8 GPUs', 'h20', null, 'as reported by SemiAnalysis (2023)'],
  ['p4d.24xlarge', 'Amazon EC2 p4d.24xlarge', 'a100-40gb', EFA_400, ec2Page('P4', 2020)],
  ['p4de.24xlarge', 'Amazon EC2 p4de.24xlarge', 'a100-80gb', EFA_400, ec2Page('P4', 2022)],
  ['p5.48xlarge', 'Amazon EC2 p5.48xlarge', 'h100-80gb', EFA_3200, ec2Page('P5', 2023)],
  ['p5e.48xlarge', 'Amazon EC2 p5e.48xlarge', 'h200', EFA_3200, SURVEY],
  ['p5en.48xlarge', 'Amazon EC2 p5en.48xlarge', 'h200', EFA_3200, SURVEY],
  ['p6-b200.48xlarge', 'Amazon EC2 p6-b200.48xlarge', 'b200', EFA_3200, SURVEY],
  ['p6-b300.48xlarge', 'Amazon EC2 p6-b300.48xlarge', 'b300', EFA_6400, SURVEY],
  ['trn1.32xlarge', 'Amazon EC2 trn1.32xlarge', 'trainium1', EFA_800_OF_16, NEURON, 16],
  ['trn2.48xlarge', 'Amazon EC2 trn2.48xlarge', 'trainium2', EFA_3200_OF_16, SURVEY, 16],
  ['inf2.48xlarge', 'Amazon EC2 inf2.48xlarge', 'inferentia2', null, NEURON, 12],
  ['a3-highgpu-8g', 'Google Cloud a3-highgpu-8g', 'h100-80gb', TCPX, SURVEY],
  ['a3-ultragpu-8g', 'Google Cloud a3-ultragpu-8g', 'h200', ROCE_400, TOOLKIT],
  ['a4-highgpu-8g', 'Google Cloud a4-highgpu-8g', 'b200', ROCE_400, DSTACK],
  ['a3-megagpu-8g', 'Google Cloud a3-megagpu-8g', 'h100-80gb', TCPXO, SURVEY],
  ['nd-a100', 'Azure ND96asr v4', 'a100-40gb', INFINIBAND_HDR, AZURE],
  ['ndm-a100', 'Azure ND96amsr A100 v4', 'a100-80gb', INFINIBAND_HDR, AZURE],
  ['nd-h100', 'Azure ND96isr H100 v5', 'h100-80gb', INFINIBAND_NDR, AZURE],
  ['nd-h200', 'Azure ND96isr H200 v5', 'h200', INFINIBAND_NDR, AZURE],
  ['nd-mi300x', 'Azure ND96isr MI300X v5', 'mi300x', INFINIBAND_NDR, AZURE],
  ['g6.48xlarge', 'Amazon EC2 g6.48xlarge', 'l4', ETHERNET_100, ec2Page('G6', 2024)],
  ['g6e.48xlarge', 'Amazon EC2 g6e.48xlarge', 'l40s', ETHERNET_400, ec2Page('G6e', 2024)],
  ['g5.48xlarge', 'Amazon EC2 g5.48xlarge', 'a10g', ETHERNET_100, ec2Page('G5', 2021)],
  [
    'mi300x-platform',
    'AMD Instinct MI300X platform',
    'mi300x',
    null,
    'AMD Instinct MI300X platform datasheet (2023)',
  ],
  [
    'mi325x-platform',
    'AMD Instinct MI325X platform',
    'mi325x',
    null,
    'AMD Instinct MI325X platform (2024), eight modules as the MI300X platform',
  ],
  [
    'mi355x-platform',
    'AMD Instinct MI355X platform',
    'mi355x',
    null,
    'AMD Instinct MI355X platform (2025), eight modules: stas00, ml-engineering, network (2025)',
  ],
];

/** Machines sold with several GPUs, each with its share of the network. */
export const MACHINES: readonly GpuMachine[] = MACHINE_ROWS.map(
  ([name, title, gpu, network, source, gpus = 8]) => ({
    name,
    title,
    gpu: gpuNamed(gpu),
    gpus,
    network,
    source,
  }),
);

/**
 * Instances of clouds by their GPUs, and spoken names of machines and services. Amazon EC2: G4, G5, G6, G6e, P3, P4, P5,
 * Trn and Inf product pages (2025). Google Cloud: GPU machine types (2025). Azure: sizes of the NC and ND families
 * (huggingface.co/docs/microsoft-azure, 2025). Colab: its free GPU is a T4, its A100 has 40 GB; Kaggle gives two T4.
 */
const INSTANCES: readonly (readonly [RegExp, string])[] = [
  [/^g4dn\.(?:x|2x|4x|8x|16x)large$/, 't4'],
  [/^g4dn\.12xlarge$/, '4 x t4'],
  [/^g5\.(?:x|2x|4x|8x|16x)large$/, 'a10g'],
  [/^g5\.(?:12|24)xlarge$/, '4 x a10g'],
  [/^g6\.(?:x|2x|4x|8x|16x)large$/, 'l4'],
  [/^g6\.(?:12|24)xlarge$/, '4 x l4'],
  [/^g6e\.(?:x|2x|4x|8x|16x)large$/, 'l40s'],
  [/^g6e\.(?:12|24)xlarge$/, '4 x l40s'],
  [/^p3\.2xlarge$/, 'v100-16gb'],
  [/^p3\.8xlarge$/, '4 x v100-16gb'],
  [/^p3\.16xlarge$/, '8 x v100-16gb'],
  [/^p5\.4xlarge$/, 'h100-80gb'],
  [/^trn1\.2xlarge$/, 'trainium1'],
  [/^inf2\.(?:x|8x)large$/, 'inferentia2'],
  [/^inf2\.24xlarge$/, '6 x inferentia2'],
  [/^a2-highgpu-1g$/, 'a100-40gb'],
  [/^a2-highgpu-8g$/, '8 x a100-40gb'],
  [/^a2-ultragpu-1g$/, 'a100-80gb'],
  [/^a2-ultragpu-8g$/, '8 x a100-80gb'],
  [/^a3-highgpu-([124])g$/, '$1 x h100-80gb'],
  [/^g2-standard-(?:4|8|12|16|32)$/, 'l4'],
  [/^(?:standard_)?nc(?:4|8|16)as_t4_v3$/, 't4'],
  [/^(?:standard_)?nc64as_t4_v3$/, '4 x t4'],
  [/^(?:standard_)?nc24ads_a100_v4$/, 'a100-pcie-80gb'],
  [/^(?:standard_)?nc48ads_a100_v4$/, '2 x a100-pcie-80gb'],
  [/^(?:standard_)?nc96ads_a100_v4$/, '4 x a100-pcie-80gb'],
  [/^(?:standard_)?nc40ads_h100_v5$/, 'h100-nvl-94gb'],
  [/^(?:standard_)?nc80adis_h100_v5$/, '2 x h100-nvl-94gb'],
  [/^(?:standard_)?nd96asr_v4$/, 'nd-a100'],
  [/^(?:standard_)?nd96amsr_a100_v4$/, 'ndm-a100'],
  [/^(?:standard_)?nd96isr_(h100|h200|mi300x)_v5$/, 'nd-$1'],
  [/^(?:google\s+)?colab(?:\s+(?:free|pro\+?|t4))?$/, 't4'],
  [/^(?:google\s+)?colab(?:\s+(?:free|pro\+?))?\s+a100$/, 'a100-40gb'],
  [/^kaggle$/, '2 x t4'],
  [/^trn([123])$/, 'trainium$1'],
  [/^inf2$/, 'inferentia2'],
  [/^(?:amd[\s-]+)?strix[\s-]*halo(?:[\s-]+128\s*gb)?$/, 'ryzen-ai-max-395-128gb'],
  [/^(?:amd[\s-]+)?strix[\s-]*halo[\s-]+(64|96)\s*gb$/, 'ryzen-ai-max-395-$1gb'],
  [/^framework\s+desktop$/, 'ryzen-ai-max-395-128gb'],
];

/** Spoken names of services and machines; the answer says which instance is meant. */
const SPOKEN = /^(?:google\s+)?colab|^kaggle|strix|^framework/;

/** The GPUs of an instance of a cloud, or of a spoken name. */
export function cloudInstance(
  text: string,
): { readonly name: string; readonly isSpoken: boolean } | undefined {
  const query = text.trim().toLowerCase();
  const found = INSTANCES.find(([name]) => name.test(query));
  if (found === undefined) return undefined;
  return { name: query.replace(found[0], found[1]), isSpoken: SPOKEN.test(query) };
}

/** User's hardware with the table; the user's entries replace those of the same name. */
export const withKnownHardware = (own: Hardware): Hardware => ({
  gpus: mergedTables(own.gpus, GPUS),
  machines: mergedTables(own.machines, MACHINES),
});

const mergedTables = <T extends { readonly name: string }>(
  own: readonly T[],
  table: readonly T[],
) => [...own, ...table.filter(({ name }) => !own.some((each) => each.name === name))];
