import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { proxyFor } from '../../../src/input/hub/http-client.js';
import { hubSettings } from '../../../src/input/hub/hub-settings.js';
import { temporaryFolder } from './support.js';

const settings = (env: Record<string, string>, home = '/home/user') => hubSettings({}, env, home);

describe('hubSettings', () => {
  it('has the defaults of huggingface_hub', () => {
    expect(settings({})).toMatchObject({
      endpoint: 'https://huggingface.co',
      token: undefined,
      isOffline: false,
      timeout: 10_000,
    });
    expect(settings({}).userCache).toBe(path.join('/home/user', '.cache', 'huggingface', 'hub'));
    expect(settings({ HF_HOME: '/hf' }).userCache).toBe(path.join('/hf', 'hub'));
    expect(settings({ XDG_CACHE_HOME: '/c' }).userCache).toBe(
      path.join('/c', 'huggingface', 'hub'),
    );
    expect(settings({ HF_HOME: '/hf', HF_HUB_CACHE: '/hub' }).userCache).toBe('/hub');
  });

  it.each(['HF_HUB_OFFLINE', 'TRANSFORMERS_OFFLINE'])('is offline with %s', (name) => {
    expect(settings({ [name]: 'yes' }).isOffline).toBe(true);
    expect(settings({ [name]: '0' }).isOffline).toBe(false);
  });

  it('prefers the token of the environment to that of the file', () => {
    const home = temporaryFolder();
    fs.writeFileSync(path.join(home, 'token'), 'of-file\n');
    expect(settings({ HF_HOME: home }).token).toBe('of-file');
    expect(settings({ HF_HOME: home, HF_TOKEN: ' of-env ' }).token).toBe('of-env');
    expect(settings({ HF_TOKEN_PATH: path.join(home, 'token') }).token).toBe('of-file');
    expect(settings({ HF_TOKEN: 'x', HF_HUB_DISABLE_IMPLICIT_TOKEN: '1' }).token).toBeUndefined();
  });

  it('has no token for an address without encryption, except on this machine', () => {
    expect(settings({ HF_TOKEN: 'x', HF_ENDPOINT: 'http://mirror.example/' })).toMatchObject({
      endpoint: 'http://mirror.example',
      token: undefined,
    });
    expect(settings({ HF_TOKEN: 'x', HF_ENDPOINT: 'http://127.0.0.1:8080//' })).toMatchObject({
      endpoint: 'http://127.0.0.1:8080',
      token: 'x',
    });
  });

  it.each(['ftp://x', 'huggingface.co', 'https://user:password@x', 'https://x/?q'])(
    'refuses the endpoint %s',
    (HF_ENDPOINT) => {
      expect(() => settings({ HF_ENDPOINT })).toThrow('HF_ENDPOINT: expected an address');
    },
  );

  it('refuses a token with control characters', () => {
    expect(() => settings({ HF_TOKEN: 'a\r\nHost: b' })).toThrow(
      'the token for the hub has invalid characters',
    );
  });

  it('has a separate cache for each hub', () => {
    const [own, mirror] = ['https://huggingface.co', 'https://mirror.example/hf'].map(
      (HF_ENDPOINT) => settings({ HF_ENDPOINT }).headerCache,
    );
    expect(path.basename(own ?? '')).toBe('huggingface.co');
    expect(path.basename(mirror ?? '')).toBe('mirror.example%2Fhf');
    const addresses = ['://a.example', '://a.example/b', '://a.example/b_c', '://a.example/b/c'];
    const folders = ['http', 'https'].flatMap((scheme) =>
      addresses.map((rest) => settings({ HF_ENDPOINT: `${scheme}${rest}` }).headerCache),
    );
    expect(new Set(folders).size).toBe(8);
  });
});

describe('proxyFor', () => {
  const proxy = (address: string, env: Record<string, string>) =>
    proxyFor(new URL(address), settings(env).proxies)?.href;

  it('reads the same variables as curl', () => {
    const env = { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: 'inside.example, .other.example' };
    expect(proxy('https://huggingface.co', env)).toBe('http://proxy:3128/');
    expect(proxy('https://huggingface.co', { https_proxy: 'proxy:1' })).toBe('http://proxy:1/');
    expect(proxy('https://huggingface.co', { ALL_PROXY: 'proxy:2' })).toBe('http://proxy:2/');
    expect(proxy('https://hub.inside.example', env)).toBeUndefined();
    expect(proxy('https://hub.other.example', env)).toBeUndefined();
    expect(proxy('https://notinside.example', env)).toBe('http://proxy:3128/');
    expect(proxy('http://127.0.0.1:80', { HTTP_PROXY: 'http://proxy:3128' })).toBeUndefined();
  });

  it('refuses other kinds of proxies, without their passwords', () => {
    expect(() => proxy('https://huggingface.co', { HTTPS_PROXY: 'socks5://me:secret@x' })).toThrow(
      /^HTTPS_PROXY: expected the address of an HTTP proxy, found one of the kind "socks5:"$/,
    );
  });
});
