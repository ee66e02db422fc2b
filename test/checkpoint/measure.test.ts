import { createHash } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { viewsOf } from '../../src/checkpoint/sharing.js';
import { measureTensors } from '../../src/checkpoint/statistics.js';
import { storageOf, tensorIn, tensorOf } from './stored-tensors.js';

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const bytesOf = (...values: number[]) => new Uint8Array(Float32Array.from(values).buffer);
const silent = { hash: true, stats: true, onBytes: () => {} };

describe('measureTensors', () => {
  it('computes hash and statistics of the values, not of the storage, in one pass', async () => {
    const storage = storageOf(bytesOf(1, 2, 3, 4, 5, 6));
    const transposed = tensorIn(storage, [3, 2], { strides: [1, 3] });
    const tensors = new Map([
      ['part', tensorIn(storage, [2], { offset: 1 })],
      ['transposed', transposed],
    ]);
    let seen = 0;
    const onBytes = (bytes: number) => {
      seen += bytes;
    };
    const measured = await measureTensors(viewsOf(tensors), { ...silent, onBytes });
    expect(measured.get('part')).toMatchObject({
      sha256: sha256(bytesOf(2, 3)),
      stats: { min: 2, max: 3 },
    });
    expect(measured.get('transposed')).toMatchObject({ sha256: sha256(bytesOf(1, 4, 2, 5, 3, 6)) });
    expect(seen).toBe(8 + 24);
  });

  it('computes the hash of an empty tensor', async () => {
    const empty = tensorIn(storageOf(new Uint8Array()), [0, 3]);
    const measured = await measureTensors(viewsOf(new Map([['empty', empty]])), silent);
    expect(measured.get('empty')).toMatchObject({
      sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
      stats: { min: null, norm: 0 },
    });
  });

  it('computes only the requested values', async () => {
    const views = viewsOf(new Map([['a', tensorOf([1])]]));
    const hashed = await measureTensors(views, { ...silent, stats: false });
    expect(hashed.get('a')).toEqual({ sha256: sha256(bytesOf(1)) });
    const counted = await measureTensors(views, { ...silent, hash: false });
    expect(Object.keys(counted.get('a') ?? {})).toEqual(['stats']);
  });

  it('reads shared tensors once, and files from front to back', async () => {
    const storage = storageOf(bytesOf(1, 2, 3));
    const other = storageOf(bytesOf(9));
    const at = (offset: number) => tensorIn(storage, [1], { offset });
    const tensors = new Map([
      ['last', at(2)],
      ['other file', tensorIn(other, [1])],
      ['first', at(0)],
      ['also last', at(2)],
    ]);
    const measured = await measureTensors(viewsOf(tensors), { ...silent, hash: false });
    expect([...measured.keys()]).toEqual(['first', 'last', 'also last', 'other file']);
    expect(measured.get('also last')).toBe(measured.get('last'));
  });

  it('yields to other tasks between slow tensors', async () => {
    const views = viewsOf(new Map([['a', tensorOf([1])]]));
    const others = vi.fn();
    setImmediate(others);
    await measureTensors(views, silent);
    expect(others).not.toHaveBeenCalled();
    // A clock by which each tensor takes 100 ms.
    let time = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => {
      time += 100;
      return time;
    });
    await measureTensors(views, silent);
    vi.restoreAllMocks();
    expect(others).toHaveBeenCalled();
  });
});
