/** Conversions in parts on the command line: the steps, and the files of a single run. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';
import { hashes } from '../scale/conversions/parts.js';

const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const at = (name: string) => path.join(folder, name);
const convert = (...args: string[]) => runHere(['convert-checkpoint', ...args]);
const work = (...args: string[]) => convert('--plan', at('plan.json'), ...args);
const ROOM = ['--shard-size', '30kB', '--max-memory', '4GB'];

describe('convert-checkpoint --parts', () => {
  it('merges an adapter like a single run, and refuses a changed one', async () => {
    const adapter = at('adapter');
    fs.cpSync('fixtures/lora/llama-patterns', adapter, { recursive: true });
    const flags = ['fixtures/hf/llama', '--merge-lora', adapter, '--dtype', 'bf16', ...ROOM];
    expect((await convert(...flags, at('single'))).code).toBe(0);
    const planned = await convert(...flags, at('out'), '--parts', '2', '--plan', at('plan.json'));
    expect(planned.stdout).toMatch(/^Plan for .*out in 2 parts: nothing was converted\n/);
    expect((await work('--part', '2')).stdout).toMatch(/^Part 2 is done\n/);
    const early = await work('--finish');
    expect(early.code).toBe(1);
    expect(early.stdout).toMatch(/^Not finished: 1 of 2 parts done; missing: --array=1\n/);
    const config = path.join(adapter, 'adapter_config.json');
    const text = fs.readFileSync(config, 'utf8');
    fs.writeFileSync(config, `${text} `);
    const other = await work('--part', '1');
    expect(other.code).toBe(2);
    expect(other.stderr).toContain('other tensors than when it was planned');
    fs.writeFileSync(config, text);
    expect((await work('--part', '1')).stdout).toMatch(/^Part 1 is done\n/);
    expect((await work('--status')).stdout).toMatch(/^2 of 2 parts done: --finish is next\n/);
    const end = await work('--finish', '--check');
    expect({ code: end.code, stderr: end.stderr }).toEqual({ code: 0, stderr: '' });
    expect(end.stdout).toMatch(/^Converted to .*out/);
    expect(hashes(at('out'))).toEqual(hashes(at('single')));
    const again = await work('--finish');
    expect(again).toMatchObject({ code: 0, stdout: expect.stringMatching(/^.*out is complete\n/) });
  });

  it('prints only the job', async () => {
    const { stdout, code } = await work('--launch', 'parallel');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^#!\/bin\/bash\n/);
    expect(stdout).toContain('--part 2\nEND_OF_PARTS\n');
  });

  it.each([
    [['--part', '3'], '--part 3: expected 1 to 2, the parts of'],
    [['--part', '0'], '--part: expected a number from 1 or auto, found "0"'],
    [['--part', '1', '--dtype', 'bf16'], '--dtype has no effect with --part'],
    [['--part', 'auto'], '--part auto: expected a task of a job'],
    [['--launch', 'kubernetes'], '--launch kubernetes requires --image'],
    [[], '--plan: expected also one of --parts, --part'],
  ])('refuses %j', async (flags, message) => {
    const { code, stderr } = await work(...flags);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
  });
});
