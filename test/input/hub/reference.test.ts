import { describe, expect, it } from 'vitest';
import { isRepositoryPath, parseHubReference } from '../../../src/input/hub/reference.js';

describe('parseHubReference', () => {
  it.each([
    ['hf:Qwen/Qwen3-8B', 'Qwen/Qwen3-8B', undefined, undefined, 'hf:Qwen/Qwen3-8B'],
    ['hf:gpt2', 'gpt2', undefined, undefined, 'hf:gpt2'],
    ['hf:a/b@v1.0', 'a/b', 'v1.0', undefined, 'hf:a/b@v1.0'],
    ['hf:a/b@refs/pr/3', 'a/b', 'refs/pr/3', undefined, 'hf:a/b@refs/pr/3'],
    ['hf:a/b:x.gguf', 'a/b', undefined, 'x.gguf', 'hf:a/b:/x.gguf'],
    ['hf:a/b/config.json', 'a/b', undefined, 'config.json', 'hf:a/b:/config.json'],
    ['hf:a/b@main:sub/x.gguf', 'a/b', 'main', 'sub/x.gguf', 'hf:a/b@main:/sub/x.gguf'],
    ['hf:a/b@main:/sub/x.gguf', 'a/b', 'main', 'sub/x.gguf', 'hf:a/b@main:/sub/x.gguf'],
  ])('reads %s', (text, repository, revision, file, path) => {
    expect(parseHubReference(text)).toMatchObject({ repository, revision, file, path });
  });

  it('reads the paths that it wrote', () => {
    const once = parseHubReference('hf:a/b@main:sub/x.gguf');
    expect(parseHubReference(once.path)).toEqual(once);
  });

  it.each([
    'hf:',
    'hf:/',
    'hf:a/',
    'hf:a/../b',
    'hf:a/b--c',
    'hf:a b/c',
    'hf:a/b@',
    'hf:a/b@..',
    'hf:a/b@x y',
    'hf:a/b:',
    'hf:a/b:../x',
    'hf:a/b:C:/x',
    'hf:a/b:x\\y',
    'hf:a/b:x\0',
    'hf:datasets/a/b',
    'hf:a/b/c@main',
  ])('refuses %j', (text) => {
    expect(() => parseHubReference(text)).toThrow(/^expected hf:ORG\/NAME\[@REVISION\]\[:FILE\]/);
  });
});

it.each(['', '.', '../x', '/etc/passwd', 'a//b', 'a/./b', 'C:/x', 'c:x', 'a\\b', 'a\0b', 'a\nb'])(
  '%j is not a path of a repository',
  (name) => {
    expect(isRepositoryPath(name)).toBe(false);
  },
);
