/**
 * A user's own GPUs and machines, which extend the table:
 *
 *     gpus:
 *       rtx-4090-48gb: { extends: rtx-4090, memory: 48GB }
 *     machines:
 *       workstation: { gpu: rtx-4090-48gb, gpus: 2 }
 */

import * as z from 'zod';
import {
  type Problem,
  type ProblemText,
  type PropertyPath,
  usageError,
} from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { asText } from '../../base/values.js';
import { checkDocument } from '../../config/check-document.js';
import type { ConfigDocument } from '../../config/document.js';
import { invalidConfig } from '../../config/document-problems.js';
import { lacksUnit, parseLimit, type ReadUnit } from '../../config/parse-number.js';
import { describeValue, formatPath, quote } from '../../config/quote.js';
import type { Gpu, GpuMachine, Hardware, Link } from './gpu.js';
import { ARCHITECTURES, GPU_KINDS, MOST_OF_LABEL, PEAK_DTYPES } from './gpu.js';
import { GPUS, nameSuggestion } from './gpus.js';
import { MACHINES } from './machines.js';

/** Valid names: they must work as a word on the command line. */
const NAME = /^[a-z0-9]+([-.][a-z0-9]+)*$/i;

/** Number with a unit, parsed exactly. */
const measure = (unit: Exclude<ReadUnit, 'count'>, example: string, description: string) =>
  z
    .union([z.string(), z.number()])
    .transform((written, context) => {
      const value = Number(parseLimit(String(written), unit) ?? 0);
      const isAmbiguous = lacksUnit(String(written), unit);
      if (value > 0 && !isAmbiguous) return value;
      const message = isAmbiguous
        ? `must have its unit, such as ${example}, but is ${describeValue(written)}`
        : `must be ${unit} above zero, such as ${example}, but is ${describeValue(written)}`;
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    })
    .describe(description);

const linkSchema = z.strictObject({
  name: z.string().min(1).max(80).describe('What it is called'),
  bandwidth: measure('bytes/s', '32GB/s', 'In one direction, for each GPU'),
  gpus: z.int().min(2).default(8).describe('How many GPUs it joins'),
});

const gpuSchema = z
  .strictObject({
    extends: z
      .string()
      .optional()
      .describe('The GPU from which all comes that is not written here'),
    title: z.string().min(1).max(120).optional().describe('What it is called'),
    kind: z
      .enum(GPU_KINDS)
      .optional()
      .describe('Whose libraries compute on it [default: that of what it extends, or other]'),
    architecture: z
      .enum(ARCHITECTURES)
      .optional()
      .describe(
        'Of what generation its chip is, as sm90 for Hopper [default: that of what it extends, or none]',
      ),
    memory: measure('bytes', '24GB', 'As it is sold').optional(),
    usable: measure(
      'bytes',
      '22.5GB',
      'What programs can have of it, where that is known: without it, what it is sold with',
    ).optional(),
    bandwidth: measure('bytes/s', '1.008TB/s', 'Of its memory').optional(),
    peak: z
      .partialRecord(
        z.enum(PEAK_DTYPES),
        measure('FLOP/s', '165TFLOP/s', 'Of dense products, without sparsity'),
      )
      .optional()
      .describe(
        'Operations per second by type; those of what it extends stay where none is written',
      ),
    links: z.array(linkSchema).max(16).optional().describe('What joins several of them'),
    source: z.string().min(1).max(300).optional().describe('Where the numbers are from'),
  })
  .superRefine((gpu, context) => {
    if (gpu.extends !== undefined) return;
    for (const key of ['memory', 'bandwidth'] as const) {
      if (gpu[key] !== undefined) continue;
      const message = `the key "${key}" is missing, which only a GPU with "extends" can omit`;
      context.addIssue({ code: 'custom', message, path: [key] });
    }
  });

const machineSchema = z.strictObject({
  title: z.string().min(1).max(120).optional().describe('What it is called'),
  gpu: z.string().describe('The name of its GPU'),
  gpus: z.int().min(1).max(1_000_000).describe('How many it has'),
  network: linkSchema
    .omit({ gpus: true })
    .optional()
    .describe('What joins it to others, for each GPU'),
  source: z.string().min(1).max(300).optional().describe('Where the numbers are from'),
});

const name = z.string().max(60).regex(NAME);

const hardwareSchema = z.strictObject({
  gpus: z.record(name, gpuSchema).default({}).describe('By their names'),
  machines: z.record(name, machineSchema).default({}).describe('By their names'),
});

type GpuEntry = z.output<typeof gpuSchema>;
type MachineEntry = z.output<typeof machineSchema>;

/** JSON Schema of such a file, for editors. */
export function hardwareJsonSchema(): Record<string, unknown> {
  const { $schema, ...schema } = z.toJSONSchema(hardwareSchema, { io: 'input' });
  return { $schema, $id: 'hardware.schema.json', ...schema, title: 'minimind hardware' };
}

/**
 * GPUs and machines of a document.
 * @throws UserError with the location of every mistake.
 */
export function hardwareOfDocument(document: ConfigDocument): Hardware {
  const { value, problems, errors } = checkDocument(document, { schema: hardwareSchema });
  if (value === undefined) throw invalidConfig(document.file, problems, errors);
  const resolver = new Resolver(document, value.gpus);
  resolver.refuseSharedNames(Object.keys(value.machines));
  const gpus = Object.keys(value.gpus)
    .map((each) => resolver.own(each))
    .filter((gpu) => gpu !== undefined && gpu !== 'open');
  const machines = Object.entries(value.machines).flatMap(
    ([each, entry]) => resolver.machine(each, entry) ?? [],
  );
  const { found } = resolver;
  if (found.length > 0) throw invalidConfig(document.file, found, found.length);
  return { gpus, machines };
}

/** Resolves the `extends` of a file's entries. */
class Resolver {
  readonly found: Problem[] = [];
  readonly #document: ConfigDocument;
  readonly #entries: Readonly<Record<string, GpuEntry>>;
  /** Undefined for an entry with a reported mistake. */
  readonly #known = new Map<string, Gpu | 'open' | undefined>();

  constructor(document: ConfigDocument, entries: Readonly<Record<string, GpuEntry>>) {
    this.#document = document;
    this.#entries = entries;
  }

  /** GPU of the file; 'open' while its `extends` is being resolved. */
  own(name: string): Gpu | 'open' | undefined {
    if (this.#known.has(name)) return this.#known.get(name);
    this.#known.set(name, 'open');
    const entry = Object.hasOwn(this.#entries, name) ? this.#entries[name] : undefined;
    const gpu = entry && this.#joined(name, entry);
    this.#known.set(name, gpu);
    return gpu;
  }

  machine(name: string, entry: MachineEntry): GpuMachine | undefined {
    const gpu = this.#named(entry.gpu, ['machines', name, 'gpu']);
    if (gpu === undefined) return undefined;
    const { gpus, title = name, network, source = this.#document.file } = entry;
    const link = network ? { ...network, gpus: Number.POSITIVE_INFINITY } : null;
    return { name, title, gpu, gpus, network: link, source };
  }

  /**
   * Refuses a name shared by a GPU and a machine, because one would silently hide the other on the command line. An
   * entry of the table can only be replaced by one of the same kind.
   */
  refuseSharedNames(machines: readonly string[]): void {
    const gpus = Object.keys(this.#entries);
    const refuse = (key: keyof Hardware, own: readonly string[], what: string, taken: string[]) => {
      for (const name of own.filter((each) => taken.includes(each))) {
        const finding = {
          message: `${quote(name)} is already the name of a ${what}`,
          suggestion: 'choose a name that no GPU or machine has',
        };
        this.#report([key, name], finding, 'key');
      }
    };
    refuse('machines', machines, 'GPU', [...gpus, ...entryNames(GPUS)]);
    refuse('gpus', gpus, 'machine', entryNames(MACHINES));
  }

  #joined(name: string, entry: GpuEntry): Gpu | undefined {
    const base =
      entry.extends === undefined
        ? NOTHING
        : this.#named(entry.extends, ['gpus', name, 'extends'], name);
    if (base === undefined) return undefined;
    const source = entry.source ?? this.#document.file;
    const usable = usableOf(entry, base, source);
    const memoryBytes = entry.memory ?? base.memoryBytes;
    this.#refuseMoreThanThereIs(name, entry, memoryBytes);
    const architecture = entry.architecture ?? base.architecture;
    const rest = base.source === '' ? '' : `; the rest: ${base.source}`;
    return {
      name,
      title: entry.title ?? ('title' in base ? `${asText(base.title)}, as ${name}` : name),
      kind: entry.kind ?? base.kind,
      ...(architecture && { architecture }),
      memoryBytes,
      ...(usable && { usable }),
      bandwidth: entry.bandwidth ?? base.bandwidth,
      peakFlops: { ...base.peakFlops, ...entry.peak },
      links: entry.links ? fastestFirst(entry.links) : base.links,
      source: `${source}${rest}`,
    };
  }

  #refuseMoreThanThereIs(name: string, { usable = 0 }: GpuEntry, memoryBytes: number): void {
    const most = Math.floor(memoryBytes * MOST_OF_LABEL);
    if (usable <= most) return;
    this.#report(['gpus', name, 'usable'], {
      message: `must be at most the memory with its label in GiB, ${most} bytes, but is ${usable}`,
      suggestion: 'write a larger memory, or a smaller usable',
    });
  }

  /** GPU by name at a path of the file. Within the entry of the same name, it means the table's GPU. */
  #named(name: string, path: PropertyPath, within?: string): Gpu | undefined {
    const isOwn = Object.hasOwn(this.#entries, name) && name !== within;
    if (!isOwn) return GPUS.find((each) => each.name === name) ?? this.#unknown(name, path, within);
    const gpu = this.own(name);
    if (gpu !== 'open') return gpu;
    return this.#report(path, {
      message: `${quote(name)} and this GPU extend each other`,
      suggestion: 'extend a GPU of the table',
    });
  }

  #unknown(name: string, path: PropertyPath, within?: string): undefined {
    const own = Object.keys(this.#entries).filter((each) => each !== within);
    this.#report(path, {
      message: `unknown GPU ${quote(name)}`,
      suggestion: nameSuggestion(name, [...own.map((each) => ({ name: each })), ...GPUS]),
    });
  }

  #report(path: PropertyPath, finding: ProblemText, of: 'value' | 'key' = 'value'): undefined {
    const place = this.#document.locate(path, of);
    this.found.push({ severity: 'error', ...place, path: formatPath(path), ...finding });
  }
}

/** Base of an entry without `extends`. */
const NOTHING: Omit<Gpu, 'name' | 'title'> = {
  kind: 'other',
  memoryBytes: 0,
  bandwidth: 0,
  peakFlops: {},
  links: [],
  source: '',
};

/** Usable memory; unknown if the entry changes the memory. */
function usableOf(
  { usable, memory }: GpuEntry,
  base: Pick<Gpu, 'usable'>,
  source: string,
): Gpu['usable'] {
  if (usable !== undefined) return { bytes: usable, source };
  return memory === undefined ? base.usable : undefined;
}

const entryNames = (among: readonly { readonly name: string }[]): string[] =>
  among.map(({ name }) => name);

const fastestFirst = (links: readonly Link[]): Link[] =>
  links.toSorted((a, b) => b.bandwidth - a.bandwidth);

/**
 * Only GPU of a file, the default if the user names none.
 * @throws UserError when there are several, or none.
 */
export function onlyGpu({ gpus }: Hardware, file: string): Gpu {
  const [only] = gpus;
  if (only !== undefined && gpus.length === 1) return only;
  if (only === undefined) {
    throw usageError(
      `${file} describes no GPU`,
      `name one with ${setting('gpu')}, or describe it under "gpus:"`,
    );
  }
  throw usageError(
    `${file} describes ${gpus.length} GPUs`,
    `name one with ${setting('hardware', file)} ${setting('gpu')} ${gpus.map(({ name }) => name).join(' or ')}`,
  );
}
