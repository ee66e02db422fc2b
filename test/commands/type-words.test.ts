/** One word for a type in all text: int4, int8 and f8, as `fit` serves them. */
import { describe, expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';

const SMALL = 'minimind/minimind2-small';
const PACKED = inPackage('fixtures/quantized/int4-f32.packed.safetensors');

/** Spellings that users give, and that no answer uses. The kinds of an optimizer have their own names. */
const OTHER_WORDS = /(?<![\w-])(?:i4|i8|fp8|f8_e4m3|float8|uint4|4bit|8bit)(?![\w])/i;

const LINES: readonly string[] = [
  ...['int8', 'int4', 'fp8', 'i4', 'i8', '8bit', 'f8_e4m3'].flatMap((type) => [
    `profile ${SMALL} --details --dtype ${type}`,
    `compare ${SMALL} gpt2/gpt2 --details --dtype ${type}`,
    `attention ${SMALL} --dtype ${type}`,
    `plan --max-params 26M --dtype ${type}`,
    `fit ${SMALL} --gpu h100 --for serving --details --dtype ${type}`,
  ]),
  ...['int8', 'int4', 'fp8'].flatMap((type) => [
    `profile mamba/mamba-130m --details --cache-dtype ${type}`,
    `fit ${SMALL} --gpu h100 --for serving --explain --cache-dtype ${type}`,
  ]),
  `fit ${SMALL} --gpu b200 --for serving --details --dtype nvfp4`,
  `fit ${SMALL} --gpu h100 --for serving --details --scale-dtype fp8 --dtype int4`,
  `inspect ${PACKED}`,
  `profile ${SMALL} --dtype wrong`,
  `fit ${SMALL} --gpu h100 --dtype inx4`,
  `fit ${SMALL} --gpu h100 --cache-dtype wrong`,
  ...['profile', 'fit', 'compare', 'convert-checkpoint', 'export', 'quick-test', 'plan'].map(
    (command) => `${command} --help`,
  ),
];

describe('the words for types', () => {
  it.each(LINES)('are those of fit: minimind %s', async (line) => {
    const { stdout, stderr } = await runHere(line.split(' '));
    // A suggestion repeats the line that was written, and an error the value.
    const own = `${stdout}\n${stderr}`
      // The way of training is called fp8 in every tool.
      .replace(/ --precision [\s\S]*?\n(?= +-)/, '')
      .split('\n')
      .map((text) => text.replace(/(?:minimind|found "|Next:|→ write) .*$/, ''));
    expect(own.join('\n').trim()).not.toBe('');
    expect(own.filter((text) => OTHER_WORDS.test(text))).toEqual([]);
  });

  it('name the types in the table of profile', async () => {
    const { stdout } = await runHere(['profile', SMALL, '--details']);
    const table = stdout.slice(stdout.indexOf('all weights in'));
    for (const type of ['f8', 'f8_e5m2', 'int8', 'int4']) {
      expect(table).toMatch(new RegExp(`^${type} +[\\d,]+ `, 'm'));
    }
  });

  it('leave the names of JSON', async () => {
    const { stdout } = await runHere(['profile', SMALL, '--json']);
    const types = JSON.parse(stdout).bytes.map(({ dtype }: { dtype: string }) => dtype);
    expect(types).toContain('f8_e4m3');
    expect(types).toContain('i4');
  });
});
