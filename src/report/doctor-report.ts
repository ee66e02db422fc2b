/** Report of `minimind doctor`: one line for each way of running a model. */
import type { ProblemText } from '../base/errors.js';
import { formatBinaryBytes, formatBytes } from '../base/text/units.js';
import { counted } from '../base/text/words.js';
import type { GraphicsAdapter } from '../engine/adapters/adapters.js';
import type { ENGINES, EngineInfo } from '../engine/engine.js';
import type { SkippedEngine } from '../engine/select/devices.js';
import type { SelfCheck } from '../engine/select/self-check.js';
import type { DoctorResult, SurveyEntry } from '../engine/select/survey.js';
import type { Block, Cell, Fact, Report, TableBlock, Verdict } from './kit/report.js';
import {
  headingBlock,
  leftColumn,
  NOTHING,
  paragraph,
  right,
  strongCell,
  tableOf,
  valueCell,
  wrapColumn,
} from './kit/report.js';

export function doctorReport(result: DoctorResult): Report {
  const { node, platform, processors, availableBytes, engines, adapters } = result;
  return {
    verdict: doctorVerdict(engines),
    blocks: [
      {
        kind: 'facts',
        facts: [
          {
            name: 'machine',
            text: `${platform}, ${counted(processors, 'processor')}, ${formatBytes(availableBytes)} of free memory, Node.js ${node}`,
          },
          ...(adapters ? [graphicsFact(adapters)] : []),
          ...fasterFacts(
            engines.flatMap(({ problem, remedy, ...each }) =>
              problem === null || each.version !== null
                ? []
                : [{ ...each, why: problem, ...(remedy !== null && { suggestion: remedy }) }],
            ),
          ),
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

function doctorVerdict(engines: readonly SurveyEntry[]): Verdict {
  const usable = engines.filter(({ problem }) => problem === null);
  const [fastest] = usable.toSorted((a, b) => (b.productFlops ?? 0) - (a.productFlops ?? 0));
  if (!fastest) return { text: 'No engine can run models here', tone: 'bad' };
  const name = `${ENGINE_TITLES[fastest.engine]} (${fastest.backend})`;
  return {
    text: `Models run here on ${name}, the fastest of ${counted(usable.length, 'usable engine')}`,
    tone: 'good',
  };
}

function graphicsFact(adapters: readonly GraphicsAdapter[]): Fact {
  const names = adapters.map(({ name, isSoftware }) => (isSoftware ? `${name} (software)` : name));
  return {
    name: 'graphics',
    text: names.length === 0 ? 'no graphics card found' : names.join(', '),
  };
}

/** @param flat Whether to add what went wrong, for programs. */
const enginesTable = (engines: readonly SurveyEntry[], flat = false): TableBlock =>
  tableOf(engines, [
    leftColumn('engine', 'engine', ({ engine }) => ({
      text: ENGINE_TITLES[engine],
      value: engine,
    })),
    leftColumn('backend', 'backend', ({ backend }) => strongCell(backend)),
    leftColumn('version', 'version', ({ version }) => version ?? NOTHING),
    leftColumn('result', 'verdict', usabilityCell),
    right('threads', 'threads', ({ info }) => valueCell(info?.threads ?? null)),
    right('error', 'difference', ({ selfCheck }) => differenceCell(selfCheck)),
    right('512³ product', 'product_flops', ({ productFlops }) => flopsCell(productFlops)),
    flat && leftColumn('problem', 'problem', ({ problem }) => problem ?? ''),
  ]);

/** Problems of unusable engines, with a fix. */
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

const differenceCell = (check: SurveyEntry['selfCheck']): Cell =>
  check ? { text: check.difference.toExponential(1), value: check.difference } : NOTHING;

const flopsCell = (flops: number | null): Cell =>
  flops === null ? NOTHING : { text: `${(flops / 1e9).toPrecision(3)} GFLOP/s`, value: flops };

/** Cell of a verdict. A software adapter is usable but not recommended. */
function usabilityCell({ problem, version, info }: SurveyEntry): Cell {
  if (problem !== null) return { text: version === null ? 'missing' : 'unusable', tone: 'dim' };
  return info?.isSoftware
    ? { text: 'software', value: 'usable', tone: 'warning' }
    : { text: 'usable', tone: 'good' };
}

function graphics(
  adapters: readonly GraphicsAdapter[],
  findings: readonly ProblemText[],
  engines: readonly SurveyEntry[],
): Block[] {
  return [
    headingBlock('Graphics cards'),
    ...(adapters.length > 0 ? [adaptersTable(adapters, engines)] : []),
    ...findings.map(findingNote),
  ];
}

/** Table of adapters. On a narrow terminal, columns of the engine table are omitted. */
function adaptersTable(
  adapters: readonly GraphicsAdapter[],
  engines: readonly SurveyEntry[],
): TableBlock {
  const table = (isWide: boolean) =>
    tableOf(adapters, [
      wrapColumn('adapter', 'adapter', ({ name }) => strongCell(name)),
      leftColumn('vendor', 'vendor', ({ vendor }) => vendor ?? NOTHING),
      leftColumn('kind', 'is_software', ({ isSoftware }) =>
        isSoftware
          ? { text: 'software', value: true, tone: 'warning' }
          : { text: 'card', value: false, tone: 'good' },
      ),
      right('memory', 'memory_bytes', ({ memoryBytes }) => limitCell(memoryBytes)),
      right('buffer', 'max_buffer_bytes', ({ maxBufferBytes }) => limitCell(maxBufferBytes)),
      right('binding', 'max_binding_bytes', ({ maxBindingBytes }) => limitCell(maxBindingBytes)),
      leftColumn('f16', 'float16', ({ hasFloat16 }) =>
        hasFloat16 === null ? NOTHING : { text: hasFloat16 ? 'yes' : 'no', value: hasFloat16 },
      ),
      isWide &&
        right('error', 'difference', (adapter) =>
          differenceCell(runOn(adapter, engines)?.selfCheck ?? null),
        ),
      isWide &&
        right('512³ product', 'product_flops', (adapter) =>
          flopsCell(runOn(adapter, engines)?.productFlops ?? null),
        ),
      wrapColumn('source', 'source', ({ source }) => source),
    ]);
  return { ...table(true), narrower: table(false) };
}

/** The fastest engine that ran on an adapter. */
const runOn = (
  { name }: GraphicsAdapter,
  engines: readonly SurveyEntry[],
): SurveyEntry | undefined =>
  engines
    .filter(({ info }) => info?.device === name)
    .toSorted((a, b) => (b.productFlops ?? 0) - (a.productFlops ?? 0))[0];

/** Limits in units of 2^10, as usual for graphics adapters and their memory. */
const limitCell = (bytes: number | null): Cell => valueCell(bytes, formatBinaryBytes);

const findingNote = ({ message, suggestion }: ProblemText): Block =>
  paragraph(`→ ${suggestion === undefined ? message : `${message}: ${suggestion}`}`);

// Texts about engines.

/** Copy of the titles in `src/engine/engine.ts`: a report imports only its types. */
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

/** The fast engine on the processor, where it is among the skipped engines, with the command that installs it. */
export const fasterFacts = (skipped: readonly SkippedEngine[]): Fact[] =>
  skipped
    .filter(isFastEngine)
    .map((each) => ({ name: 'faster', text: skippedEngineText(each), tone: 'warning' }));

export const isFastEngine = ({ engine, device }: SkippedEngine): boolean =>
  engine === 'onnx' && device === 'cpu';

/** Skipped engine with its reason and suggested fix. */
export const skippedEngineText = ({ engine, backend, why, suggestion }: SkippedEngine): string =>
  `${ENGINE_TITLES[engine]} (${backend}): ${why}${suggestion ? `; to fix it: ${suggestion}` : ''}`;
