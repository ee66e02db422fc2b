/** What `minimind doctor` prints: a line for each way of running a model. */
import type { SurveyEntry } from '../runtime/survey.js';
import { heading, left, note, right } from './cells.js';
import { ENGINE_TITLES } from './engines.js';
import type { Block, Cell, Report } from './report.js';
import { formatBytes } from './units.js';

interface DoctorResult {
  readonly node: string;
  readonly platform: string;
  readonly processors: number;
  readonly availableBytes: number;
  readonly engines: readonly SurveyEntry[];
}

export function doctorReport(result: DoctorResult): Report {
  const { node, platform, processors, availableBytes, engines } = result;
  return {
    blocks: [
      verdict(engines),
      note(
        `Node.js ${node} on ${platform}, ${processors} processor${processors === 1 ? '' : 's'}, ` +
          `${formatBytes(availableBytes)} of memory to be had.`,
      ),
      {
        kind: 'table',
        columns: [
          left('engine', 'engine'),
          left('backend', 'backend'),
          left('version', 'version'),
          left('verdict', 'verdict'),
          right('threads', 'threads'),
          right('off by', 'difference'),
          right('512³ product', 'product_flops'),
          left('what is wrong', 'problem', true),
        ],
        rows: engines.map(engineCells),
      },
      ...remedies(engines),
    ],
  };
}

function verdict(engines: readonly SurveyEntry[]): Block {
  const usable = engines.filter(({ problem }) => problem === null);
  const [fastest] = usable.toSorted((a, b) => (b.productFlops ?? 0) - (a.productFlops ?? 0));
  if (!fastest) return { kind: 'heading', text: 'No engine can run models here', tone: 'bad' };
  const name = `${ENGINE_TITLES[fastest.engine]} (${fastest.backend})`;
  return heading(
    `${usable.length} of ${engines.length} can run models; ${name} multiplies fastest`,
  );
}

const NOTHING: Cell = { text: '–', value: '' };

function engineCells(entry: SurveyEntry): Cell[] {
  const { engine, backend, version, problem, info, selfCheck, productFlops } = entry;
  return [
    { text: ENGINE_TITLES[engine], value: engine },
    { text: backend, tone: 'strong' },
    version === null ? NOTHING : { text: version },
    problem === null
      ? { text: 'usable', tone: 'good' }
      : { text: version === null ? 'missing' : 'unusable', tone: 'dim' },
    info ? { text: String(info.threads), value: info.threads } : NOTHING,
    selfCheck
      ? { text: selfCheck.difference.toExponential(1), value: selfCheck.difference }
      : NOTHING,
    productFlops === null
      ? NOTHING
      : { text: `${(productFlops / 1e9).toPrecision(3)} GFLOP/s`, value: productFlops },
    { text: problem ?? '' },
  ];
}

/** What would help, each once. */
function remedies(engines: readonly SurveyEntry[]): Block[] {
  const all = engines.flatMap(({ remedy }) => remedy ?? []);
  return [...new Set(all)].map((remedy) => {
    const names = engines
      .filter((entry) => entry.remedy === remedy)
      .map(({ engine, backend }) => `${ENGINE_TITLES[engine]} (${backend})`);
    return { kind: 'note', text: `→ for ${names.join(', ')}: ${remedy}` };
  });
}
