// A report as a picture: the heading, the facts and two pictures of a page, in a frame.
import { parse, serializeOuter } from 'parse5';

const WIDTH = 960;
const MARGIN = 28;
const TOP = 78;
const FACT = 24;
const NAMES = 100;
const GAP = 24;

/** All elements of a name below a node, in the order of the page. */
const elementsOf = (node, name) =>
  (node.childNodes ?? []).flatMap((child) => [
    ...(child.nodeName === name ? [child] : []),
    ...elementsOf(child, name),
  ]);

const textOf = (node) => node.value ?? (node.childNodes ?? []).map(textOf).join('');

const escaped = (text) =>
  text.replace(/[&<>]/g, (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[character]);

const attribute = (node, name) => node.attrs.find((each) => each.name === name)?.value ?? '';

const text = (content, x, y, rest = '') =>
  `<text x="${x}" y="${y}"${rest && ` ${rest}`}>${escaped(content)}</text>`;

/** A picture of the page with its title, at a place. */
function pictureAt(figure, x, y, width) {
  const [svg] = elementsOf(figure, 'svg');
  const scale = width / Number(attribute(svg, 'width'));
  const title = textOf(elementsOf(figure, 'figcaption')[0]);
  const short = title.split(',')[0];
  return {
    bottom: y + 16 + Number(attribute(svg, 'height')) * scale,
    content: [
      text(short, x, y, 'font-weight="600"'),
      `<g transform="translate(${x} ${y + 16}) scale(${scale.toFixed(4)})">${svg.childNodes
        .filter(({ nodeName }) => nodeName !== 'title')
        .map(serializeOuter)
        .join('')}</g>`,
    ],
  };
}

/**
 * The picture of a page that minimind has written.
 * @param style Style of a picture that minimind has written as a file, with its colours.
 */
export function reportPicture(page, command, style) {
  const document = parse(page);
  const heading = textOf(elementsOf(document, 'h1')[0]);
  const [list] = elementsOf(document, 'dl');
  const names = elementsOf(list, 'dt').map(textOf);
  const values = elementsOf(list, 'dd').map(textOf);
  const [first, second] = elementsOf(document, 'figure');
  const facts = names.flatMap((name, index) => [
    text(name, MARGIN, TOP + 40 + index * FACT, 'class="dim" fill="currentColor" color="#59626e"'),
    text(values[index], MARGIN + NAMES, TOP + 40 + index * FACT),
  ]);
  const y = TOP + 40 + names.length * FACT + 22;
  const width = (WIDTH - 2 * MARGIN - GAP) / 2;
  const pictures = [first, second].map((figure, index) =>
    pictureAt(figure, MARGIN + index * (width + GAP), y, width),
  );
  const height = Math.ceil(Math.max(...pictures.map(({ bottom }) => bottom)) + MARGIN);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" class="ink" color="#1c2127" fill="currentColor" font-family="system-ui, -apple-system, &quot;Segoe UI&quot;, Roboto, &quot;Noto Sans&quot;, sans-serif" font-size="14">`,
    `<title>${escaped(heading)}</title>`,
    style,
    `<rect class="ground" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8" fill="#ffffff"/>`,
    `<rect x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8" fill="none" stroke="currentColor" stroke-opacity="0.25"/>`,
    text(
      command,
      MARGIN,
      28,
      'class="dim" fill="currentColor" color="#59626e" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12.5"',
    ),
    `<line x1="${MARGIN}" x2="${WIDTH - MARGIN}" y1="42" y2="42" stroke="currentColor" stroke-opacity="0.2"/>`,
    text(heading, MARGIN, TOP, 'font-weight="650" font-size="21"'),
    ...facts,
    ...pictures.flatMap(({ content }) => content),
    '</svg>',
  ].join('\n');
}
