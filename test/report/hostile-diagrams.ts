/** Diagrams whose texts attack the formats that they are drawn in. */
import type { DiagramNode } from '../../src/model/diagram/diagram.js';
import type { DiagramBlock } from '../../src/report/kit/pictures.js';

const HOSTILE = [
  '</script><img src=x>',
  '"];click n1 "javascript:1',
  '`%%{init}%%`',
  '\u202eabc',
  '🙂"',
  'x'.repeat(10_000),
];

const box = (id: string, label: string): DiagramNode => ({
  id,
  kind: 'box',
  label,
  notes: [label],
  component: 'attention',
  count: 1,
  blocks: [],
  width: 8,
  parameters: 1,
  buffers: 0,
  flops: 1,
  tensors: [{ name: label, shape: [1], count: 1, role: 'parameter', dtype: label }],
  children: [],
  change: 'same',
  before: [],
});

export const HOSTILE_DIAGRAMS: readonly DiagramBlock[] = HOSTILE.map((name) => {
  const root: DiagramNode = {
    ...box('n0', ''),
    kind: 'series',
    tensors: [],
    children: [box('n1', name), { ...box('n2', name), kind: 'group', children: [box('n3', name)] }],
  };
  return {
    kind: 'diagram',
    title: name,
    diagram: { root, shared: [], links: [] },
    hasTensors: true,
  };
});
