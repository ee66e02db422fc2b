/** Areas in proportion to values, nested as their parts. */
import { type HierarchyRectangularNode, hierarchy, treemap } from 'd3-hierarchy';
import type { TreemapNode, TreemapPicture } from '../../kit/pictures.js';
import { hueOf } from '../../kit/tones.js';
import { type Child, element } from '../markup.js';
import { colour, type Drawing, estimatedWidth, FONT_SIZE, label, round, WIDTH } from './svg.js';
import { valueText } from './units.js';

const HEIGHT = 360;
/** Height of a group's name. */
const HEAD = 18;

type Place = HierarchyRectangularNode<TreemapNode>;

export function drawTreemap({ root, unit }: TreemapPicture): Drawing {
  const whole = hierarchy(root, ({ children }) => children).sum(({ value = 0, children }) =>
    children === undefined ? Math.max(0, value) : 0,
  );
  const placed = treemap<TreemapNode>()
    .size([WIDTH, HEIGHT])
    .paddingInner(2)
    .paddingTop(({ depth, children }) => (depth > 0 && children ? HEAD : 0))
    .round(true)(whole);
  const groups = placed.children ?? [];
  const text = (node: Place) => `${node.data.label}: ${valueText(node.value ?? 0, unit)}`;
  const areaOf = (node: Place): Child => {
    const [width, height] = [node.x1 - node.x0, node.y1 - node.y0];
    if (width < 1 || height < 1) return null;
    const isGroup = node.children !== undefined;
    const name = [...node.ancestors()]
      .reverse()
      .slice(1)
      .map(({ data }) => data.label)
      .join(' › ');
    return [
      element(
        'rect',
        {
          x: node.x0,
          y: node.y0,
          width,
          height,
          fill: 'currentColor',
          'fill-opacity': isGroup ? 0.14 : 0.22,
          stroke: 'currentColor',
          'stroke-opacity': 0.6,
        },
        element('title', {}, `${name}: ${valueText(node.value ?? 0, unit)}`),
      ),
      names(node, width, height, text(node)),
      node.children?.map(areaOf),
    ];
  };
  return {
    height: HEIGHT,
    content: groups.map((node, index) => element('g', colour(hueOf(index)), areaOf(node))),
  };
}

const INSET = 5;
/** Room for a few characters of a name. */
const NARROWEST = 30;

/** The name, and where there is room, the value. Text has the colour of text, because it lies on a tint. */
function names(node: Place, width: number, height: number, text: string): Child {
  const room = width - 2 * INSET;
  if (height < HEAD - 2 || room < NARROWEST) return null;
  const place = {
    x: round(node.x0 + INSET),
    y: node.y0 + FONT_SIZE + 1,
    class: 'ink',
  };
  const [value = ''] = text.slice(node.data.label.length + 2).split('\n');
  const isOneLine = estimatedWidth(text) <= room || node.children !== undefined;
  if (isOneLine) return label(text, place, room);
  return [
    label(node.data.label, place, room),
    // A cut number would be another number.
    height > 2 * HEAD &&
      estimatedWidth(value) <= room &&
      label(value, { ...place, y: place.y + FONT_SIZE + 3 }),
  ];
}
