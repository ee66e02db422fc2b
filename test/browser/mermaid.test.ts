/**
 * Mermaid itself reads and draws the diagrams of all families. It is a large package, so it is not a dependency: name its
 * file to run this, as CONTRIBUTING.md says.
 */
import fs from 'node:fs';
import { describe, expect, test } from 'vitest';
import { FAMILY_NAMES, loadFamily } from '../../src/model/architecture/families.js';
import { presetsOf } from '../../src/model/architecture/presets.js';
import { drawModel } from '../../src/model/diagram/draw-model.js';
import { mermaidDiagram } from '../../src/report/draw/mermaid-diagram.js';
import { HOSTILE_DIAGRAMS } from '../report/hostile-diagrams.js';
import { NO_BROWSER, withPage } from './chromium.js';

const { MINIMIND_MERMAID } = process.env;
const isLeftOut = NO_BROWSER || !MINIMIND_MERMAID;

/** Global objects of the page. */
interface PageWindow {
  readonly mermaid: {
    initialize(options: object): void;
    render(id: string, text: string): Promise<{ svg: string }>;
  };
  readonly DOMParser: new () => {
    parseFromString(
      text: string,
      type: string,
    ): {
      querySelector(selector: string): object | null;
      querySelectorAll(selector: string): { readonly length: number };
    };
  };
}

async function diagramOf(name: (typeof FAMILY_NAMES)[number]): Promise<string> {
  const { build, schema } = await loadFamily(name);
  const keys = presetsOf(name)[0]?.document.model ?? {};
  const model = build(schema.parse({ model: { ...keys, family: name } }));
  const diagram = drawModel(model, { batch: 1, context: 64, causal: false });
  return mermaidDiagram({ kind: 'diagram', title: name, diagram });
}

describe.skipIf(isLeftOut)(
  `Mermaid${isLeftOut ? ' (skipped: set MINIMIND_MERMAID to mermaid.min.js)' : ''}`,
  () => {
    test('draws every family, and hostile names as text', { timeout: 600_000 }, async () => {
      const sources = [
        ...(await Promise.all(FAMILY_NAMES.map(diagramOf))),
        ...HOSTILE_DIAGRAMS.map(mermaidDiagram),
      ];
      const script = fs.readFileSync(MINIMIND_MERMAID ?? '', 'utf8');
      const html = '<!doctype html><meta charset="utf-8"><body><script src="/mermaid.js"></script>';
      await withPage({ '/': html, '/mermaid.js': script }, async ({ page, url, messages }) => {
        await page.goto(url);
        const faults = await page.evaluate(async (texts) => {
          const { mermaid, DOMParser } = globalThis as unknown as PageWindow;
          mermaid.initialize({ startOnLoad: false, maxTextSize: 1_000_000, maxEdges: 10_000 });
          const found: string[] = [];
          for (const [index, text] of texts.entries()) {
            try {
              const { svg } = await mermaid.render(`d${index}`, text);
              const drawn = new DOMParser().parseFromString(svg, 'text/html');
              if (drawn.querySelector('script, img, a')) found.push(`active: ${text}`);
              if (drawn.querySelectorAll('.node').length < 3) found.push(`empty: ${text}`);
            } catch (error) {
              found.push(`${error}\n${text}`);
            }
          }
          return found;
        }, sources);
        expect(faults).toEqual([]);
        expect(messages).toEqual([]);
      });
    });
  },
);
