import { expect, it } from 'vitest';
import { detectBinaryKind } from '../../../src/language/data/records.js';

/** 100 bytes with so many control characters. */
const head = (controls: number) =>
  Buffer.concat([Buffer.alloc(controls), Buffer.alloc(100 - controls, 'a')]);

it('takes a file for text up to a tenth of control characters', () => {
  expect(detectBinaryKind('ids.bin', head(10))).toBeUndefined();
  expect(detectBinaryKind('ids.bin', head(11))).toBe('uint16');
  expect(detectBinaryKind('ids.txt', head(10))).toBeUndefined();
  expect(() => detectBinaryKind('ids.txt', head(11))).toThrow('found binary data');
});

it('counts tabs, line ends and form feeds as text', () => {
  expect(detectBinaryKind('ids.bin', Buffer.from('\t\n\f\r'))).toBeUndefined();
  expect(detectBinaryKind('ids.bin', Buffer.from('\v'))).toBe('uint16');
});
