/** The parts of an inspection that only GGUF files have. */
import type { GgufDescription, ShownValue } from '../../checkpoint/gguf/describe-gguf.js';
import { formatInteger } from '../../text/units.js';
import { nameText, shortened } from '../../text/words.js';
import {
  bytesCell,
  headingBlock,
  integerCell,
  leftColumn,
  right,
  tableOf,
  wrapColumn,
} from '../kit/cells.js';
import type { Block, Fact, TableBlock } from '../kit/report.js';

/** Longest value of the metadata in a table; JSON has all of it. */
const MAX_VALUE = 100;

export function ggufFacts(gguf: GgufDescription): Fact[] {
  const { architecture, tokenizer, chatTemplate, metadata } = gguf;
  return [
    ...(architecture === null ? [] : [{ name: 'architecture', text: nameText(architecture) }]),
    { name: 'weights', text: `${gguf.bitsPerWeight.toFixed(2)} bits per weight` },
    { name: 'tokenizer', text: tokenizer === null ? 'none' : tokenizerText(tokenizer) },
    {
      name: 'chat template',
      text: chatTemplate === null ? 'none' : `${formatInteger(chatTemplate.length)} characters`,
    },
    { name: 'metadata', text: `${formatInteger(Object.keys(metadata).length)} keys` },
  ];
}

function tokenizerText({ model, pre, tokens }: NonNullable<GgufDescription['tokenizer']>): string {
  const parts = [
    nameText(model),
    ...(pre === null ? [] : [`split as ${nameText(pre)}`]),
    ...(tokens === null ? [] : [`${formatInteger(tokens)} tokens`]),
  ];
  return parts.join(', ');
}

/** Types and bits by component. */
export const ggufComponents = ({ components }: GgufDescription): TableBlock =>
  tableOf(components, [
    wrapColumn('component', 'component', ({ component }) => component),
    right('tensors', 'tensors', ({ tensors }) => integerCell(tensors)),
    right('values', 'values', ({ elements }) => integerCell(elements)),
    right('size', 'bytes', ({ bytes }) => bytesCell(bytes)),
    right('bits per weight', 'bits_per_weight', ({ bitsPerWeight }) => ({
      text: bitsPerWeight.toFixed(2),
      value: bitsPerWeight,
    })),
    leftColumn('types', 'types', ({ types }) => types.join(', ')),
  ]);

export function ggufDetails({ metadata, chatTemplate }: GgufDescription): Block[] {
  return [
    headingBlock('Metadata'),
    tableOf(Object.entries(metadata), [
      wrapColumn('key', 'key', ([key]) => nameText(key)),
      wrapColumn('value', 'value', ([, value]) => shortened(valueText(value), MAX_VALUE)),
    ]),
    ...(chatTemplate === null
      ? []
      : [
          headingBlock('Chat template'),
          { kind: 'note', text: shortened(chatTemplate, 1000) } satisfies Block,
        ]),
  ];
}

function valueText(value: ShownValue): string {
  if (typeof value !== 'object') return nameText(String(value));
  if (Array.isArray(value)) return nameText(`[${value.join(', ')}]`);
  const { elements, type } = value as { readonly elements: number; readonly type: string };
  return `${formatInteger(elements)} of ${type}`;
}
