// Builds the page of `minimind explore`: one file with the program, its styles and the presets. The command writes the
// model into it.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { bundledPackages, licencesText } from './licences.js';

/** Places that the command fills in, as src/cli/explorer-page.ts names them. */
const STATE = '%STATE%';
const ANSWER = '%ANSWER%';

/**
 * @param root Folder of the package.
 * @param presets Pairs of the name and the text of a config.
 * @returns the text of the page, and the metafile of its bundle
 */
export async function explorerPage(root, presets) {
  const options = {
    absWorkingDir: root,
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    target: ['chrome111', 'firefox113', 'safari16.4'],
    tsconfig: path.join(root, 'tsconfig.explorer.json'),
    outdir: 'dist',
    charset: 'utf8',
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  };
  const entry = (name) => build({ ...options, entryPoints: [`src/explorer/page/${name}`] });
  const [main, loader] = [await entry('main.tsx'), await entry('load-program.ts')];
  const { metafile } = main;
  const text = document({
    loader: loader.outputFiles[0].text.trim(),
    program: main.outputFiles[0].text,
    styles: minified(readFileSync(path.join(root, 'src/explorer/page/page.css'), 'utf8')),
    licences: licencesText(bundledPackages(metafile, root)),
    presets,
  });
  return { text, metafile };
}

const minified = (css) => css.replace(/\s*\n\s*/g, '').replace(/\s*([{}:;,>])\s+/g, '$1');

const hashOf = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** JSON within a script element: no text in it can end the element. */
const embedded = (value) => JSON.stringify(value).replaceAll('<', '\\u003c');

/** Base64 of the gzip file of a text. */
const packed = (text) => gzipSync(text, { level: 9 }).toString('base64');

function document({ loader, program, styles, presets, licences }) {
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(loader)} ${hashOf(program)}`,
    `style-src ${hashOf(styles)}`,
    'worker-src blob:',
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>minimind explorer</title>
<link rel="icon" href="data:,">
<style>${styles}</style>
</head>
<body>
<div id="explorer"><main class="static"><h1>minimind explorer</h1><noscript>
<p>This page computes in the browser, so it needs JavaScript. It sends no request. Without JavaScript, it shows the answer about the model that it was made for:</p>
${ANSWER}</noscript></main></div>
<script type="application/json" id="licences">${embedded(licences)}</script>
<script type="application/gzip" id="presets">${packed(JSON.stringify(presets))}</script>
<script type="application/gzip" id="program">${packed(program)}</script>
<script type="application/json" id="state">${STATE}</script>
<script>${loader}</script>
</body>
</html>
`;
}
