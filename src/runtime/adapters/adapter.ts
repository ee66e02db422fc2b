/** What is known of a graphics adapter. */
import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import os from 'node:os';
import { pathToFileURL } from 'node:url';
import type { Finding } from '../../errors.js';

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

// Who makes graphics cards.

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

// What the operating system tells of graphics cards.

export interface SystemCards {
  /** All that are there, the likely fastest first. */
  readonly cards: readonly Adapter[];
  /** Those of them that have what WebGPU needs: a driver, and leave to use it. */
  readonly forWebgpu: readonly Adapter[];
  /** What stands in the way of the others; where there is none, where was looked. */
  readonly findings: readonly Finding[];
}

// What can be asked of the machine about its graphics cards.

/** None of these throws: what cannot be had is empty. */
export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly memoryBytes: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Names in a folder, sorted. */
  list(folder: string): Promise<string[]>;
  /** The text of a file. */
  read(file: string): Promise<string>;
  /** Whether this process may read and write a file. */
  mayOpen(file: string): Promise<boolean>;
  /** What a program prints until it ends, however it does, or until patience does. */
  ask(program: string, words: readonly string[]): Promise<string>;
  /** URL of the module that a package is; null when it is not installed. */
  locate(packageName: string): string | null;
}

export const THIS_MACHINE: Machine = {
  platform: process.platform,
  memoryBytes: os.totalmem(),
  env: process.env,
  list: async (folder) => (await readdir(folder).catch(() => [])).sort(),
  read: (file) => readFile(file, 'utf8').catch(() => ''),
  mayOpen: (file) =>
    access(file, constants.R_OK | constants.W_OK).then(
      () => true,
      () => false,
    ),
  ask,
  locate(packageName) {
    try {
      return pathToFileURL(createRequire(import.meta.url).resolve(packageName)).href;
    } catch {
      return null;
    }
  },
};

/** Milliseconds. A driver that sleeps is awake in two or three seconds; some never answer. */
const PATIENCE = 10_000;
/** Characters that are listened to. */
const MAX_ANSWER = 2 ** 20;

/** @param patience In milliseconds. */
export function ask(
  program: string,
  words: readonly string[],
  patience = PATIENCE,
): Promise<string> {
  let answer = '';
  const answered = new Promise<void>((resolve) => {
    const child = spawn(program, words, {
      stdio: ['ignore', 'pipe', 'ignore'],
      windowsHide: true,
    });
    const end = () => {
      clearTimeout(timer);
      // One that a driver holds in the kernel cannot even be killed: it is left behind.
      child.kill('SIGKILL');
      child.unref();
      child.stdout?.destroy();
      resolve();
    };
    const timer = setTimeout(end, patience);
    child.on('error', end).on('close', end);
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      answer += text;
      if (answer.length > MAX_ANSWER) end();
    });
  });
  return answered.catch(() => {}).then(() => answer);
}
