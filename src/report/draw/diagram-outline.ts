/** A diagram as an outline for pages: each block and each box can be unfolded, down to its tensors. */
import { formatInteger } from '../../base/text/units.js';
import type { DiagramNode } from '../../model/diagram/diagram.js';
import type { DiagramBlock } from '../kit/pictures.js';
import { htmlTable } from '../render/html-table.js';
import { type Child, element, fragment, type Markup } from '../render/markup.js';
import { tensorTable } from './diagram-tables.js';
import { CHANGE_MARKS, figuresText, groupFigures, groupTitle } from './diagram-words.js';

/** The outline, with shared boxes at its end. */
export function diagramOutline({ diagram }: DiagramBlock): Markup {
  const { root, shared, links } = diagram;
  const labels = new Map(
    [root, ...shared].flatMap(withParts).map((node) => [node.id, node.label || 'a part']),
  );
  const used = new Map<string, string[]>();
  for (const { from, to } of links) {
    const owner = labels.get(from);
    if (owner !== undefined) used.set(to, [...(used.get(to) ?? []), owner]);
  }
  const listOf = (nodes: readonly DiagramNode[]): Markup =>
    element(
      'ul',
      { class: 'outline' },
      nodes.map((node) => element('li', {}, itemOf(node))),
    );
  const itemOf = (node: DiagramNode): Child => {
    const { kind, children, tensors } = node;
    const owners = [...new Set(used.get(node.id) ?? [])];
    const content = [
      owners.length > 0 && element('p', { class: 'dim' }, `Tensors of ${owners.join(', ')}`),
      tensors.length > 0 && htmlTable(tensorTable(node), `Tensors of ${node.label}`),
      children.length > 0 && listOf(kind === 'series' ? children : children.flatMap(seriesSteps)),
    ].filter(Boolean);
    if (content.length === 0) return summaryOf(node);
    return element('details', {}, element('summary', {}, summaryOf(node)), content);
  };
  return fragment(
    element('p', { class: 'dim' }, 'Blocks and their tensors:'),
    listOf([...seriesSteps(root), ...shared]),
  );
}

/** A series is only its steps. */
const seriesSteps = (node: DiagramNode): readonly DiagramNode[] =>
  node.kind === 'series' ? node.children.flatMap(seriesSteps) : [node];

function summaryOf(node: DiagramNode): Child {
  const { kind, label, notes, change, children, before } = node;
  const mark = CHANGE_MARKS[change];
  const name =
    kind === 'group'
      ? groupTitle(node)
      : kind === 'residual'
        ? children.length === 1
          ? 'Residual branch'
          : `Residual sum of ${countText(children, 'branch')}`
        : kind === 'parallel'
          ? `${countText(children, 'branch')} side by side${label === '+' ? ', added' : `, ${label}`}`
          : label;
  const figures = kind === 'group' ? groupFigures(node) : figuresText(node);
  const facts = [
    ...(kind === 'group' ? [] : notes),
    figures,
    before.length > 0 ? `was ${before.join(', ')}` : '',
  ].filter(Boolean);
  return [
    element('strong', {}, mark + name),
    facts.length > 0 && [' ', element('span', { class: 'dim' }, facts.join(' · '))],
  ];
}

const countText = (nodes: readonly DiagramNode[], what: string): string =>
  nodes.length === 1 ? `1 ${what}` : `${formatInteger(nodes.length)} ${what}es`;

const withParts = (node: DiagramNode): DiagramNode[] => [node, ...node.children.flatMap(withParts)];
