import { readdirSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

/** Modes of runs of their own, such as `npm run test:kill`. */
const ENVIRONMENTS: Readonly<Record<string, Record<string, string>>> = {
  kill: { MINIMIND_KILLS: '50', MINIMIND_SWEEPS: 'all' },
  sweeps: { MINIMIND_SWEEPS: 'all' },
  fuzz: { MINIMIND_FUZZ: process.env.MINIMIND_FUZZ ?? '10000' },
  browser: { MINIMIND_BROWSER: 'all' },
  mutants: { MINIMIND_SOURCES: 'all' },
  conversions: { MINIMIND_CONVERSIONS: 'all', MINIMIND_SWEEPS: 'all' },
};

/**
 * Tests whose files have a process each. They change what outlives a test, measure the memory of their process, or start
 * so many processes that one of their own is nothing beside it. The others share a process and its modules, which takes
 * a third less processor time than importing them for each file.
 */
const OWN = [
  'adding-{a-layer,a-model,parts}',
  'boundaries',
  'package',
  'schemas',
  'checkpoint/damage',
  'commands/{convert-checkpoint,convert-parts,hub,process}',
  'convert/conversion/refusals',
  'scale/conversions/*',
  'base/files/*',
  'fuzz/*',
  'input/hub/hub-client',
  'kill/*',
].map((name) => `test/${name}.test.ts`);

/** Tests whose cases are the same in `npm run test:sweeps`, which leaves them out. */
const excludedIn = (mode: string) =>
  mode === 'sweeps'
    ? readdirSync('test', { recursive: true, encoding: 'utf8' })
        .map((name) => `test/${name.replaceAll('\\', '/')}`)
        .filter((name) => name.endsWith('.test.ts'))
        .filter((name) => !readFileSync(name, 'utf8').includes("/sampled.js'"))
    : [];

/** The modules of yaml that the build bundles (scripts/build.js). */
const YAML = `${import.meta.dirname}/node_modules/yaml/browser/index.js`;

/** The built program of this checkout, whose own path may have a folder `dist` too. */
const BUILT = new RegExp(
  `^(?:file://)?${import.meta.dirname.replaceAll(/[^\w/-]/g, '\\$&')}/dist/`,
);

/**
 * Changes one source file while it is loaded, for test/mutants/run.js. The file itself stays as it is, and so does `dist/`.
 */
function mutantPlugin() {
  return {
    name: 'mutant',
    enforce: 'pre' as const,
    transform(code: string, id: string) {
      // It changes from one run of the tests to the next.
      const { file, start, end, before, after } = JSON.parse(process.env.MINIMIND_MUTANT ?? '{}');
      if (id.split('?')[0] !== file) return;
      if (code.slice(start, end) !== before) throw new Error(`${file} has changed`);
      return { code: code.slice(0, start) + after + code.slice(end), map: null };
    },
  };
}

/** Takes TensorFlow.js out of the build, to test what users get: `npm run test:bundled`. */
function bundledPlugin() {
  const chunks = `${import.meta.dirname}/dist/chunks`;
  return {
    name: 'bundled',
    enforce: 'pre' as const,
    resolveId(id: string) {
      if (!id.endsWith('/portable.js')) return;
      const name = readdirSync(chunks).find((each) => each.startsWith('portable-'));
      if (name === undefined) throw new Error(`${chunks} has no TensorFlow.js: run npm run build`);
      return { id: `${chunks}/${name}`, external: true };
    },
  };
}

/** Projects do not inherit plugins. */
function pluginsIn(mode: string) {
  if (mode === 'bundled') return [bundledPlugin()];
  return mode === 'mutants' ? [mutantPlugin()] : [];
}

export default defineConfig(({ mode }) => ({
  test: {
    projects: [
      {
        extends: true,
        plugins: pluginsIn(mode),
        test: { name: 'own', include: OWN, exclude: excludedIn(mode) },
      },
      {
        extends: true,
        plugins: pluginsIn(mode),
        test: {
          name: 'shared',
          include: ['test/**/*.test.ts'],
          exclude: [...OWN, ...excludedIn(mode)],
          isolate: false,
        },
      },
    ],
    // For Node, yaml has CommonJS only, whose parser asks the environment at each lexeme; the build bundles these modules.
    alias: { yaml: YAML },
    environment: 'node',
    setupFiles: ['test/setup.ts'],
    // Whole-command tests start Node processes; on a busy two-core machine those take their time.
    // Runs of their own have hundreds of cases in a test.
    testTimeout: mode in ENVIRONMENTS ? 600_000 : 60_000,
    // Mostly they wait for such a process: on two cores one worker leaves one of them idle.
    maxWorkers: '100%',
    reporters: ['default'],
    // What is built runs as it is: test/run-here.ts.
    server: { deps: { external: [BUILT] } },
    env: ENVIRONMENTS[mode] ?? {},
    globalSetup: ['test/fresh-build.ts', ...(mode === 'fuzz' ? ['test/fuzz/pytorch.ts'] : [])],
  },
}));
