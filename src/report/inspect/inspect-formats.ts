/** The parts of an inspection that only GGUF or ONNX files have. */

import { formatBytes, formatInteger } from '../../base/text/units.js';
import { counted, joined, namesText, nameText, shortened } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import type { GgufDescription, ShownValue } from '../../checkpoint/gguf/describe-gguf.js';
import type { OnnxDescription, OnnxValueInfo } from '../../checkpoint/onnx/describe-onnx.js';
import type { OnnxView } from '../../input/model-input/onnx/onnx-tensors.js';
import type { OnnxInspection } from '../command-results.js';
import type { Block, Fact, TableBlock } from '../kit/report.js';
import {
  bytesCell,
  headingBlock,
  integerCell,
  leftColumn,
  MAX_ROWS,
  noteOf,
  paragraph,
  right,
  tableOf,
  wrapColumn,
} from '../kit/report.js';

/** Maximum characters of a metadata value in a table; JSON has all of it. */
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
      wrapColumn('value', 'value', ([, value]) => shortened(metadataText(value), MAX_VALUE)),
    ]),
    ...(chatTemplate === null
      ? []
      : [headingBlock('Chat template'), paragraph(shortened(chatTemplate, 1000))]),
  ];
}

function metadataText(value: ShownValue): string {
  if (typeof value !== 'object') return nameText(String(value));
  if (Array.isArray(value)) return nameText(`[${value.join(', ')}]`);
  const { elements, type } = value as { readonly elements: number; readonly type: string };
  return `${formatInteger(elements)} of ${type}`;
}

/** Maximum values and operators that a fact names. */
const LISTED = 3;

export function onnxFacts(onnx: OnnxInspection): Fact[] {
  const { producer, producerVersion, irVersion, operatorSets, externalFiles } = onnx;
  const made = [producer, producerVersion].filter(Boolean).map(nameText).join(' ');
  const sets = operatorSets.map(({ domain, version }) => `${nameText(domain)} ${version}`);
  return [
    {
      name: 'made by',
      text: `${made || 'unknown'}, IR ${irVersion}, operator sets ${sets.join(', ') || 'none'}`,
    },
    { name: 'inputs', text: valuesText(onnx.inputs) },
    { name: 'outputs', text: valuesText(onnx.outputs) },
    { name: 'graph', text: graphText(onnx) },
    ...(externalFiles.length > 0 ? [externalFact(onnx)] : []),
    ...(onnx.constants.length > 0 ? [{ name: 'constants', text: constantsText(onnx) }] : []),
  ];
}

function valuesText(values: readonly OnnxValueInfo[]): string {
  const shown = values.slice(0, LISTED).map(valueInfoText);
  const more = values.length - shown.length;
  return values.length === 0
    ? 'none'
    : more > 0
      ? `${shown.join(', ')} and ${more} more`
      : shown.join(', ');
}

/** `input_ids int64 [batch, sequence]`; `?` for an unknown size. */
function valueInfoText({ name, type, shape }: OnnxValueInfo): string {
  const sizes = shape?.map((size) => (size === '' ? '?' : String(size))).join(', ');
  return shortened(
    [nameText(name), type ?? 'no tensor', sizes === undefined ? 'of any shape' : `[${sizes}]`].join(
      ' ',
    ),
  );
}

/** `105 nodes: 14 MatMul, 20 Mul, 9 Add and 12 other operators`. */
function graphText({ nodes, operators, subgraphs, functions }: OnnxInspection): string {
  const shown = operators
    .slice(0, 4)
    .map(({ operator, count }) => `${formatInteger(count)} ${nameText(operator)}`);
  const others = operators.length - shown.length;
  const listed = others > 0 ? [...shown, counted(others, 'other operator')] : shown;
  return [
    nodes === 0 ? 'no nodes' : `${counted(nodes, 'node')}: ${joined(listed)}`,
    ...(subgraphs > 0 ? [counted(subgraphs, 'subgraph')] : []),
    ...(functions > 0 ? [counted(functions, 'function')] : []),
  ].join('; ');
}

function externalFact({ externalFiles }: OnnxInspection): Fact {
  const missing = externalFiles.filter(({ size }) => size === null);
  const texts = externalFiles.slice(0, LISTED).map(({ location, tensors, bytes, size }) => {
    const state = size === null ? 'missing' : formatBytes(size);
    return `${nameText(location)} (${state}; ${counted(tensors, 'tensor')}, ${formatBytes(bytes)})`;
  });
  const more = externalFiles.length - texts.length;
  const text = more > 0 ? `${texts.join(', ')} and ${more} more` : texts.join(', ');
  return { name: 'external', text, ...(missing.length > 0 && { tone: 'warning' as const }) };
}

/** Initializers other than tensors of the model. */
function constantsText({ constants, initializers }: OnnxInspection): string {
  const types = initializers.map(({ type, tensors }) => `${formatInteger(tensors)} ${type}`);
  return `${formatInteger(constants.length)} of the initializers (${types.join(', ')}) belong to the graph`;
}

export function onnxDetails(onnx: OnnxInspection): Block[] {
  const { operators } = onnx;
  return present([
    headingBlock('Operators'),
    tableOf(operators.slice(0, MAX_ROWS), [
      wrapColumn('operator', 'operator', ({ operator }) => nameText(operator)),
      wrapColumn('domain', 'domain', ({ domain }) => nameText(domain)),
      right('count', 'count', ({ count }) => integerCell(count)),
    ]),
    headingBlock('Initializers by type'),
    typesTable(onnx.initializers),
    ...(onnx.constantTensors.length > 0
      ? [headingBlock('Constants of nodes and subgraphs'), typesTable(onnx.constantTensors)]
      : []),
    onnx.sparseTensors > 0 &&
      noteOf(`${counted(onnx.sparseTensors, 'sparse tensor')} in addition, not read.`),
    headingBlock('Inputs and outputs'),
    ...[...onnx.inputs, ...onnx.outputs]
      .slice(0, MAX_ROWS)
      .map((each): Block => paragraph(valueInfoText(each))),
    ...onnxNotes(onnx),
  ]);
}

const typesTable = (totals: OnnxDescription['initializers']): TableBlock =>
  tableOf(totals, [
    leftColumn('type', 'type', ({ type }) => type),
    right('tensors', 'tensors', ({ tensors }) => integerCell(tensors)),
    right('values', 'values', ({ elements }) => integerCell(elements)),
    right('size', 'bytes', ({ bytes }) => bytesCell(bytes)),
  ]);

/** Notes on tensors that a graph stores in another form than the model has. */
export function onnxNotes({
  transposed,
  renamed,
  merged,
  quantized,
  constants,
}: OnnxView): Block[] {
  const isTransposed = new Set(transposed);
  const others = renamed.filter(({ name }) => !isTransposed.has(name)).map(({ name }) => name);
  return [
    ...noteAbout(transposed, 'stored transposed, under names that the exporter made up'),
    ...noteAbout(others, 'stored under names that the exporter made up'),
    ...noteAbout(
      merged.map(({ name }) => name),
      'stored once with another tensor of equal values',
    ),
    ...noteAbout(quantized, 'stored as integers in groups'),
    ...noteAbout(constants, 'of the graph itself, not compared', 'constant'),
  ];
}

const noteAbout = (names: readonly string[], what: string, noun = 'weight'): Block[] =>
  names.length === 0
    ? []
    : [noteOf(`${counted(names.length, noun)} ${what}: ${namesText(names)}.`)];
