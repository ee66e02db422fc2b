import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import { parsedElements } from '../report/pages/parsed.js';
import type { Run } from '../run-cli.js';
import { runHere } from '../run-here.js';

let folder = '';
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'pages-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

const inFolder = (name: string) => path.join(folder, name);
const run = (line: string, name?: string): Promise<Run> =>
  runHere([...line.split(' '), ...(name === undefined ? [] : ['-o', inFolder(name)])]);

it('writes a page with the command line and the JSON of the answer', async () => {
  const { code } = await run('profile minimind2-small --context 4k', 'profile.html');
  expect(code).toBe(0);
  const { elements } = parsedElements(fs.readFileSync(inFolder('profile.html'), 'utf8'));
  const text = (name: string) => elements.find((each) => each.name === name)?.text ?? '';
  expect(text('header')).toBe(
    `minimind profile minimind2-small --context 4k -o ${inFolder('profile.html')}`,
  );
  const data = elements.find(({ attributes }) => attributes.id === 'result')?.text ?? '';
  const { stdout } = await run('profile minimind2-small --context 4k --json');
  expect(JSON.parse(data)).toEqual(JSON.parse(stdout));
});

it('writes the main picture for .svg, and the same to standard output', async () => {
  expect((await run('rope minimind2-small', 'rope.svg')).code).toBe(0);
  const file = fs.readFileSync(inFolder('rope.svg'), 'utf8');
  expect(file).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"[^>]*>.*<\/svg>\n$/s);
  expect((await run('rope minimind2-small --format svg')).stdout).toBe(file);
});

it.each([
  ['list', 'list.svg', /has no picture.*list\.html/s],
  ['list', 'list.png', /has no picture.*list\.html/s],
  ['profile minimind2-small', 'profile.png', /rsvg-convert.*profile\.svg/s],
  [
    'quick-test hybrid/tiny --trace',
    'trace.svg',
    /with these flags.*has no picture.*--format html/s,
  ],
  ['profile minimind2-small', 'profile.docx', /expected a \.txt.*\.html.*\.svg file, found/s],
  ['profile minimind2-small --format csv', 'x.html', /is html, and the format is csv/],
])('refuses %s -o %s, which it cannot write', async (line, name, message) => {
  const { code, stderr } = await run(line, name);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
  expect(fs.existsSync(inFolder(name))).toBe(false);
});

it('refuses a picture before a long work that has none', async () => {
  const { code, stdout, stderr } = await run('quick-test hybrid/tiny', 'checks.svg');
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('the answer has no picture');
});

it('prints the answer of work that is done and has no picture', async () => {
  const model = inPackage('fixtures/minigpt/tiny-gqa/model.safetensors');
  const line = `convert-checkpoint ${model} ${inFolder('same.safetensors')} --dtype bf16`;
  const { code, stdout, stderr } = await run(line, 'none.svg');
  expect(code).toBe(2);
  expect(stderr).toContain('with these flags, the answer has no picture');
  expect(fs.existsSync(inFolder('same.safetensors'))).toBe(true);
  expect(stdout).toMatch(/same\.safetensors/);
  expect(fs.existsSync(inFolder('none.svg'))).toBe(false);
});

it('draws the errors of a GGUF by layer and tensor', async () => {
  const model = inPackage('fixtures/hf/llama');
  const line = `convert-checkpoint ${model} ${inFolder('q.gguf')} --dtype q8_0`;
  expect(await run(line, 'q.svg')).toMatchObject({ code: 0 });
  const picture = fs.readFileSync(inFolder('q.svg'), 'utf8');
  expect(picture).toContain('Relative error of the tensors in blocks by layer');
  for (const part of ['layer 1', 'attn_q', 'ffn_up']) expect(picture).toContain(part);
});

it('writes a page for the ending .htm in any case', async () => {
  expect((await run('list', 'LIST.HTM')).code).toBe(0);
  expect(fs.readFileSync(inFolder('LIST.HTM'), 'utf8')).toMatch(/^<!DOCTYPE html>/);
});
