import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { StoredTensor } from '../../src/checkpoint/stored-tensor.js';
import { safetensorsFile, torchFile } from '../checkpoint/reconcile/files.js';
import { describeModel, SMALL, Workshop } from '../checkpoint/reconcile/support.js';
import { runHere } from '../run-here.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
const CONFIG = path.join(folder, 'model.yaml');
fs.writeFileSync(CONFIG, JSON.stringify({ model: SMALL }));
const workshop = new Workshop();
afterAll(() => {
  workshop.close();
  fs.rmSync(folder, { recursive: true });
});

type Tensors = Map<string, StoredTensor>;

const small = (): Tensors => workshop.stateDict(describeModel().model, false);
const quickTest = (...args: string[]) =>
  runHere(['quick-test', CONFIG, '--only', 'created', ...args]);

describe('a checkpoint that does not match its config is refused with the words of verify', () => {
  const faults: [
    string,
    (tensors: Tensors) => void,
    string[],
    string[],
    Record<string, string>?,
  ][] = [
    [
      'missing',
      (tensors) => {
        for (const layer of [1, 2]) tensors.delete(`layers.${layer}.gate.u.weight`);
      },
      ['layers.{1–2}.gate.u.weight: missing: expected [4, 8]'],
      ['name the config that it was made with'],
    ],
    [
      'extra',
      (tensors) => {
        const weight = tensors.get('norm.weight');
        tensors.delete('norm.weight');
        if (weight) tensors.set('norm.weights', weight);
      },
      [
        'norm.weights: extra: found F32 [8] (near norm.weight, which is missing)',
        'norm.weight: missing: expected [8]',
      ],
      [],
    ],
    [
      'misshapen',
      (tensors) => tensors.set('lm_head.weight', workshop.tensor([8, 17])),
      ['lm_head.weight: wrong shape: expected [17, 8], found F32 [8, 17] (transposed)'],
      [],
    ],
    [
      'of the wrong type',
      (tensors) => tensors.set('norm.bias', workshop.tensor([8], { dtype: 'I32' })),
      ['norm.bias: wrong type: expected float [8], found I32 [8]'],
      [],
    ],
    [
      'wrongly tied',
      (tensors) => tensors.delete('lm_head.weight'),
      ['lm_head.weight: wrongly tied: '],
      ['the head is the embedding: set model.tie_word_embeddings: true'],
      { 'lm_head.weight': 'embed_tokens.weight' },
    ],
  ];

  it.each(faults)('for a tensor that is %s', async (name, change, words, advice, metadata) => {
    const tensors = small();
    change(tensors);
    const file = await safetensorsFile(path.join(folder, `${name}.safetensors`), tensors, metadata);
    const { code, stdout, stderr } = await quickTest('--checkpoint', file);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`${file} does not match ${CONFIG}: `);
    for (const each of words) expect(stderr).toContain(`error: ${file}: ${each}`);
    for (const each of advice) expect(stderr).toContain(`→ ${each}`);
  });

  it('for a tensor that is not tied', async () => {
    const file = await safetensorsFile(path.join(folder, 'apart.safetensors'), small());
    const set = ['--set', 'model.tie_word_embeddings=true', '--json'];
    const { code, stdout } = await quickTest('--checkpoint', file, ...set);
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      schema: 'minimind/error@1',
      message: `${file} does not match ${CONFIG}: 1 fault in 1 tensor`,
      suggestion: expect.stringContaining('set model.tie_word_embeddings: false'),
      problems: [{ file, path: 'lm_head.weight', message: expect.stringMatching(/^not tied: /) }],
    });
  });

  it('with at most 40 faults, and with short and escaped names', async () => {
    const tensors = small();
    for (let i = 0; i < 60; i++) tensors.set(`${'x'.repeat(i + 1)}`, workshop.tensor([i + 1]));
    tensors.set(`\u001b[31m${'y'.repeat(5000)}`, workshop.tensor([1]));
    const file = await safetensorsFile(path.join(folder, 'strange.safetensors'), tensors);
    const { code, stderr } = await quickTest('--checkpoint', file);
    expect(code).toBe(2);
    expect(stderr).toContain('61 faults in 61 tensors, of which 40 are listed here');
    expect(stderr.match(/: extra: /g)).toHaveLength(40);
    expect(stderr).not.toContain('y'.repeat(300));
    expect(stderr).not.toContain('\u001b');
  });
});

it('quick-test warns of a different config inside the checkpoint', async () => {
  const config = { model: { ...SMALL, window_size: 7 } };
  const file = await torchFile(path.join(folder, 'model.pt'), small(), { config });
  const { code, stderr } = await quickTest('--checkpoint', file, '--device', 'cpu');
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: `warning: ${file}: config inside the checkpoint says model.window_size: 7, not 1024\n`,
  });
});

it.each([
  ['onnx', '2,420 parameters, and 8 of a buffer, as described without the 192 of experts that'],
  ['tfjs', '2,612 parameters, and 8 of a buffer, as described'],
])('rows of experts that compute nothing may be left out: %s', async (engine, finding) => {
  const { code, stdout } = await runHere([
    ...['quick-test', 'fixtures/hf/longcat-flash-7-4', '--only', 'created', '--engine', engine],
  ]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(finding) });
});
