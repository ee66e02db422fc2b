/** Elements of pages as a browser's parser finds them. */
import { type DefaultTreeAdapterTypes, parse } from 'parse5';

type Node = DefaultTreeAdapterTypes.Node;

/** An element with its attributes as written, and its text. */
export interface Parsed {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly text: string;
}

/** All elements in their order, and the texts of `parse5` about faults. */
export function parsedElements(html: string): {
  readonly elements: Parsed[];
  readonly faults: string[];
} {
  const faults: string[] = [];
  const root = parse(html, { onParseError: ({ code }) => void faults.push(code) });
  const elements: Parsed[] = [];
  const visit = (node: Node): string => {
    if (node.nodeName === '#text') return (node as DefaultTreeAdapterTypes.TextNode).value;
    const children = 'childNodes' in node ? node.childNodes : [];
    const at = elements.length;
    const isElement = 'attrs' in node;
    if (isElement) elements.push({ name: '', attributes: {}, text: '' });
    const text = children.map(visit).join('');
    if (isElement) {
      const attributes = Object.fromEntries(node.attrs.map(({ name, value }) => [name, value]));
      elements[at] = { name: node.nodeName, attributes, text };
    }
    return text;
  };
  visit(root);
  return { elements, faults };
}

/** The structure of a page: names of elements and of their attributes. */
export const structureOf = (html: string): string[] =>
  parsedElements(html).elements.map(
    ({ name, attributes }) => `${name} ${Object.keys(attributes).join(' ')}`,
  );
