import { expect, it } from 'vitest';
import { percentText } from '../../src/base/text/units.js';
import { percentCell } from '../../src/report/kit/report.js';

it.each([
  [0, '0%'],
  [1, '100.0%'],
  [1.214, '121.4%'],
  [0.27108, '27.1%'],
  [0.0861, '8.61%'],
  [0.001, '0.10%'],
  [0.00012, '0.012%'],
  [0.0000049, '<0.001%'],
  [1e-30, '<0.001%'],
  [0.9994, '99.9%'],
  [0.99951, '>99.9%'],
  [1 - 2 ** -53, '>99.9%'],
  [-0.0861, '−8.61%'],
  [null, '–'],
])('%d is %s', (share, text) => expect(percentText(share)).toBe(text));

it('percentCell has the exact share for programs', () => {
  expect(percentCell(0.27108)).toEqual({ text: '27.1%', value: 0.27108 });
  expect(percentCell(null)).toEqual({ text: '–', value: '' });
});
