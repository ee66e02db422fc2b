/** Graphics adapters: names, vendors and memory. */

import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import os from 'node:os';
import { pathToFileURL } from 'node:url';
import type { ProblemText } from '../../base/errors.js';
import { endsWithProgram } from '../../base/files/early-end.js';
import type { Platform } from '../../base/platform.js';

/** A device that graphics libraries compute on. */
export interface GraphicsAdapter {
  /** Name of the adapter. */
  readonly name: string;
  /** Vendor as people write it: `NVIDIA`. Null when unknown. */
  readonly vendor: string | null;
  /** Whether it computes on the processor: no graphics card. */
  readonly isSoftware: boolean;
  /** Its own memory, else the memory of the machine; null when unknown. @count */
  readonly memoryBytes: number | null;
  /** Largest buffer; null, like the next two, when unknown. @integer @minimum 1 */
  readonly maxBufferBytes: number | null;
  /** Largest part of a buffer that one operation can bind. @integer @minimum 1 */
  readonly maxBindingBytes: number | null;
  /** Whether its programs may compute in float16. */
  readonly hasFloat16: boolean | null;
  /** Source of the data: `webgpu`, `nvidia-smi`, `sysfs`, … */
  readonly source: string;
}

type AdapterIdentity = Pick<GraphicsAdapter, 'name' | 'vendor' | 'source'>;

/** A graphics card with a few known properties. */
export const card = ({
  name,
  vendor,
  source,
  ...more
}: AdapterIdentity & Partial<GraphicsAdapter>): GraphicsAdapter => ({
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

/** Maximum length of a name; longer text is not one. */
const MAX_CHARACTERS = 100;

/** A driver's name in one line, without terminal control characters; null when nothing is left. */
export function cleanName(text: unknown): string | null {
  if (typeof text !== 'string') return null;
  const line = text.replace(/[\p{C}\s]+/gu, ' ').trim();
  return [...line].slice(0, MAX_CHARACTERS).join('') || null;
}

// Vendors of graphics cards.

/**
 * PCI vendor ids, from https://pci-ids.ucw.cz. Excludes display-only adapters: those of servers (ASPEED, Matrox) and
 * virtual machines (Red Hat's virtio, VMware, Bochs, VirtualBox, Hyper-V).
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

/** Lowercase words for vendors, as used by people, drivers and WebGPU; some are software adapters. */
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

/** The first vendor of which a text contains a word: `sppci_vendor_amd`, `Intel`. */
export function vendorIn(text: string): string | null {
  const word = text
    .toLowerCase()
    .split(/[^a-z]+/)
    .find((each) => Object.hasOwn(WORDS, each));
  return word === undefined ? null : WORDS[word as keyof typeof WORDS];
}

/** Vendors of cards with their own memory first: libraries prefer them when asked for speed. */
const FASTEST_FIRST: readonly (string | null)[] = ['NVIDIA', 'AMD', 'Apple', 'Intel'];

function rank(vendor: string | null): number {
  const at = FASTEST_FIRST.indexOf(vendor);
  return at === -1 ? FASTEST_FIRST.length : at;
}

type Rated = Pick<GraphicsAdapter, 'vendor' | 'memoryBytes'>;

/** Order by the likely preference of a library asked for speed: a guess, right for most machines. */
export const byLikelySpeed = (a: Rated, b: Rated): number =>
  rank(a.vendor) - rank(b.vendor) || (b.memoryBytes ?? 0) - (a.memoryBytes ?? 0);

/** Graphics cards as the operating system reports them. */
export interface SystemCards {
  /** All cards, the likely fastest first. */
  readonly cards: readonly GraphicsAdapter[];
  /** Cards that WebGPU can use: they have a driver and the user has permission. */
  readonly forWebgpu: readonly GraphicsAdapter[];
  /** Obstacles of the other cards; without cards, the places that were searched. */
  readonly findings: readonly ProblemText[];
}

/** System calls that find graphics cards. None of them throws: missing data is empty. */
export interface SystemCalls {
  readonly platform: Platform;
  readonly memoryBytes: number;
  /** Model of the processor, as the system names it; empty where it does not. */
  readonly processor: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Names in a folder, sorted. */
  list(folder: string): Promise<string[]>;
  /** The text of a file. */
  read(file: string): Promise<string>;
  /** Whether this process may read and write a file. */
  mayOpen(file: string): Promise<boolean>;
  /** Output of a program until it ends or the timeout passes. */
  ask(program: string, words: readonly string[]): Promise<string>;
  /** URL of a package's module; null when it is not installed. */
  locate(packageName: string): string | null;
}

export const THIS_MACHINE: SystemCalls = {
  platform: process.platform,
  memoryBytes: os.totalmem(),
  processor: os.cpus()[0]?.model.trim() ?? '',
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

/** A sleeping driver wakes in two or three seconds; some never answer. */
const TIMEOUT_MS = 10_000;
/** Maximum characters of output to read. */
const MAX_ANSWER = 2 ** 20;

/** Output of a program until it ends or the timeout passes; empty when it does not start. */
export function ask(
  program: string,
  words: readonly string[],
  timeoutMs = TIMEOUT_MS,
): Promise<string> {
  let answer = '';
  const answered = new Promise<void>((resolve) => {
    const child = spawn(program, words, {
      stdio: ['ignore', 'pipe', 'ignore'],
      windowsHide: true,
    });
    const ended = endsWithProgram(child);
    const end = () => {
      ended();
      clearTimeout(timer);
      // A process that a driver blocks in the kernel cannot be killed, so do not wait for it.
      child.kill('SIGKILL');
      child.unref();
      child.stdout?.destroy();
      resolve();
    };
    const timer = setTimeout(end, timeoutMs);
    child.on('error', end).on('close', end);
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      answer += text;
      if (answer.length > MAX_ANSWER) end();
    });
  });
  return answered.catch(() => {}).then(() => answer);
}
