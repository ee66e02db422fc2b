import { describe, expect, it } from 'vitest';
import { describedTensors, summarise } from '../../src/checkpoint/summary.js';
import { fileOf } from './byte-files.js';
import { checkpointOf, storageOf, tensorIn } from './stored-tensors.js';

const file = fileOf(new Uint8Array(1000));
const storage = { ...storageOf(new Uint8Array(100), file), position: 64 };
const embed = tensorIn(storage, [3, 2]);

/** Summary of all tensors, without measured values. */
const summaryOf = (...[tensors, given]: Parameters<typeof checkpointOf>) => {
  const checkpoint = checkpointOf(tensors, given);
  const listed = describedTensors(checkpoint.tensors, new Map());
  return { ...summarise(checkpoint), tensors: listed };
};

describe('summarise', () => {
  it('counts tensors by name, distinct tensors and stored bytes', () => {
    const { totals } = summaryOf({
      embed,
      head: { ...embed },
      ids: tensorIn(storageOf(new Uint8Array(16)), [2], { dtype: 'I64' }),
      bias: tensorIn(storage, [2], { offset: 6 }),
    });
    expect(totals).toEqual({
      tensors: 4,
      distinctTensors: 3,
      elements: 16,
      distinctElements: 10,
      bytes: 24 + 24 + 16 + 8,
      distinctBytes: 24 + 16 + 8,
      storedBytes: 100 + 16,
      dtypes: [
        { dtype: 'F32', tensors: 2, elements: 8, bytes: 32 },
        { dtype: 'I64', tensors: 1, elements: 2, bytes: 16 },
      ],
    });
  });

  it('reports the position of each tensor, and strides that are not contiguous', () => {
    const { tensors } = summaryOf({
      embed,
      turned: tensorIn({ ...storage, isBigEndian: true }, [2, 3], { strides: [1, 2], offset: 4 }),
    });
    expect(tensors).toEqual({
      embed: {
        dtype: 'F32',
        shape: [3, 2],
        elements: 6,
        bytes: 24,
        storage: { file: file.path, position: 64, bytes: 100 },
        offset: 0,
      },
      turned: {
        dtype: 'F32',
        shape: [2, 3],
        elements: 6,
        bytes: 24,
        storage: { file: file.path, position: 64, bytes: 100, bigEndian: true },
        offset: 4,
        strides: [1, 2],
      },
    });
  });

  it('reports the rest of the file', () => {
    const summary = summaryOf(
      { embed },
      {
        path: 'folder',
        format: 'safetensors',
        stateDict: ['ema', 'model'],
        metadata: new Map([['format', 'pt']]),
        aliases: new Map([['head', 'embed']]),
        content: new Map([['step', 30]]),
        warnings: ['odd'],
      },
    );
    expect(summary).toMatchObject({
      file: 'folder',
      format: 'safetensors',
      formatName: 'safetensors',
      files: [{ path: file.path, bytes: 1000 }],
      stateDict: ['ema', 'model'],
      metadata: { format: 'pt' },
      aliases: { head: 'embed' },
      content: { step: { type: 'int', value: 30 } },
      warnings: ['odd'],
      shared: [],
      groups: [{ name: 'embed', tensors: 1 }],
    });
  });

  it('lists only the chosen tensors, with their measurements, and totals of all', () => {
    const checkpoint = checkpointOf({ embed, head: embed });
    const measured = new Map([['head', { sha256: 'abc' }]]);
    const summary = summarise(checkpoint);
    const tensors = describedTensors(new Map([['head', embed]]), measured);
    expect(Object.entries(tensors)).toEqual([['head', expect.objectContaining({ sha256: 'abc' })]]);
    expect(summary.totals.tensors).toBe(2);
    expect(summary.shared).toHaveLength(1);
  });

  it('treats __proto__ like any other name', () => {
    const names = new Map([['__proto__', 'embed']]);
    const summary = summaryOf(new Map([['__proto__', embed]]), {
      metadata: names,
      aliases: names,
      content: new Map([['__proto__', 1]]),
    });
    for (const part of [summary.tensors, summary.metadata, summary.aliases, summary.content]) {
      expect(Object.keys(part)).toEqual(['__proto__']);
    }
    const { tensors } = JSON.parse(JSON.stringify(summary));
    expect(Object.keys(tensors)).toEqual(['__proto__']);
  });

  it('summarises a checkpoint without tensors', () => {
    const { totals, groups } = summaryOf({});
    expect(totals).toMatchObject({ tensors: 0, elements: 0, storedBytes: 0, dtypes: [] });
    expect(groups).toEqual([]);
  });
});
