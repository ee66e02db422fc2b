import { describe, expect, test } from 'vitest';
import {
  editedModel,
  fileName,
  readState,
  withOnly,
  withSecond,
  withSetting,
  withText,
} from '../../src/explorer/explorer-state.js';
import { extendedHistory, historyOf, redone, undone } from '../../src/explorer/history.js';
import { linkedState, linkFragment } from '../../src/explorer/link.js';

const state = {
  models: [{ name: 'hybrid/tiny', text: 'model: {}' }],
  edited: 0,
  setting: {},
} as const;

describe('a state', () => {
  test('gives a changed preset the name of a file', () => {
    expect(editedModel(withText(state, 'model: { num_layers: 3 }')).name).toBe('tiny.yaml');
    expect(withText(state, 'model: {}')).toBe(state);
    expect(fileName('../a b/c d;e')).toBe('c-d-e.yaml');
    expect(fileName('x.json')).toBe('x.json');
  });

  test('edits the second model, and keeps one of both', () => {
    const two = withText(withSecond(state), 'model: { num_layers: 3 }');
    expect(two.models.map(({ name }) => name)).toEqual(['hybrid/tiny', 'tiny-b.yaml']);
    expect(two.models[0]).toEqual(state.models[0]);
    expect(withOnly(two, 1)).toMatchObject({ models: [{ name: 'tiny-b.yaml' }], edited: 0 });
  });

  test('has no setting for a default', () => {
    const set = withSetting(state, 'context', 512);
    expect(set.setting).toEqual({ context: 512 });
    expect(withSetting(set, 'context', undefined).setting).toEqual({});
  });

  test('is read out of anything', () => {
    const model = { name: 'a', text: 'b' };
    expect(
      readState({ models: [model], edited: 1, setting: { context: -1, gpu: 5, x: 1 } }),
    ).toEqual({ models: [model], edited: 0, setting: {} });
    const wrong = [null, 1, [], {}, { models: [] }, { models: [{ name: 1, text: '' }] }];
    const more = [
      { models: [model, model, model] },
      { models: [model, {}] },
      { models: [{ name: 'x'.repeat(301), text: '' }] },
      { models: [{ name: '', text: 'x'.repeat(1_000_001) }] },
    ];
    for (const each of [...wrong, ...more]) expect(readState(each)).toBeUndefined();
  });
});

describe('a history', () => {
  test('joins changes of one name, and goes back and forth', () => {
    let history = historyOf(0);
    for (const [value, name] of [
      [1, 'a'],
      [2, 'a'],
      [3, 'b'],
      [4, undefined],
      [5, undefined],
    ] as const) {
      history = extendedHistory(history, value, name);
    }
    const back = [history.present];
    while (history.past.length > 0) {
      history = undone(history);
      back.push(history.present);
    }
    expect(back).toEqual([5, 4, 3, 2, 0]);
    expect(undone(history)).toBe(history);
    history = redone(redone(history));
    expect(history.present).toBe(3);
    expect(redone(extendedHistory(history, 9)).present).toBe(9);
  });
});

describe('a link', () => {
  test('holds the state, also of characters beyond ASCII', async () => {
    const own = withText(state, `# ${'模型 '.repeat(5000)}\nmodel: {}`);
    const fragment = await linkFragment(own);
    expect(fragment).toMatch(/^1\.[\w-]+$/);
    expect(fragment.length).toBeLessThan(1000);
    expect(await linkedState(`#${fragment}`)).toEqual(own);
  });

  test('of another content is none, also of one that unpacks to gigabytes', async () => {
    const bomb = new Uint8Array(50_000_000);
    const packed = new Blob([bomb]).stream().pipeThrough(new CompressionStream('deflate-raw'));
    const bytes = Buffer.from(await new Response(packed).arrayBuffer());
    expect(bytes.length).toBeLessThan(100_000);
    const hostile = ['', '#', '1.', '1.%', '1.AAAA', '2.x', `1.${bytes.toString('base64url')}`];
    for (const each of hostile) expect(await linkedState(each)).toBeUndefined();
  });
});
