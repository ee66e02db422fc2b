import { expect, it } from 'vitest';
import { documentKeeper, documentValue } from '../../../src/estimate/comparison/kept-documents.js';

const leaves = (object: Record<string, string | number | boolean | null>) =>
  new Map(Object.entries(object));

it('keeps paths and documents of a table once, and finds each value', () => {
  const keep = documentKeeper();
  const same = leaves({ 'model.layers': 2, 'model.kind': 'a' });
  const [one, again, other] = [same, same, leaves({ 'model.layers': 4, 'model.kind': 'b' })].map(
    keep,
  );
  if (!one || !again || !other) throw new Error('three documents are kept');
  expect(again).toBe(one);
  expect(other.places).toBe(one.places);
  expect(documentValue(one, 'model.layers')).toBe(2);
  expect(documentValue(other, 'model.layers')).toBe(4);
  expect(documentValue(other, 'model.kind')).toBe('b');
});

it('tells documents with other paths or another order apart', () => {
  const keep = documentKeeper();
  const [one, turned, shorter] = [
    leaves({ a: 1, b: null }),
    leaves({ b: 2, a: 3 }),
    leaves({ 'a","b': 4 }),
  ].map(keep);
  if (!one || !turned || !shorter) throw new Error('three documents are kept');
  expect(documentValue(one, 'b')).toBeNull();
  expect([documentValue(turned, 'a'), documentValue(turned, 'b')]).toEqual([3, 2]);
  expect(documentValue(shorter, 'a')).toBeNull();
  expect(documentValue(shorter, 'a","b')).toBe(4);
  expect(documentValue(keep(leaves({ ['__proto__']: 5 })), '__proto__')).toBe(5);
});
