import { defineConfig } from 'vitest/config';

/** Modes of runs of their own, such as `npm run test:kill`. */
const ENVIRONMENTS: Readonly<Record<string, Record<string, string>>> = {
  kill: { MINIMIND_KILLS: '50' },
  fuzz: { MINIMIND_FUZZ: process.env.MINIMIND_FUZZ ?? '10000' },
  conversions: { MINIMIND_CONVERSIONS: 'all' },
};

/**
 * Folders whose tests only call functions, and change nothing that outlives a test. Their files share a process and its
 * modules, which takes a third less processor time than importing them for each file.
 */
const SHARED = [
  'architecture',
  'budget',
  'config',
  'data',
  'evaluation',
  'fit',
  'generation',
  'hardware',
  'linalg',
  'model-input',
  'modules',
  'plan',
  'quantization',
  'quicktest',
  'random',
  'reconcile',
  'report',
  'runtime',
  'tensor',
  'text',
  'tokenizer',
  'training',
]
  .map((folder) => `test/${folder}/**/*.test.ts`)
  // The others are about the memory of a process.
  .concat(
    'test/checkpoint/**/!(damage).test.ts',
    'test/conversion/!(every-output|refusals).test.ts',
    'test/conversion/{execute,legacy,srte}/**/*.test.ts',
  );

/** The built program of this checkout, whose own path may have a folder `dist` too. */
const BUILT = new RegExp(
  `^(?:file://)?${import.meta.dirname.replaceAll(/[^\w/-]/g, '\\$&')}/dist/`,
);

export default defineConfig(({ mode }) => ({
  test: {
    projects: [
      { extends: true, test: { name: 'shared', include: SHARED, isolate: false } },
      { extends: true, test: { name: 'own', include: ['test/**/*.test.ts'], exclude: SHARED } },
    ],
    environment: 'node',
    setupFiles: ['test/setup.ts'],
    // Whole-command tests start Node processes; on a busy two-core machine those take their time.
    testTimeout: 60_000,
    // Mostly they wait for such a process: on two cores one worker leaves one of them idle.
    maxWorkers: '100%',
    reporters: ['default'],
    // What is built runs as it is: test/run-here.ts.
    server: { deps: { external: [BUILT] } },
    env: ENVIRONMENTS[mode] ?? {},
    globalSetup: mode === 'fuzz' ? ['test/fuzz/pytorch.ts'] : [],
  },
}));
