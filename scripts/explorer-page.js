// Builds the page of `minimind explore`: one file with the program, its styles and the presets. The command writes the
// model into it.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
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
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['src/explorer/page/main.tsx'],
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
    ...TEMPORARY,
  });
  const program = outputFiles[0].text.trim();
  const styles = minified(readFileSync(path.join(root, 'src/explorer/page/page.css'), 'utf8'));
  const licences = licencesText(bundledPackages(metafile, root));
  return { text: document({ program, styles, presets, licences }), metafile };
}

const minified = (css) => css.replace(/\s*\n\s*/g, '').replace(/\s*([{}:;,>])\s+/g, '$1');

const hashOf = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

// TEMPORARY: until the use cases are free of Node.
const TEMPORARY = {
  define: { 'import.meta.url': '"file:///x/"' },
  external: ['onnxruntime-node', 'webgpu'],
  banner: {
    js: 'globalThis.process??={env:{},platform:"linux",argv:[],version:"",versions:{},stdin:{},stdout:{},stderr:{},cwd:()=>"",on(){},once(){}};globalThis.Buffer??={byteLength:s=>new TextEncoder().encode(s).length};',
  },
  plugins: [
    {
      name: 'stubs',
      setup(b) {
        b.onResolve({ filter: /^node:/ }, (a) => ({ path: a.path, namespace: 'stub' }));
        b.onLoad({ filter: /.*/, namespace: 'stub' }, () => ({
          contents: 'module.exports = new Proxy({}, {get:()=>()=>undefined})',
        }));
        b.onResolve({ filter: /^@oclif\/core/ }, (a) => ({ path: a.path, namespace: 'oclif' }));
        b.onLoad({ filter: /.*/, namespace: 'oclif' }, () => ({
          contents:
            'const f=(o)=>Object.assign((p)=>Object.assign((q)=>({...o,...p,...q}),o,p),o); export const custom=f,option=f,string=(o)=>o,boolean=(o)=>o,integer=(o)=>o,file=(o)=>o;',
        }));
      },
    },
  ],
};

/** JSON within a script element: no text in it can end the element. */
const embedded = (value) => JSON.stringify(value).replaceAll('<', '\\u003c');

function document({ program, styles, presets, licences }) {
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(program)}`,
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
<div id="explorer"><noscript><main class="static"><h1>minimind explorer</h1>
<p>This page computes in the browser, so it needs JavaScript. It sends no request. Without JavaScript, it shows the answer about the model that it was made for:</p>
${ANSWER}</main></noscript></div>
<script type="application/json" id="licences">${embedded(licences)}</script>
<script type="application/json" id="presets">${embedded(presets)}</script>
<script type="application/json" id="state">${STATE}</script>
<script id="program">${program}</script>
</body>
</html>
`;
}
