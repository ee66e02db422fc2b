import { afterEach, describe, expect, it } from 'vitest';
import {
  commandText,
  nextCommand,
  PLAIN_SPELLING,
  setting,
  settingWords,
  useSpelling,
  withoutSettings,
} from '../../../src/base/text/setting.js';
import { spellAsFlags } from '../../../src/cli/flag-spelling.js';

// Other files of this process read texts of the command line.
afterEach(() => spellAsFlags());

describe('a setting in a text', () => {
  it('is its plain name where nothing spells it, as in the library', () => {
    useSpelling(PLAIN_SPELLING);
    expect(setting('maxPositions')).toBe('maxPositions');
    expect(setting('maxPositions', '32k')).toBe('maxPositions: 32k');
    expect(settingWords('rank', 4)).toEqual(['rank: 4']);
    expect(commandText('convertCheckpoint', ['in.pt', 'out'])).toBe('convertCheckpoint in.pt out');
    expect(withoutSettings(['a', 'gpu: h100', 'gpus: 2'], ['gpu'])).toEqual(['a', 'gpus: 2']);
  });

  it('is a flag in the command line', () => {
    spellAsFlags();
    expect(setting('maxPositions')).toBe('--max-positions');
    expect(setting('maxPositions', '32k')).toBe('--max-positions 32k');
    expect(settingWords('rank', 4)).toEqual(['--rank', '4']);
  });

  it('has a value that a shell reads as one word', () => {
    spellAsFlags();
    expect(setting('plan', 'my plan.json')).toBe("--plan 'my plan.json'");
    expect(settingWords('plan', 'my plan.json')).toEqual(['--plan', 'my plan.json']);
  });

  it('has the flag of the command that runs', () => {
    spellAsFlags('kv-projector:init');
    expect(setting('kind', 'linear')).toBe('--kind linear');
    spellAsFlags('kv-projector:convert');
    expect(setting('kind', 'linear')).toBe('--to linear');
  });
});

describe('a command in a text', () => {
  it('is the line that runs it', () => {
    spellAsFlags();
    expect(commandText('kvProjectorInit')).toBe('minimind kv-projector init');
    expect(nextCommand('fit', ['a b.yaml'], { gpu: 'h100', dropout: true, zero: undefined })).toBe(
      "minimind fit 'a b.yaml' --gpu h100 --dropout",
    );
  });

  it('has the flags of that command, not of the one that runs', () => {
    spellAsFlags('kv-projector:convert');
    expect(commandText('kvProjectorInit', ['a.pt'], { kind: 'linear' })).toBe(
      'minimind kv-projector init a.pt --kind linear',
    );
  });

  it('is not proposed for the model of standard input', () => {
    expect(nextCommand('fit', ['-'])).toBeUndefined();
    expect(nextCommand('fit', ['<stdin>'])).toBeUndefined();
  });

  it('keeps the words of a line but for the named settings and those of the output', () => {
    spellAsFlags();
    const words = ['m.yaml', '--gpu', 'h100', '--gpus=2', '--json', '-o', 'x.csv', '--zero', '3'];
    expect(withoutSettings(words, ['gpu', 'gpus'])).toEqual(['m.yaml', '--zero', '3']);
  });
});
