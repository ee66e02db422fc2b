/** Hostile texts of untrusted files, and reports with them. */
import fc from 'fast-check';
import type { Block, Cell, Report, Tone } from '../../src/report/kit/report.js';

const PIECES = [
  '\x1b[31m',
  '\x1b]0;title\x07',
  '\x9b2J',
  '\r',
  '\n',
  '\t',
  '\u202e',
  '\u200b',
  '\ud83d',
  '\u{e0041}',
  '|',
  '\\',
  '`',
  '``',
  '<script>',
  '&lt;',
  '*',
  '_',
  '__',
  '~~',
  '[a](b:c)',
  '![',
  '](',
  'https://evil.example',
  '=1+1',
  '-2',
  '@SUM(1)',
  '"',
  "'",
  ',',
  ';',
  ' ',
  '   ',
  '日本語',
  'e\u0301',
  '🇩🇪',
  '🙂',
  '❤️',
  '🫨',
  'क्षि',
  'word',
  'a-very-long-name-that-is-longer-than-twenty-columns',
] as const;

/** Text made of hostile pieces. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.array(fc.constantFrom(...PIECES), { maxLength: 12 }).map((pieces) => pieces.join('')),
  fc.string({ unit: 'binary', maxLength: 30 }),
);

const tone = fc.constantFrom<Tone>('plain', 'dim', 'strong', 'good', 'bad', 'warning');

/** Any text, any tone, and sometimes a value. */
const hostileCell: fc.Arbitrary<Cell> = fc.record(
  {
    text: hostileText,
    tone,
    value: fc.oneof(hostileText, fc.double(), fc.boolean()),
  },
  { requiredKeys: ['text'] },
);

const column = fc.record(
  {
    title: hostileText,
    key: hostileText,
    align: fc.constantFrom('left' as const, 'right' as const),
    wrap: fc.boolean(),
  },
  { requiredKeys: ['title', 'key'] },
);

const table: fc.Arbitrary<Block> = fc.integer({ min: 1, max: 5 }).chain((count) =>
  fc.record({
    kind: fc.constant('table' as const),
    columns: fc.array(column, { minLength: count, maxLength: count }),
    rows: fc.array(fc.array(hostileCell, { minLength: count, maxLength: count }), { maxLength: 4 }),
  }),
);

const words = fc.record(
  { kind: fc.constantFrom('heading' as const, 'note' as const), text: hostileText, tone },
  { requiredKeys: ['kind', 'text'] },
);

/** Reports in which every text is hostile. */
export const hostileReport: fc.Arbitrary<Report> = fc.record({
  blocks: fc.array(fc.oneof(table, words), { maxLength: 5 }),
});

/** Code points that must never reach a terminal, as ranges, independent of the implementation. */
export const FORBIDDEN: readonly (readonly [number, number])[] = [
  [0x00, 0x1f],
  [0x7f, 0x9f],
  [0x61c, 0x61c],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x2060],
  [0x2066, 0x2069],
  [0xd800, 0xdfff],
  [0xfeff, 0xfeff],
  [0xe0000, 0xe007f],
];

/** Characters of `text` that must never reach a terminal. */
export function forbiddenIn(text: string): string[] {
  return Array.from(text).filter((character) => {
    const point = character.codePointAt(0) ?? 0;
    return FORBIDDEN.some(([from, to]) => from <= point && point <= to);
  });
}
