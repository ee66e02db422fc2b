import fs from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import {
  beginInputs,
  forgetInput,
  noteInput,
  noteOutput,
  refuseInput,
  refuseInputsIn,
} from '../../../src/base/files/input-registry.js';
import { Staging } from '../../../src/base/files/staging.js';
import { writeWhole } from '../../../src/base/files/write-whole.js';
import { folderOf } from '../../checkpoint/temp-folder.js';

const note = (file: string) => noteInput(file, fs.statSync(file, { bigint: true }));
const filled = (text: string) => (sink: { write(bytes: Uint8Array): Promise<void> }) =>
  sink.write(Buffer.from(text));

beforeEach(beginInputs);

describe('an input file', () => {
  it('is recognised by all its names, including the one it was opened by', () => {
    const folder = folderOf({ a: 'input' });
    const [a, b] = [path.join(folder, 'a'), path.join(folder, 'b')];
    note(a);
    fs.renameSync(a, b);
    fs.writeFileSync(a, 'another');
    expect(() => refuseInput(b)).toThrow(UserError);
    expect(() => refuseInput(b)).toThrow(`${a} is read, and would be replaced: ${b} leads`);
    expect(() => refuseInput(a)).toThrow(`${a} is read, and would be replaced`);
  });

  it('can be replaced by the next command, or once it is forgotten', () => {
    const [a, b] = [folderOf({ a: '' }), folderOf({ b: '' })].map((folder, index) =>
      path.join(folder, 'ab'.charAt(index)),
    ) as [string, string];
    note(a);
    note(b);
    forgetInput(a);
    refuseInput(a);
    expect(() => refuseInput(b)).toThrow('is read');
    beginInputs();
    refuseInput(b);
  });

  it('is not protected when it is a device', () => {
    note('/dev/null');
    refuseInput('/dev/null');
  });

  it('cannot be replaced by an output that is being written', async () => {
    const file = path.join(folderOf({ a: 'old' }), 'a');
    const attempt = writeWhole(file, true, async (sink) => {
      note(file);
      await sink.write(Buffer.from('new'));
    });
    await expect(attempt).rejects.toThrow(`${file} is read, and would be replaced`);
    expect(fs.readFileSync(file, 'utf8')).toBe('old');
    expect(fs.readdirSync(path.dirname(file))).toEqual(['a']);
  });

  it('is not replaced by a companion of an output', async () => {
    const folder = folderOf({ 'config.yaml': 'old' });
    note(path.join(folder, 'config.yaml'));
    const staging = await Staging.open(path.join(folder, 'out.safetensors'), {
      ...{ kind: 'file', force: true, resume: false, identity: '' },
    });
    await expect(staging.write('config.yaml', filled('new'))).rejects.toThrow('is read');
    await staging.discard();
    expect(fs.readFileSync(path.join(folder, 'config.yaml'), 'utf8')).toBe('old');
    expect(fs.readdirSync(folder)).toEqual(['config.yaml']);
  });

  it('is not removed with a folder that is replaced', () => {
    const folder = folderOf({ 'out/a': '', 'in/b': '', 'other/c': '' });
    fs.linkSync(path.join(folder, 'in/b'), path.join(folder, 'out/b'));
    const [out, other] = [path.join(folder, 'out'), path.join(folder, 'other')];
    note(path.join(folder, 'in/b'));
    expect(() => refuseInputsIn(out, out)).toThrow('is read');
    beginInputs();
    note(path.join(out, 'a'));
    expect(() => refuseInputsIn(out, out)).toThrow('is read');
    refuseInputsIn(other, other);
  });
});

describe('a new output file', () => {
  it('is not replaced by another output of the command', async () => {
    const file = path.join(folderOf({}), 'a');
    await writeWhole(file, true, filled('one'));
    await expect(writeWhole(file, true, filled('two'))).rejects.toThrow('was just written');
    beginInputs();
    await writeWhole(file, true, filled('two'));
    expect(fs.readFileSync(file, 'utf8')).toBe('two');
  });

  it('differs from a missing one', () => {
    const file = path.join(folderOf({}), 'a');
    noteOutput(file);
    refuseInput(file);
  });
});
