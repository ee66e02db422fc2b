import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { browserCommand } from '../../src/cli/explore/open-browser.js';
import { readState } from '../../src/explorer/explorer-state.js';
import { onTestEnd } from '../cleanup.js';
import { inPackage } from '../fixtures.js';
import { runCli } from '../run-cli.js';
import { runHere } from '../run-here.js';

const work = () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'minimind-explore-'));
  onTestEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

const stateIn = (page: string) =>
  readState(JSON.parse(/id="state">(.*?)<\/script>/s.exec(page)?.[1] ?? ''));

describe('explore', () => {
  it('saves a page with the model, the settings and a static answer', async () => {
    const cwd = work();
    const words = ['explore', 'tiny', '--gpu', '8xA100', '--context', '128', '--dtype', 'q4_k_m'];
    const { code, stdout, stderr } = await runHere([...words, '--save', 'page.html'], { cwd });
    expect({ code, stdout: stdout.split('\n')[0] }).toEqual({ code: 0, stdout: 'Wrote page.html' });
    expect(stderr).toContain('a100-80gb');
    const page = readFileSync(path.join(cwd, 'page.html'), 'utf8');
    expect(stateIn(page)).toEqual({
      models: [{ name: 'hybrid/tiny', text: expect.stringContaining('num_layers: 2') }],
      edited: 0,
      setting: { gpu: 'a100-80gb', gpus: 8, context: 128, dtype: 'q4_k_m' },
    });
    expect(page).toMatch(/<noscript>.*Fits on 8 ×.*<\/noscript>/s);
    expect(page.length).toBeLessThan(1_300_000);
  });

  it('takes files, overrides, standard input and a second model', async () => {
    const cwd = work();
    writeFileSync(path.join(cwd, 'own.yaml'), 'model:\n  num_layers: 2 # blocks\n');
    const line =
      'explore own.yaml --set num_layers=3 --set model.num_heads=8 --against gpt2 --json';
    const { code, stdout } = await runHere([...line.split(' '), '--save', 'page.html'], { cwd });
    expect(code).toBe(0);
    const { bytes, ...answer } = JSON.parse(stdout);
    expect(answer).toEqual({
      schema: 'minimind/explore@1',
      model: 'own.yaml',
      against: 'gpt2/gpt2',
      file: 'page.html',
      url: null,
    });
    const page = readFileSync(path.join(cwd, 'page.html'));
    expect(page.length).toBe(bytes);
    expect(stateIn(page.toString())?.models[0]).toEqual({
      name: 'own.yaml',
      text: 'model:\n  num_layers: 3 # blocks\n  num_heads: 8\n',
    });
    const piped = runCli(['explore', '-', '--save', 'page.html', '--force'], {
      cwd,
      input: 'model: { x: 1 }',
    });
    expect(piped.code).toBe(0);
    const broken = readFileSync(path.join(cwd, 'page.html'), 'utf8');
    expect(stateIn(broken)?.models[0].text).toBe('model: { x: 1 }');
    expect(broken).toMatch(/<noscript>.*unknown key.*<\/noscript>/s);
  });

  it('escapes the model in the page', async () => {
    const cwd = work();
    const text = `model: # </script></noscript><script>alert(1)</script> %STATE% %ANSWER% $& \u2028\n  "<img src=x>": 1\n`;
    writeFileSync(path.join(cwd, 'x.yaml'), text);
    const written = await runHere(['explore', 'x.yaml', '-o', 'page.html'], { cwd });
    expect(written.code).toBe(0);
    // The page is in the file: a terminal has a line about it.
    expect(written.stdout).toMatch(/^Wrote page\.html/);
    expect(written.stdout).not.toContain('<');
    const page = readFileSync(path.join(cwd, 'page.html'), 'utf8');
    expect(page).not.toContain('<script>alert');
    expect(page).not.toContain('<img');
    expect(stateIn(page)?.models[0].text).toBe(text);
  });

  it.each([
    ['explore missing.yaml --save x.html', 'found no file "missing.yaml"'],
    ['explore tiny --save x.txt', '.html'],
    ['explore tiny --gpu h1oo --save x.html', 'h1oo'],
    ['explore tiny --set model.num_layer=x --save x.html', 'num_layers'],
    ['explore fixtures/hf/llama/model.safetensors -o x.html', 'expected a config'],
  ])('refuses %s', async (line, message) => {
    const { code, stderr } = await runHere(line.split(' '));
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  it('serves the page to this machine only, and only under its own address', async () => {
    const words = [inPackage('bin/run.js'), 'explore', 'tiny', '--no-open', '--json'];
    const child = spawn(process.execPath, words);
    onTestEnd(() => void child.kill('SIGKILL'));
    let text = '';
    await new Promise<void>((resolve) => {
      child.stdout.on('data', (chunk) => {
        text += chunk;
        if (text.trimEnd().endsWith('}')) resolve();
      });
    });
    const { url, file } = JSON.parse(text);
    expect({ url, file }).toEqual({
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/$/),
      file: null,
    });
    const port = Number(new URL(url).port);
    const ask = (method: string, route: string, host: string) =>
      new Promise<number>((resolve, reject) => {
        const request = http.request({
          port,
          host: '127.0.0.1',
          path: route,
          method,
          headers: { host },
        });
        request.on('response', (response) => resolve(response.resume().statusCode ?? 0));
        request.on('error', reject).end();
      });
    const own = `127.0.0.1:${port}`;
    expect(await ask('GET', '/', own)).toBe(200);
    expect(await ask('GET', '/', `localhost:${port}`)).toBe(200);
    expect(await ask('GET', '/', `evil.example:${port}`)).toBe(403);
    expect(await ask('GET', '/', '127.0.0.1')).toBe(403);
    expect(await ask('POST', '/', own)).toBe(405);
    expect(await ask('GET', '/package.json', own)).toBe(404);
    const ended = new Promise((resolve) =>
      child.on('exit', (code, signal) => resolve(signal ?? code)),
    );
    child.kill('SIGINT');
    // The system ends a program that has computed for less than a second; later, it says what it leaves.
    expect(['SIGINT', 130]).toContain(await ended);
  });
});

describe('browserCommand', () => {
  it('is the program of the system, if there is a screen', () => {
    expect(browserCommand('x', 'darwin', {})).toEqual(['open', 'x']);
    expect(browserCommand('x', 'win32', {})?.[0]).toBe('rundll32');
    expect(browserCommand('x', 'linux', { DISPLAY: ':0' })).toEqual(['xdg-open', 'x']);
    expect(browserCommand('x', 'linux', {})).toBeUndefined();
  });
});
