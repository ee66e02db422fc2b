import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ReportFormat, render } from '../../src/report/render/render.js';
import { forbiddenIn, hostileReport } from './hostile.js';

const FORMATS: readonly ReportFormat[] = ['table', 'csv', 'markdown'];
const PLAIN = { width: Number.POSITIVE_INFINITY, colourLevel: 0 } as const;

describe.each(FORMATS)('output as %s', (format) => {
  it('ends with exactly one newline', async () => {
    const text = await render(
      {
        blocks: [
          { kind: 'heading', text: 'a' },
          { kind: 'table', columns: [{ title: 'n', key: 'n' }], rows: [[{ text: '1' }]] },
          { kind: 'note', text: '' },
        ],
      },
      format,
      PLAIN,
    );
    expect(text).toMatch(/[^\n]\n$/);
    expect(await render({ blocks: [] }, format, PLAIN)).toBe('\n');
  });

  it('has no control characters except newlines, for any report', async () => {
    await fc.assert(
      fc.asyncProperty(
        hostileReport,
        fc.constantFrom(20, 80, PLAIN.width),
        async (report, width) => {
          const text = await render(report, format, { width, colourLevel: 0 });
          expect(forbiddenIn(text.replaceAll('\n', ''))).toEqual([]);
          expect(text.endsWith('\n')).toBe(true);
          expect(text.endsWith('\n\n')).toBe(false);
        },
      ),
    );
  });
});

describe.each(['csv', 'markdown'] as const)('output as %s', (format) => {
  it('does not depend on the terminal', async () => {
    await fc.assert(
      fc.asyncProperty(hostileReport, async (report) => {
        const text = await render(report, format, PLAIN);
        expect(await render(report, format, { width: 20, colourLevel: 3 })).toBe(text);
      }),
    );
  });
});
