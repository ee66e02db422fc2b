import type { Problem } from '../base/errors.js';
import { commandText, nextCommand, setting } from '../base/text/setting.js';
import { formatBytes, formatInteger, shortCount } from '../base/text/units.js';
import { counted, joined } from '../base/text/words.js';
import { present, sumOf } from '../base/values.js';
import type { ExportResult } from '../engine/export-files.js';
import type { OnnxValue } from '../engine/onnx-export.js';
import type { Architecture } from '../model/architecture/family.js';
import type { FamilySummary } from '../model/budget/family-counts.js';
import type { ValidFile } from './command-results.js';
import type { Field, Report, TableBlock } from './kit/report.js';
import {
  headingBlock,
  integerCell,
  leftColumn,
  listBlocks,
  moreNote,
  noteOf,
  right,
  strongCell,
  tableOf,
  valueCell,
  wrapColumn,
} from './kit/report.js';

interface Families {
  readonly families: readonly FamilySummary[];
  /** Requested family or pattern; undefined for all. */
  readonly pattern?: string | undefined;
}

/** Report of `minimind list`: the families, and the presets that the user asked for. */
export function familiesReport({ families, pattern }: Families): Report {
  const filled = families.filter(hasPresets);
  const presets = filled.flatMap((family) => family.presets.map((preset) => ({ family, preset })));
  const readers = families.filter(({ huggingFace }) => huggingFace).map(({ name }) => name);
  const example = presets.find(({ preset }) => preset.name === EXAMPLE) ?? presets[0];
  const published = presets.filter(({ preset }) => preset.series !== undefined).length;
  const own = presets.length - published;
  const verdict = present([
    presets.length > 0 &&
      joined(
        present([
          own > 0 && counted(own, 'preset'),
          published > 0 && counted(published, 'published model'),
        ]),
      ),
    readers.length > 0 && `config.json of ${counted(readers.length, 'model type')}`,
  ]).join('; ');
  const all = presetTable(presets);
  return {
    verdict: { text: verdict },
    blocks:
      pattern === undefined
        ? [
            familyTable(families.map(withoutPublished).filter(hasPresets)),
            ...publishedNote(presets),
            ...readersByArchitecture(families),
            noteOf(
              `Presets of a family: ${commandText('list', ['hybrid'])}. Write one: ${commandText('init', ['NAME'])}.`,
            ),
          ]
        : [
            ...(presets.length > 0 ? [all] : []),
            ...families
              .filter((family) => !hasPresets(family))
              .map(({ name, title }) =>
                noteOf(`${name}: ${title}. No presets; reads config.json.`),
              ),
          ],
    details:
      pattern === undefined
        ? [
            headingBlock('Presets'),
            all,
            headingBlock('Families'),
            tableOf(families, [
              leftColumn('model.family', 'family', ({ name }) => strongCell(name)),
              leftColumn('architecture', 'architecture', ({ architecture }) => architecture),
              leftColumn('config.json', 'hugging_face', ({ huggingFace }) => ({
                text: huggingFace ? 'read' : '–',
                value: huggingFace,
              })),
              wrapColumn('models', 'title', ({ title }) => title),
            ]),
          ]
        : [],
    next: example && nextCommand('profile', [presetName(example)]),
    data: all,
  };
}

/** Copy of the order in `src/model/budget/family-counts.ts`, of which a report uses types only. */
const ARCHITECTURES = Object.keys({
  dense: true,
  mixture: true,
  hybrid: true,
  recurrent: true,
} satisfies Record<Architecture, true>) as Architecture[];

/** Maximum model types per architecture in the answer. */
const MOST_READERS = 3;

/** The model types of each architecture, in the order of the families. */
const readersByArchitecture = (families: readonly FamilySummary[]) =>
  ARCHITECTURES.flatMap((each) => {
    const names = families
      .filter(({ architecture, huggingFace }) => huggingFace && architecture === each)
      .map(({ name }) => name);
    return names.length === 0
      ? []
      : [noteOf(`config.json, ${each}: ${someOf(names, MOST_READERS)}`)];
  });

/** The preset of examples, which is small and known by its name. */
const EXAMPLE = 'minimind2-small';

interface Listed {
  readonly family: FamilySummary;
  readonly preset: FamilySummary['presets'][number];
}

const presetName = ({ family, preset }: Listed) => `${family.name}/${preset.name}`;

function familyTable(families: readonly FamilySummary[]): TableBlock {
  const exampleOf = ({ presets }: FamilySummary) =>
    presets.find(({ name }) => name === EXAMPLE) ?? presets[0];
  return tableOf(families, [
    leftColumn('family', 'family', ({ name }) => strongCell(name)),
    right('presets', 'presets', ({ presets }) => integerCell(presets.length)),
    leftColumn('example', 'example', (family) => {
      const preset = exampleOf(family);
      return preset ? presetName({ family, preset }) : '';
    }),
    right('parameters', 'parameters', (family) => {
      const { parameters } = exampleOf(family) ?? {};
      return { text: parameters ? shortCount(parameters) : '', value: parameters };
    }),
    wrapColumn('models', 'title', ({ title }) => title),
  ]);
}

/** A family with the presets that are not published models. */
const withoutPublished = (family: FamilySummary): FamilySummary => ({
  ...family,
  presets: family.presets.filter(({ series }) => series === undefined),
});

/** Number of a generation in the name of a series, and what follows: ` 3.1` of `Llama 3.1`, but not `H1` of `Falcon-H1`. */
const GENERATION = /(?:[- ]|(?<=[a-z]{3}))\d.*$/i;

/** Maximum names of published models in the answer. */
const MOST_PUBLISHED = 14;

/** Note on published models, those with most sizes first. */
function publishedNote(presets: readonly Listed[]) {
  const series = present(presets.map(({ preset }) => preset.series?.replace(GENERATION, '')));
  const sizes = new Map<string, number>();
  for (const name of series) sizes.set(name, (sizes.get(name) ?? 0) + 1);
  const names = [...sizes].sort(([, one], [, other]) => other - one).map(([name]) => name);
  return names.length > 0
    ? [noteOf(`Published models, such as qwen3:8b: ${someOf(names, MOST_PUBLISHED)}`)]
    : [];
}

/** The first of several names, and the number of the others. */
function someOf(names: readonly string[], most: number): string {
  const more = names.length - most;
  return `${names.slice(0, most).join(', ')}${more > 0 ? `, and ${more} more: ${setting('details')}` : '.'}`;
}

const presetTable = (presets: readonly Listed[]): TableBlock =>
  tableOf(presets, [
    leftColumn('preset', 'preset', ({ family, preset }) =>
      strongCell(presetName({ family, preset })),
    ),
    right('parameters', 'parameters', ({ preset }) => valueCell(preset.parameters, shortCount)),
    wrapColumn('description', 'title', ({ preset }) => preset.title),
  ]);

const hasPresets = ({ presets }: FamilySummary) => presets.length > 0;

/** The written file and next steps. */
export function initReport(written: {
  readonly preset: string;
  readonly file: string;
  readonly schemaFile: string | null;
  /** Model of the config, for people. */
  readonly title: string;
  /** Whether a later command can read the file, unlike standard output and devices. */
  readonly isKept: boolean;
}): Report {
  const { preset, file, schemaFile, title, isKept } = written;
  return {
    verdict: {
      text: `Wrote ${file === '-' ? 'to standard output' : file}: ${title}`,
      tone: 'good',
    },
    blocks: isKept
      ? [
          noteOf(
            schemaFile === null
              ? 'The JSON Schema that it names for editors was kept as it is.'
              : `${schemaFile}: the JSON Schema that the config names, for editors.`,
          ),
        ]
      : [],
    ...(isKept && { next: nextCommand('profile', [file]) }),
    data: {
      kind: 'table',
      columns: [leftColumn('file', 'file'), leftColumn('preset', 'preset')],
      rows: [[{ text: file }, { text: preset }]],
    },
  };
}

/** Maximum files of an answer with all rows; a longer answer has the first ten. */
const MOST_ROWS = 16;
const FIRST_ROWS = 10;

/** A config that is not valid. */
interface InvalidFile {
  readonly file: string;
  readonly problems: readonly Problem[];
}

/**
 * @param failures The files that are not valid.
 * @param modelWords Flags of the models, for the next command.
 * @param hasProblems Whether the report has the problems; in a terminal they are on stderr.
 */
export function validationReport(
  { files }: { readonly files: readonly ValidFile[] },
  {
    failures,
    modelWords,
    hasProblems,
  }: {
    readonly failures: readonly InvalidFile[];
    readonly modelWords: readonly string[];
    readonly hasProblems: boolean;
  },
): Report {
  const valid = files.length;
  const all = [...failures, ...files];
  const warnings = sumOf(files, (file) => file.warnings.length);
  const isCut = all.length > MOST_ROWS;
  const first = isCut ? filesTable(all.slice(0, FIRST_ROWS)) : filesTable(all);
  const problems = all.flatMap(problemsOf);
  return {
    verdict: {
      text:
        (failures.length === 0
          ? `valid: ${counted(valid, 'file')}`
          : `${valid} of ${counted(all.length, 'file')} ${valid === 1 ? 'is' : 'are'} valid`) +
        (warnings === 0 ? '' : `, ${counted(warnings, 'warning')}`),
      tone: failures.length === 0 ? 'good' : 'bad',
    },
    blocks: [
      first,
      ...(isCut ? moreNote(all.length - FIRST_ROWS, 'details') : []),
      ...(hasProblems ? listBlocks('Problems', problems, PROBLEM_FIELDS) : []),
    ],
    details: isCut ? [headingBlock('All files'), filesTable(all)] : [],
    next: files[0] && nextOf(files[0], modelWords),
    data: filesTable(all, [
      right('errors', 'errors', (each) => integerCell(errorsOf(each))),
      wrapColumn('problems', 'problems', (each) => problemsOf(each).map(problemLine).join('\n')),
    ]),
  };
}

const problemsOf = (each: ValidFile | InvalidFile): readonly Problem[] =>
  'valid' in each ? each.warnings : each.problems;

const errorsOf = (each: ValidFile | InvalidFile): number =>
  problemsOf(each).filter(({ severity }) => severity === 'error').length;

const PROBLEM_FIELDS: readonly Field<Problem>[] = [
  wrapColumn('file', 'file', ({ file }) => file),
  right('line', 'line', ({ line }) => integerCell(line ?? null)),
  leftColumn('', 'severity', ({ severity }) => ({
    text: severity,
    tone: severity === 'error' ? 'bad' : 'warning',
  })),
  wrapColumn('setting', 'path', ({ path }) => path ?? ''),
  wrapColumn('problem', 'message', ({ message }) => message),
  wrapColumn('fix', 'suggestion', ({ suggestion }) => suggestion ?? ''),
];

/** A problem in one line, for a cell: `error: x.yaml:3:5: model.x: unknown key "x" → did you mean "y"?` */
const problemLine = ({ severity, file, line, column, path, message, suggestion }: Problem) =>
  `${severity}: ${present([[file, line, column].filter((part) => part !== undefined).join(':'), path, message]).join(': ')}${suggestion === undefined ? '' : ` → ${suggestion}`}`;

/** A config of a training is planned, one of a model profiled. */
const nextOf = ({ file, program, family }: ValidFile, modelWords: readonly string[]) => {
  if (program === undefined) return nextCommand('profile', [file, ...modelWords]);
  return family === null ? undefined : nextCommand('trainPlan', [file]);
};

const filesTable = (
  files: readonly (ValidFile | InvalidFile)[],
  more: readonly Field<ValidFile | InvalidFile>[] = [],
): TableBlock =>
  tableOf(files, [
    wrapColumn('file', 'file', ({ file }) => file),
    leftColumn('result', 'verdict', (each) =>
      'valid' in each
        ? { text: 'valid', tone: 'good' }
        : {
            text: `not valid: ${counted(errorsOf(each), 'error')}`,
            value: 'not valid',
            tone: 'bad',
          },
    ),
    ...(files.some((each) => 'program' in each)
      ? [
          leftColumn<ValidFile | InvalidFile>('training with', 'program', (each) =>
            'valid' in each ? (each.program ?? '–') : '–',
          ),
        ]
      : []),
    leftColumn('family', 'family', (each) => ('valid' in each ? (each.family ?? '–') : '–')),
    right('parameters', 'parameters', (each) =>
      'valid' in each && each.parameters !== null ? integerCell(each.parameters) : { text: '–' },
    ),
    right('warnings', 'warnings', (each) => {
      const warnings = problemsOf(each).filter(({ severity }) => severity === 'warning').length;
      return {
        text: warnings === 0 ? '–' : String(warnings),
        value: warnings,
        ...(warnings > 0 && { tone: 'warning' as const }),
      };
    }),
    ...more,
  ]);

// Report of `minimind export`: the files, inputs and outputs, and requirements for running them.

/** `float32`, `int4 in groups of 32 for 3.2M of them, the others float32`. */
const formText = ({ quantized }: ExportResult['weights']): string =>
  quantized
    ? `int${quantized.bits} in groups of ${quantized.group} for ${shortCount(quantized.elements)} of them, the others float32`
    : 'float32';

export function exportReport(result: ExportResult): Report {
  const { files, weights, positions, inputs, outputs, operatorSets, operators } = result;
  const file = files[0]?.path ?? '';
  const count = sumOf(operators, (each) => each.count);
  return {
    verdict: {
      text: `Wrote ${file}: ${formatBytes(sumOf(files, ({ bytes }) => bytes))}, ${weightsText(result)}`,
      tone: 'good',
    },
    blocks: [
      {
        kind: 'facts',
        facts: present([
          files.length > 1 && {
            name: 'files',
            text: files.map(({ path, bytes }) => `${path} ${formatBytes(bytes)}`).join(', '),
          },
          ...inputs.map((each) => ({ name: 'input', text: `${each.name} ${onnxValueText(each)}` })),
          ...outputs.map((each) => ({
            name: 'output',
            text: `${each.name} ${onnxValueText(each)}`,
          })),
          {
            name: 'graph',
            text:
              `${counted(count, 'node')}; ` +
              operatorSets.map(({ domain, version }) => `${domain} ${version}`).join(', '),
          },
          {
            name: 'weights',
            text: `${counted(weights.tensors, 'tensor')}, ${shortCount(weights.elements)} values, ${formText(weights)}`,
          },
        ]),
      },
      noteOf(
        `Batch and sequence length are free, up to ${counted(positions, 'token')}. Operators of com.microsoft ` +
          'require ONNX Runtime.',
      ),
    ],
    details: [exportTable(result)],
    data: exportTable(result),
  };
}

const exportTable = (result: ExportResult): TableBlock =>
  tableOf(exportSections(result), [
    leftColumn('part', 'what', ([what]) => what),
    wrapColumn('name', 'name', ([, name]) => name),
    wrapColumn('value', 'is', ([, , value]) => value),
  ]);

const weightsText = ({ checkpoint, seed }: ExportResult): string =>
  checkpoint === null ? `random weights, seed ${seed}` : `weights of ${checkpoint}`;

function exportSections({
  files,
  inputs,
  outputs,
  operatorSets,
  operators,
  weights,
}: ExportResult) {
  const nodes = (domain: string) => {
    const own = operators.filter((each) => each.domain === domain);
    const count = sumOf(own, (each) => each.count);
    return `${counted(count, 'node')} of ${counted(own.length, 'operator')}`;
  };
  return [
    ...files.map(({ path, bytes }) => ['file', path, formatBytes(bytes)] as const),
    ...inputs.map((each) => ['input', each.name, onnxValueText(each)] as const),
    ...outputs.map((each) => ['output', each.name, onnxValueText(each)] as const),
    ...operatorSets.map(
      ({ domain, version }) =>
        ['operators', domain, `version ${version}: ${nodes(domain)}`] as const,
    ),
    [
      'weights',
      'float32',
      `${counted(weights.tensors, 'tensor')}, ${formatInteger(weights.elements)} values, ${formatBytes(weights.bytes)}`,
    ] as const,
  ];
}

const onnxValueText = ({ type, shape }: OnnxValue): string => `${type} [${shape.join(', ')}]`;
