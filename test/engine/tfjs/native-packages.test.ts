/** The native packages, as recorded from npm, have what the engine needs of them. */
import util from 'node:util';
import { describe, expect, it } from 'vitest';
import { setting } from '../../../src/base/text/setting.js';
import { RELEASES } from '../../../src/engine/package-releases.js';
import { LEGACY_FUNCTIONS, nativeSuggestion } from '../../../src/engine/tfjs/backends.js';
import * as operations from '../../../src/engine/tfjs/operations.js';
import { readJson } from '../../fixtures.js';
import { type NativePackage, SURFACE } from './native-surface.js';

const NAMES = Object.keys(SURFACE) as NativePackage[];

describe.each(NAMES)('%s', (name) => {
  const surface = SURFACE[name];

  it('is of the release that is suggested', () => {
    const { devDependencies } = readJson<{ devDependencies: Record<string, string> }>(
      'package.json',
    );
    expect(surface.version).toBe(RELEASES[name]);
    // It exports the same library as the bundled part, whose types the engine uses.
    expect(surface.library).toEqual({
      '@tensorflow/tfjs': devDependencies['@tensorflow/tfjs-core'],
    });
    expect(surface.typings).toContain("export * from '@tensorflow/tfjs';");
  });

  it('exports each function that the engine calls', () => {
    const used = Object.keys(operations);
    expect(used.length).toBeGreaterThan(60);
    expect(surface.functions).toEqual(expect.arrayContaining(used));
  });

  it('has the backend that the engine starts, which says whether it uses a card', () => {
    expect(surface.backend).toBe('tensorflow');
    expect(surface.backendTypings).toContain('isUsingGpuDevice: boolean;');
  });

  it('calls no other functions of an old Node than those that are supplied', () => {
    expect(surface.functionsOfUtil).toEqual(Object.keys(LEGACY_FUNCTIONS));
  });
});

it('the supplied functions of an old Node are right', () => {
  const { isArray, isNullOrUndefined } = LEGACY_FUNCTIONS;
  expect([[], 'x', null].map((value) => isArray(value))).toEqual([true, false, false]);
  expect([null, undefined, 0, ''].map(isNullOrUndefined)).toEqual([true, true, false, false]);
});

it('a started native package finds them', async () => {
  const { openTfjs } = await import('../../../src/engine/tfjs/tfjs-engine.js');
  const { isArray, isNullOrUndefined } = util as typeof LEGACY_FUNCTIONS;
  const load = () => {
    expect(util).toMatchObject(LEGACY_FUNCTIONS);
    throw new Error('reached');
  };
  try {
    const packages = {
      load: (name: string) => (name === 'manifest' ? { version: '4.22.0' } : load()),
      locate: () => 'manifest',
    };
    const opened = openTfjs({ threads: 1, backend: 'node' }, packages);
    await expect(opened).rejects.toThrow('reached');
  } finally {
    Object.assign(util, { isArray, isNullOrUndefined });
  }
});

it.each([
  ['20.19.0', undefined],
  ['22.23.5', undefined],
  [
    '24.1.0',
    `use ${setting('engine', 'onnx')}, or Node 22: @tensorflow/tfjs-node@4.22.0 is not made for Node 24.1.0`,
  ],
])('what is suggested on Node %s', (node, suggestion) => {
  expect(nativeSuggestion('@tensorflow/tfjs-node', node)).toBe(suggestion);
});
