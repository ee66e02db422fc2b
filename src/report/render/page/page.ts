/** A page in one file: no request, nothing from elsewhere, and readable without scripts and without styles. */
import { printableJson } from '../../../base/text/escape.js';
import type { ReportSource } from '../../kit/report.js';
import {
  type Child,
  dataElement,
  element,
  fragment,
  scriptElement,
  styleElement,
} from '../markup.js';
import { PAGE_SCRIPT } from './page-script.js';
import { PAGE_STYLE } from './page-style.js';

export interface Page {
  readonly title: string;
  /** Children of `<main>`. They begin with the `<h1>`. */
  readonly content: Child;
  readonly source: ReportSource;
  /** CSS and code for a page of one kind, after those of all pages. */
  readonly style?: string;
  readonly script?: string;
}

/** The page as text. Its policy allows the style and the script by their hashes, and nothing else. */
export async function pageText({
  title,
  content,
  source,
  style = '',
  script = '',
}: Page): Promise<string> {
  const css = PAGE_STYLE + style;
  const code = PAGE_SCRIPT + script;
  const policy = [
    "default-src 'none'",
    `style-src '${await hashOf(css)}'`,
    `script-src '${await hashOf(code)}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  const head = element(
    'head',
    {},
    element('meta', { charset: 'utf-8' }),
    element('meta', { 'http-equiv': 'Content-Security-Policy', content: policy }),
    element('meta', { name: 'viewport', content: 'width=device-width, initial-scale=1' }),
    element('meta', { name: 'color-scheme', content: 'light dark' }),
    element('meta', { name: 'generator', content: `minimind ${source.version}` }),
    element('title', {}, title),
    styleElement(css),
  );
  const body = element(
    'body',
    {},
    element('header', {}, element('code', {}, source.command)),
    element('main', {}, content),
    element('footer', {}, footerText(source.version)),
    dataElement('result', compact([...source.json].join(''))),
    scriptElement(code),
  );
  return `<!DOCTYPE html>\n${element('html', { lang: 'en' }, head, body).text}`;
}

/** The same values without spaces between them, which are a third of a long answer. */
const compact = (json: string) => printableJson(JSON.stringify(JSON.parse(json)));

const footerText = (version: string) =>
  fragment(
    element(
      'p',
      {},
      `Written by minimind ${version}. This file has the whole answer as JSON, in its element `,
      element('code', {}, '#result'),
      '.',
    ),
  );

/** A source expression of a policy: the hash of a text. */
async function hashOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return `sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}`;
}
