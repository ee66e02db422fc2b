/** Elements of HTML and SVG. Every text and every value is escaped, so that names out of files are shown, not obeyed. */
import { printable } from '../../base/text/escape.js';

/** Escaped text. Only this file makes it from strings. */
export class Markup {
  constructor(readonly text: string) {}
}

/** A child of an element: a string is text, and nothing is left out. */
export type Child = Markup | string | number | readonly Child[] | false | null | undefined;

export type Attributes = Readonly<Record<string, string | number | true | false | undefined>>;

/** The end of a line of code. Breaks in texts are escaped. */
export const LINE_BREAK = new Markup('\n');

/** Elements of HTML without an end tag. */
const EMPTY_ELEMENTS: ReadonlySet<string> = new Set(['meta', 'br', 'wbr', 'hr']);

/** An element with its attributes; `true` is an attribute without a value, `false` is none. */
export function element(name: string, attributes: Attributes, ...children: Child[]): Markup {
  let text = `<${name}`;
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    // XML has no attributes without a value.
    text += ` ${key}="${value === true ? '' : escaped(String(value))}"`;
  }
  text += '>';
  if (EMPTY_ELEMENTS.has(name)) return new Markup(text);
  return new Markup(`${text}${joinedText(children)}</${name}>`);
}

/** Children one after the other, without an element around them. */
export const fragment = (...children: Child[]): Markup => new Markup(joinedText(children));

function joinedText(children: readonly Child[]): string {
  let text = '';
  for (const child of children) {
    if (child === undefined || child === null || child === false) continue;
    if (child instanceof Markup) text += child.text;
    else if (typeof child === 'object') text += joinedText(child);
    else text += escaped(String(child));
  }
  return text;
}

/**
 * A style sheet of ours. CSS has no escapes of HTML.
 * @throws Error for a text that would end the element.
 */
export const styleElement = (css: string): Markup => rawElement('style', '', css);

/** A script of ours, as `styleElement`. */
export const scriptElement = (code: string): Markup => rawElement('script', '', code);

/** Data in a page. `<` is written as JSON's own escape, so that nothing in it can end the element. */
export const dataElement = (id: string, json: string): Markup =>
  rawElement('script', ` type="application/json" id="${escaped(id)}"`, inertJson(json));

/** JSON that has no characters with a meaning in HTML, and parses to the same value. */
const inertJson = (json: string) =>
  json.replace(/[<>&]|\p{Noncharacter_Code_Point}/gu, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );

function rawElement(name: string, attributes: string, content: string): Markup {
  if (/<[/!]/.test(content)) throw new Error(`a ${name} element cannot hold this text`);
  return new Markup(`<${name}${attributes}>${content}</${name}>`);
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Noncharacters are faults in HTML, and two of them end a document of XML. */
const escaped = (text: string): string =>
  printable(text).replace(
    /[&<>"']|\p{Noncharacter_Code_Point}/gu,
    (character) => ENTITIES[character] ?? `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
