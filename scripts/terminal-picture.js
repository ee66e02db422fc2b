// Draws docs/terminal.svg: the answer of a command as a terminal shows it, from what the built program prints. With --check
// it compares only.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const PICTURE = new URL('../docs/terminal.svg', import.meta.url);
const MODEL = 'Qwen3-8B';
const COMMAND = ['profile', MODEL];

/** What the command prints on a terminal with colours, in a folder that has the model. */
function answerOf(args) {
  const inRoot = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));
  const { NO_COLOR, ...env } = process.env;
  const cwd = mkdtempSync(path.join(tmpdir(), 'minimind-picture-'));
  try {
    cpSync(inRoot(`fixtures/hf-configs/${MODEL.toLowerCase()}`), path.join(cwd, MODEL), {
      recursive: true,
    });
    return execFileSync(process.execPath, [inRoot('bin/run.js'), ...args], {
      cwd,
      env: { ...env, FORCE_COLOR: '1' },
      encoding: 'utf8',
    });
  } finally {
    rmSync(cwd, { recursive: true });
  }
}

/** Sizes in pixels. A character of the font is 0.6 of its size wide. */
const FONT = 14;
const CHARACTER = 8.4;
const LINE = 19;
const PADDING = 18;
const BAR = 30;

/** SGR codes of the answers, as styles of the picture. Resets remove all. */
const STYLES = {
  1: 'font-weight="bold"',
  2: 'opacity="0.65"',
  31: 'fill="#ff7b72"',
  32: 'fill="#7ee787"',
  33: 'fill="#e3b341"',
  34: 'fill="#79c0ff"',
  35: 'fill="#d2a8ff"',
  36: 'fill="#56d4dd"',
};
const RESETS = { 0: Object.keys(STYLES), 22: ['1', '2'], 39: ['31', '32', '33', '34', '35', '36'] };

const escaped = (text) =>
  text.replace(/[&<>]/g, (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[character]);

/** Parts of a line with the codes that are on. An unknown code is an error: the picture would lack a style. */
function spans(line) {
  const on = new Set();
  const [first, ...rest] = line.split('\x1b[');
  const parts = [{ text: first, column: 0, styles: [] }];
  let column = first.length;
  for (const each of rest) {
    const [, codes, text] = /^([\d;]*)m(.*)$/.exec(each);
    for (const code of (codes || '0').split(';')) {
      if (RESETS[code]) for (const style of RESETS[code]) on.delete(style);
      else if (STYLES[code]) on.add(code);
      else throw new Error(`no style for the SGR code ${code}`);
    }
    parts.push({ text, column, styles: [...on].map((code) => STYLES[code]) });
    column += text.length;
  }
  return parts.filter(({ text }) => text.trim() !== '');
}

const lines = [
  `\x1b[32m$\x1b[39m minimind ${COMMAND.join(' ')}`,
  ...answerOf(COMMAND).trimEnd().split('\n'),
];
const length = Math.max(
  ...lines.flatMap((line) => spans(line).map(({ text, column }) => column + text.trimEnd().length)),
);
const width = Math.ceil(length * CHARACTER) + 2 * PADDING;
const height = BAR + lines.length * LINE + PADDING;

const texts = lines.flatMap((line, row) =>
  spans(line).map(({ text, column, styles }) => {
    const shown = text.trim();
    const x = PADDING + (column + text.indexOf(shown)) * CHARACTER;
    const attributes = [
      `x="${x.toFixed(1)}"`,
      `y="${BAR + (row + 0.75) * LINE}"`,
      // Each part keeps its columns in a font of another width.
      `textLength="${(shown.length * CHARACTER).toFixed(1)}" lengthAdjust="spacingAndGlyphs"`,
      ...styles,
    ];
    return `  <text ${attributes.join(' ')}>${escaped(shown)}</text>`;
  }),
);

const picture = `${[
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="minimind ${COMMAND.join(' ')} in a terminal">`,
  `<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>`,
  ...['#ff5f56', '#ffbd2e', '#27c93f'].map(
    (colour, index) => `<circle cx="${PADDING + index * 18}" cy="16" r="5.5" fill="${colour}"/>`,
  ),
  `<g fill="#e6edf3" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${FONT}" xml:space="preserve">`,
  ...texts,
  '</g>',
  '</svg>',
].join('\n')}\n`;

if (process.argv.includes('--check')) {
  if (readFileSync(PICTURE, 'utf8') !== picture) {
    console.error('docs/terminal.svg is not up to date: run npm run docs:picture');
    process.exitCode = 1;
  }
} else writeFileSync(PICTURE, picture);
