import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RenderOptions, Report } from '../../../src/report/kit/report.js';
import { render } from '../../../src/report/render/render.js';
import { forbiddenIn, hostileReport, hostileText } from '../hostile.js';
import { EVERY_BLOCK, withTexts } from './any-report.js';
import { parsedElements, structureOf } from './parsed.js';

const JSON_TEXT = '{\n  "schema": "minimind/x@1",\n  "text": "</script><!--<script>&"\n}\n';

const optionsWith = (command: string, json = JSON_TEXT): RenderOptions => ({
  width: Number.POSITIVE_INFINITY,
  colourLevel: 0,
  source: { command, version: '1.2.3', json: [json.slice(0, 5), json.slice(5)] },
});

const OPTIONS = optionsWith('minimind profile model.yaml');
const page = (report: Report, options = OPTIONS) => render(report, 'html', options);

const HOSTILE = [
  '</script><script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '"><svg onload=alert(1)>',
  "' onmouseover='alert(1)",
  '</style></title></textarea><b>',
  '<!-- -->',
  ']]>',
  '\u202egnp.exe\u2066',
  '=HYPERLINK("http://evil.example")',
  '🙂❤️🇩🇪',
  '&lt;b&gt; &amp;',
  'javascript:alert(1)',
  '\ud800 \ufffe \uffff \0 \x1b[31m',
  'x'.repeat(10_240),
] as const;

describe('a page', () => {
  it('has the answer, the command, the version and the JSON', async () => {
    const { elements, faults } = parsedElements(await page(EVERY_BLOCK));
    const textOf = (name: string) =>
      elements.filter((each) => each.name === name).map(({ text }) => text);
    expect(faults).toEqual([]);
    expect(textOf('h1')).toEqual(['✓ verdict']);
    expect(textOf('header')).toEqual(['minimind profile model.yaml']);
    expect(textOf('footer').join()).toContain('minimind 1.2.3');
    expect(textOf('dd')).toEqual(['text']);
    expect(textOf('figcaption')).toEqual(['bars', 'treemap', 'scatter', 'heat map', 'plot']);
    const [data] = elements.filter(({ attributes }) => attributes.type === 'application/json');
    expect(JSON.parse(data?.text ?? '')).toEqual(JSON.parse(JSON_TEXT));
  });

  it('folds details and derivations, and opens details on request', async () => {
    const isOpen = async (details: boolean) =>
      parsedElements(await page(EVERY_BLOCK, { ...OPTIONS, details }))
        .elements.filter(
          ({ name, text }) => name === 'details' && /^(Details|Derivations)/.test(text),
        )
        .map(({ text, attributes }) => [text.slice(0, 7), 'open' in attributes]);
    expect(await isOpen(false)).toEqual([
      ['Details', false],
      ['Derivat', false],
    ]);
    expect(await isOpen(true)).toEqual([
      ['Details', true],
      ['Derivat', false],
    ]);
  });

  it('has the main picture at the side of the facts, and a part for each heading', async () => {
    const { elements } = parsedElements(await page(EVERY_BLOCK));
    const textOf = (name: string) =>
      elements.filter(({ attributes }) => attributes.class === name).map(({ text }) => text);
    expect(textOf('introduction')).toEqual([expect.stringMatching(/^nametextnotecode\s+bars/)]);
    const [blocks, details] = textOf('parts');
    expect(blocks).toMatch(/^heading.*total/s);
    expect(details).toMatch(/^more.*plot.*cell/s);
  });

  it('keeps totals out of sorting, and gives numbers their exact values', async () => {
    const html = await page(EVERY_BLOCK);
    expect(html).toMatch(/<tfoot><tr><th scope="row"[^>]*>total<\/th>/);
    expect(html).toContain('data-value="2.5">2</td>');
    expect(html).toContain('<td class="right number">10</td>');
  });

  it('draws bars, and not the characters of a terminal', async () => {
    const { elements } = parsedElements(await page(EVERY_BLOCK));
    const bars = elements.filter(({ attributes }) => attributes.class === 'bar');
    expect(bars).toHaveLength(3);
    expect(elements.find(({ name }) => name === 'main')?.text).not.toMatch(/[█▌]/);
  });

  it('allows its own style and script, and nothing else', async () => {
    const { elements } = parsedElements(await page(EVERY_BLOCK));
    const policy = elements.find(({ attributes }) => 'http-equiv' in attributes)?.attributes
      .content;
    const hashes = ['style', 'script'].map((kind) => {
      const [own] = elements.filter(
        ({ name, attributes }) => name === kind && !('type' in attributes),
      );
      return `${kind}-src 'sha256-${createHash('sha256')
        .update(own?.text ?? '')
        .digest('base64')}'`;
    });
    expect(policy).toBe(
      `default-src 'none'; ${hashes.join('; ')}; base-uri 'none'; form-action 'none'`,
    );
    const attributes = elements.flatMap((each) => Object.keys(each.attributes));
    expect(attributes.filter((name) => /^(style|on.*|src|href)$/.test(name))).toEqual([]);
  });

  it.each(HOSTILE)(
    'has the same elements with every text replaced by hostile text %#',
    async (text) => {
      const usual = await page(withTexts(EVERY_BLOCK, () => 'x'));
      const html = await page(
        withTexts(EVERY_BLOCK, () => text),
        optionsWith(text),
      );
      expect(parsedElements(html).faults).toEqual([]);
      expect(forbiddenIn(html.replaceAll('\n', ''))).toEqual([]);
      // Long labels of a treemap leave no room for their values.
      const withoutText = (lines: string[]) => lines.filter((line) => !line.startsWith('text '));
      expect(withoutText(structureOf(html))).toEqual(withoutText(structureOf(usual)));
    },
  );

  it('has the same elements for any texts', async () => {
    const withoutText = (lines: string[]) => lines.filter((line) => !line.startsWith('text '));
    // An empty text takes away a heading of a row or column.
    const texts = fc.array(
      hostileText.map((text) => `x${text}`),
      { minLength: 1, maxLength: 20 },
    );
    const usual = withoutText(structureOf(await page(withTexts(EVERY_BLOCK, () => 'x'))));
    await fc.assert(
      fc.asyncProperty(texts, async (all) => {
        const html = await page(withTexts(EVERY_BLOCK, (at) => all[at % all.length] ?? 'x'));
        expect(parsedElements(html).faults).toEqual([]);
        expect(withoutText(structureOf(html))).toEqual(usual);
      }),
      { numRuns: 25 },
    );
  });

  it('has only elements of ours for any report', async () => {
    await fc.assert(
      fc.asyncProperty(hostileReport, async (report) => {
        const { elements, faults } = parsedElements(await page(report));
        expect(faults).toEqual([]);
        expect(elements.map(({ name }) => name).filter((name) => !OURS.has(name))).toEqual([]);
      }),
    );
  });
});

const OURS: ReadonlySet<string> = new Set(
  (
    'html head meta title style script body header main footer h1 h2 h3 p code pre dl dt dd div table thead tbody tr th td ' +
    'details summary'
  ).split(' '),
);
