/** Report of `minimind doctor`: one line for each way of running a model. */
import type { ProblemText } from '../errors.js';
import type { Adapter } from '../runtime/adapters/adapters.js';
import type { ENGINES, EngineInfo } from '../runtime/engine.js';
import type { SkippedEngine } from '../runtime/select/devices.js';
import type { SelfCheck } from '../runtime/select/self-check.js';
import type { SurveyEntry } from '../runtime/select/survey.js';
import { formatBinaryBytes, formatBytes } from '../text/units.js';
import { counted } from '../text/words.js';
import { headingBlock, leftColumn, right, wrapColumn } from './kit/cells.js';
import type { Block, Cell, Fact, Report, TableBlock, Verdict } from './kit/report.js';

interface DoctorResult {
  readonly node: string;
  readonly platform: string;
  readonly processors: number;
  readonly availableBytes: number;
  readonly engines: readonly SurveyEntry[];
  /** Null, like their findings, when adapters were not surveyed. */
  readonly adapters: readonly Adapter[] | null;
  readonly adapterFindings: readonly ProblemText[] | null;
}

export function doctorReport(result: DoctorResult): Report {
  const { node, platform, processors, availableBytes, engines, adapters } = result;
  return {
    verdict: verdictOf(engines),
    blocks: [
      {
        kind: 'facts',
        facts: [
          {
            name: 'machine',
            text: `${platform}, ${counted(processors, 'processor')}, ${formatBytes(availableBytes)} of free memory, Node.js ${node}`,
          },
          ...(adapters ? [graphicsFact(adapters)] : []),
        ],
      },
      enginesTable(engines),
    ],
    details: [
      ...problemBlocks(engines),
      ...(adapters ? graphics(adapters, result.adapterFindings ?? [], engines) : []),
    ],
    data: enginesTable(engines, true),
  };
}

function verdictOf(engines: readonly SurveyEntry[]): Verdict {
  const usable = engines.filter(({ problem }) => problem === null);
  const [fastest] = usable.toSorted((a, b) => (b.productFlops ?? 0) - (a.productFlops ?? 0));
  if (!fastest) return { text: 'No engine can run models here', tone: 'bad' };
  const name = `${ENGINE_TITLES[fastest.engine]} (${fastest.backend})`;
  return {
    text: `Models run here on ${name}, the fastest of ${counted(usable.length, 'usable engine')}`,
    tone: 'good',
  };
}

function graphicsFact(adapters: readonly Adapter[]): Fact {
  const names = adapters.map(({ name, isSoftware }) => (isSoftware ? `${name} (software)` : name));
  return {
    name: 'graphics',
    text: names.length === 0 ? 'no graphics card found' : names.join(', '),
  };
}

/** @param flat Whether to add what went wrong, for programs. */
const enginesTable = (engines: readonly SurveyEntry[], flat = false): TableBlock => ({
  kind: 'table',
  columns: [
    leftColumn('engine', 'engine'),
    leftColumn('backend', 'backend'),
    leftColumn('version', 'version'),
    leftColumn('result', 'verdict'),
    right('threads', 'threads'),
    right('error', 'difference'),
    right('512³ product', 'product_flops'),
    ...(flat ? [leftColumn('problem', 'problem')] : []),
  ],
  rows: engines.map((entry) => engineCells(entry).slice(0, flat ? undefined : -1)),
});

/** Unusable engines: what is wrong, and how to fix it. */
const problemBlocks = (engines: readonly SurveyEntry[]): Block[] => {
  const facts = engines.flatMap(({ engine, backend, problem, remedy }): Fact[] =>
    problem === null
      ? []
      : [
          {
            name: `${ENGINE_TITLES[engine]} (${backend})`,
            text: `${problem}${remedy === null ? '' : `; to fix it: ${remedy}`}`,
          },
        ],
  );
  return facts.length === 0 ? [] : [headingBlock('Unusable engines'), { kind: 'facts', facts }];
};

const NOTHING: Cell = { text: '–', value: '' };

const differenceCell = (check: SurveyEntry['selfCheck']): Cell =>
  check ? { text: check.difference.toExponential(1), value: check.difference } : NOTHING;

const flopsCell = (flops: number | null): Cell =>
  flops === null ? NOTHING : { text: `${(flops / 1e9).toPrecision(3)} GFLOP/s`, value: flops };

/** A software adapter is usable but not recommended. */
function verdictCell({ problem, version, info }: SurveyEntry): Cell {
  if (problem !== null) return { text: version === null ? 'missing' : 'unusable', tone: 'dim' };
  return info?.isSoftware
    ? { text: 'software', value: 'usable', tone: 'warning' }
    : { text: 'usable', tone: 'good' };
}

function engineCells(entry: SurveyEntry): Cell[] {
  const { engine, backend, version, problem, info, selfCheck, productFlops } = entry;
  return [
    { text: ENGINE_TITLES[engine], value: engine },
    { text: backend, tone: 'strong' },
    version === null ? NOTHING : { text: version },
    verdictCell(entry),
    info ? { text: String(info.threads), value: info.threads } : NOTHING,
    differenceCell(selfCheck),
    flopsCell(productFlops),
    { text: problem ?? '' },
  ];
}

function graphics(
  adapters: readonly Adapter[],
  findings: readonly ProblemText[],
  engines: readonly SurveyEntry[],
): Block[] {
  if (adapters.length === 0) return [headingBlock('Graphics cards'), ...findings.map(findingNote)];
  return [
    headingBlock('Graphics cards'),
    adaptersTable(adapters, engines),
    ...findings.map(findingNote),
  ];
}

/** On a narrow terminal, columns of the engine table are omitted. */
function adaptersTable(adapters: readonly Adapter[], engines: readonly SurveyEntry[]): TableBlock {
  const limits = [
    wrapColumn('adapter', 'adapter'),
    leftColumn('vendor', 'vendor'),
    leftColumn('kind', 'is_software'),
    right('memory', 'memory_bytes'),
    right('buffer', 'max_buffer_bytes'),
    right('binding', 'max_binding_bytes'),
    leftColumn('f16', 'float16'),
  ];
  const source = wrapColumn('source', 'source');
  return {
    kind: 'table',
    columns: [
      ...limits,
      right('error', 'difference'),
      right('512³ product', 'product_flops'),
      source,
    ],
    rows: adapters.map((adapter) => {
      const { selfCheck = null, productFlops = null } = runOn(adapter, engines) ?? {};
      const [cells, remarks] = adapterCells(adapter);
      return [...cells, differenceCell(selfCheck), flopsCell(productFlops), remarks];
    }),
    narrower: {
      kind: 'table',
      columns: [...limits, source],
      rows: adapters.map((adapter) => adapterCells(adapter).flat()),
    },
  };
}

/** The fastest engine that ran on an adapter. */
const runOn = ({ name }: Adapter, engines: readonly SurveyEntry[]): SurveyEntry | undefined =>
  engines
    .filter(({ info }) => info?.device === name)
    .toSorted((a, b) => (b.productFlops ?? 0) - (a.productFlops ?? 0))[0];

/** Memory limits and their source. */
function adapterCells(adapter: Adapter): [Cell[], Cell] {
  const { name, vendor, isSoftware, memoryBytes, hasFloat16, source } = adapter;
  return [
    [
      { text: name, tone: 'strong' },
      vendor === null ? NOTHING : { text: vendor },
      isSoftware
        ? { text: 'software', value: true, tone: 'warning' }
        : { text: 'card', value: false, tone: 'good' },
      limitCell(memoryBytes),
      limitCell(adapter.maxBufferBytes),
      limitCell(adapter.maxBindingBytes),
      hasFloat16 === null ? NOTHING : { text: hasFloat16 ? 'yes' : 'no', value: hasFloat16 },
    ],
    { text: source },
  ];
}

/** Limits in units of 2^10, as usual for graphics adapters and their memory. */
const limitCell = (bytes: number | null): Cell =>
  bytes === null ? NOTHING : { text: formatBinaryBytes(bytes), value: bytes };

const findingNote = ({ message, suggestion }: ProblemText): Block => ({
  kind: 'note',
  text: `→ ${suggestion === undefined ? message : `${message}: ${suggestion}`}`,
});

// Texts about engines.

/** Copy of the titles in `src/runtime/engine.ts`: a report imports only its types. */
export const ENGINE_TITLES: typeof ENGINES = {
  onnx: 'ONNX Runtime',
  tfjs: 'TensorFlow.js',
};

/** `ONNX Runtime 1.30.0 (cpu), 2 threads; self-check within 2.1e-8`. */
export function engineText(info: EngineInfo, selfCheck?: SelfCheck): string {
  const { name, version, provider, device, threads, compute } = info;
  const where = provider === device ? provider : `${provider} on ${device}`;
  const many = counted(threads, 'thread');
  const products = compute === 'f16' ? ', products in float16' : '';
  const checked = selfCheck ? `, self-check error ${selfCheck.difference.toExponential(1)}` : '';
  return `${ENGINE_TITLES[name]} ${version} (${where}), ${many}${products}${checked}`;
}

/** Skipped engine with its reason and suggested fix. */
export const skippedEngineText = ({ engine, backend, why, suggestion }: SkippedEngine): string =>
  `${ENGINE_TITLES[engine]} (${backend}): ${why}${suggestion ? `; to fix it: ${suggestion}` : ''}`;
