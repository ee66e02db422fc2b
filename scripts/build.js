// Bundles src into dist, writes the declarations of the library, the licences of what is bundled, the bill
// of materials, the families with their counts, oclif.manifest.json, with which a command starts without loading the
// others, and the man pages.
// docs/decisions/0004-bundle.md says why.
import { execFileSync } from 'node:child_process';
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { explorerPage } from './explorer-page.js';
import { bundledPackages, licencesText } from './licences.js';
import { presetModule, publishedJson } from './presets.js';
import { billOfMaterials } from './sbom.js';
import { sourceHash, writeBuiltHash } from './source-hash.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const inRoot = (...parts) => path.join(root, ...parts);
const require = createRequire(import.meta.url);

/** Entries in `exports` of package.json. tsconfig.build.json lists them too. */
const LIBRARY = ['src/index.ts', 'src/model/modules/index.ts', 'src/base/random/index.ts'];

/** The entry that runs in browsers, built apart: nothing in it may need Node. */
const BROWSER = 'src/browser.ts';

/** Modules that bin/run.js loads. */
const PROGRAM = ['src/base/files/cache-folder.ts', 'src/cli/main.ts'];

/** Counts the presets for families.json, and lists their texts for the page of `explore`. */
const COUNTING = ['src/cli/count-families.ts', 'src/cli/explore/explorer-presets.ts'];

/** Threads and processes of their own, started by path. */
const THREADS = [
  'src/language/tokenizer/template-process.ts',
  'src/language/tokenizer/encoder-thread.ts',
  'src/language/data/files/parquet-process.ts',
  'src/input/hub/data-worker.ts',
  'src/base/files/end-thread.ts',
];

/** Packages that the command library loads only to run from TypeScript sources, where it finds them. */
const NEVER_NEEDED = ['typescript', 'tsx', 'ts-node'];

/**
 * Globs of plugins, configs of other tools, detection of WSL, templates of the library's own help, the layout of its own
 * errors: of these, minimind calls nothing.
 */
const NEVER_CALLED = ['ejs', 'lilconfig', 'minimatch', 'tinyglobby', 'wrap-ansi', 'wsl-utils'];

/** Modules of the command library, and the lighter ones of it that do what minimind uses of them. */
const LIGHTER_MODULES = {
  // minimind has its own progress display: of the spinner, only its base class is called.
  'ux/action/spinner': 'ux/action/simple.js',
  // minimind writes its own help. What is left is how help flags are called.
  help: 'help/util.js',
  'help/index': 'help/util.js',
};

/** Loaded by TensorFlow.js for threads in a browser, or without the `fetch` and the random numbers of Node. */
const NEVER_CALLED_BY_TENSORFLOW = [
  'node-fetch',
  'seedrandom',
  '../wasm-out/tfjs-backend-wasm-threaded-simd(?:[.]worker)?[.]js',
];

/** The file that TensorFlow.js reads when its WebAssembly backend starts: src/engine/tfjs/portable.ts. */
const WASM_MODULE = 'tfjs-backend-wasm-simd.wasm';

/** Puts lighter modules in the place of packages, because every command reads and runs them when it starts. */
const replacements = {
  name: 'replacements',
  setup(build) {
    const replace = (names, resolve) =>
      build.onResolve({ filter: new RegExp(`^(${names.join('|')})$`) }, ({ importer }) => ({
        path: resolve(importer),
      }));
    const unused = [...NEVER_CALLED, ...NEVER_CALLED_BY_TENSORFLOW];
    replace(unused, () => inRoot('scripts/bundled/never-called.cjs'));
    replace(['debug'], () => inRoot('scripts/bundled/no-log.cjs'));
    const library = inRoot('node_modules/@oclif/core/lib');
    build.onResolve({ filter: /^\./ }, ({ path: name, resolveDir }) => {
      if (!resolveDir.startsWith(library)) return undefined;
      const lighter = LIGHTER_MODULES[path.relative(library, path.join(resolveDir, name))];
      return lighter && { path: path.join(library, lighter) };
    });
    const width = inRoot('scripts/bundled/string-width.cjs');
    replace(['string-width'], (importer) =>
      importer === width ? require.resolve('string-width') : width,
    );
    // For Node it has CommonJS only, which is bundled whole. This is the same code as ES modules.
    replace(['yaml'], () => inRoot('node_modules/yaml/browser/index.js'));
    // As ES modules, from which only the used functions are taken.
    build.onResolve({ filter: /^@tensorflow\/tfjs-(?:core|backend-\w+)$/ }, ({ path: name }) => ({
      path: inRoot('node_modules', name, 'dist/index.js'),
    }));
  },
};

/** Takes the presets from their files, whether or not the module in src is up to date. */
const presets = {
  name: 'presets',
  setup(build) {
    build.onLoad({ filter: /[\\/]preset-data\.ts$/ }, () => ({
      contents: presetModule(),
      loader: 'ts',
    }));
  },
};

/** Options of both bundles. */
const common = {
  absWorkingDir: root,
  outbase: 'src',
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  // THIRD-PARTY-LICENSES.txt has the whole texts.
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
};

async function bundle() {
  const commands = readdirSync(inRoot('src/commands'), { recursive: true })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => `src/commands/${file.replaceAll(path.sep, '/')}`);
  const { metafile } = await build({
    ...common,
    entryPoints: [...LIBRARY, ...PROGRAM, ...THREADS, ...COUNTING, ...commands],
    outdir: 'dist',
    platform: 'node',
    target: 'node20.19',
    external: NEVER_NEEDED,
    plugins: [replacements, presets],
    // The bundled CommonJS modules expect these, and `require`.
    define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' },
  });
  defineRequire(metafile);
  return metafile;
}

/** Defines `require` in the file of the helper that calls it for bundled CommonJS modules; no other file needs it. */
function defineRequire({ outputs }) {
  for (const file of Object.keys(outputs).map((name) => inRoot(name))) {
    const code = readFileSync(file, 'utf8');
    if (!code.includes('typeof require')) continue;
    const line =
      "import{createRequire}from'node:module';const require=createRequire(import.meta.url);";
    writeFileSync(file, `${line}\n${code}`);
  }
}

/**
 * Builds the entry for browsers. Its modules have no `node:`, or this fails. The modules that it exports are entries too:
 * so it has no code of its own, and who bundles one function takes nothing of the others.
 */
async function browserBundle() {
  const exported = readFileSync(inRoot(BROWSER), 'utf8').matchAll(
    /^export (?!type )[^;]*? from '\.\/(.+?)\.js';/gm,
  );
  const { metafile } = await build({
    ...common,
    entryPoints: [BROWSER, ...new Set([...exported].map(([, name]) => `src/${name}.ts`))],
    outdir: 'dist/browser',
    platform: 'browser',
    target: 'es2023',
    plugins: [replacements, presets],
  });
  return metafile;
}

/**
 * Writes the declarations that those of the library import; the compiler also writes those of what its functions call.
 * A `Buffer` is declared as the array that it is, so that users need no types of Node.
 */
function declarations() {
  const tsc = inRoot('node_modules/typescript-7/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  });
  const kept = new Set();
  const keep = (file) => {
    if (kept.has(file)) return;
    kept.add(file);
    const text = readFileSync(file, 'utf8');
    const plain = text.replace(/(?<=[:<|] ?)Buffer\b(?:<\w+>)?/g, 'Uint8Array');
    if (plain !== text) writeFileSync(file, plain);
    for (const [, name] of text.matchAll(/(?:from |import\()['"](\.[^'"]+)\.js['"]/g))
      keep(path.join(path.dirname(file), `${name}.d.ts`));
  };
  for (const entry of [...LIBRARY, BROWSER])
    keep(inRoot(entry.replace(/^src(.+)\.ts$/, 'dist$1.d.ts')));
  for (const name of readdirSync(inRoot('dist'), { recursive: true })) {
    const file = inRoot('dist', name);
    if (name.endsWith('.d.ts') && !kept.has(file)) rmSync(file);
  }
}

async function families() {
  const { countFamilies } = await import('../dist/cli/count-families.js');
  return countFamilies();
}

async function explorer() {
  const { presetTexts } = await import('../dist/cli/explore/explorer-presets.js');
  return explorerPage(root, presetTexts());
}

// Before the sources are read: a later change makes the build stale.
const hash = sourceHash();
rmSync(inRoot('dist'), { recursive: true, force: true });
rmSync(inRoot('oclif.manifest.json'), { force: true });
const metafile = await bundle();
const forBrowsers = await browserBundle();
const page = await explorer();
writeFileSync(inRoot('dist/explorer.html'), page.text);
const all = [metafile, forBrowsers, page.metafile].map(({ outputs }) => outputs);
const bundled = bundledPackages({ outputs: Object.assign({}, ...all) }, root);
writeFileSync(inRoot('dist/THIRD-PARTY-LICENSES.txt'), licencesText(bundled));
const titles = bundled.map(({ name, version }) => `${name}@${version}`);
writeFileSync(inRoot('dist/sbom.cdx.json'), billOfMaterials(root, titles));
copyFileSync(
  inRoot('node_modules/@tensorflow/tfjs-backend-wasm/dist', WASM_MODULE),
  inRoot('dist', WASM_MODULE),
);
declarations();
copyFileSync(
  path.join(path.dirname(require.resolve('jq-wasm')), 'build/jq.wasm'),
  inRoot('dist/jq.wasm'),
);
writeFileSync(inRoot('dist/published.json'), publishedJson());
writeFileSync(inRoot('dist/families.json'), JSON.stringify(await families()));
for (const script of ['manifest.js', 'man-pages.js']) {
  execFileSync(process.execPath, [inRoot('scripts', script)], { stdio: 'inherit' });
}
writeBuiltHash(hash);
