/** What `minimind kv-projector project` and `convert` print. */
import type { Projection, ProjectorConversion } from '../../cli/kv-projector.js';
import { bytesCell, integerCell, left, note, right } from '../kit/cells.js';
import type { Report } from '../kit/report.js';
import { formatBytes, formatInteger } from '../kit/units.js';
import { counted, FORMAT_NAMES } from '../kit/wording.js';

type Described = Projection['projector'];

const projectorText = ({ path, kind, teachers, studentWidth, parameters }: Described): string =>
  `${path}: ${kind}, ${counted(teachers.length, 'teacher')}, width ${studentWidth}, ${formatInteger(parameters)} parameters.`;

export function projectionReport(result: Projection): Report {
  const { projector, output, bytes, tensors, ignored, products } = result;
  return {
    blocks: [
      { kind: 'heading', text: `done: ${output}`, tone: 'good' },
      note(projectorText(projector)),
      {
        kind: 'table',
        columns: [
          left('tensor', 'tensor', true),
          left('of', 'shape'),
          left('becomes', 'projected_shape'),
          left('type', 'dtype'),
          right('not finite', 'non_finite'),
        ],
        rows: tensors.map((each) => [
          { text: each.output.name },
          { text: `[${each.input.shape.join(', ')}]` },
          { text: `[${each.output.shape.join(', ')}]` },
          { text: each.output.dtype },
          integerCell(each.output.nonFinite),
        ]),
      },
      note(
        `${formatBytes(bytes)}, products by ${products}.${ignored.length > 0 ? ` Left alone: ${counted(ignored.length, 'tensor')} of results.` : ''}`,
      ),
    ],
  };
}

export function projectorConversionReport(result: ProjectorConversion): Report {
  const { projector, format, output, container, bytes, arguments: names } = result;
  return {
    blocks: [
      { kind: 'heading', text: `done: ${output}`, tone: 'good' },
      note(projectorText(projector)),
      {
        kind: 'table',
        columns: [
          left('from', 'from'),
          left('to', 'to'),
          right('tensors', 'tensors'),
          right('parameters', 'parameters'),
          right('size', 'bytes'),
          left('arguments', 'arguments', true),
        ],
        rows: [
          [
            { text: FORMAT_NAMES[format], value: format },
            { text: container },
            integerCell(projector.tensors),
            integerCell(projector.parameters),
            bytesCell({ value: bytes }),
            { text: names.join(', ') || 'none in the file' },
          ],
        ],
      },
    ],
  };
}
