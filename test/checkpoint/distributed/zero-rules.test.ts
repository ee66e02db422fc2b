import { describe, expect, it } from 'vitest';
import { readTensor } from '../../../src/checkpoint/view.js';
import { folderOf, opened, ruleBrokenBy } from '../temp-folder.js';
import * as a from '../torch/assemble.js';
import { archive, inFolder } from '../torch/zip-builder.js';

const TYPES = { FloatStorage: 4, HalfStorage: 2 } as const;

/** Vector that counts up, in its own storage. */
function vector(key: number, length: number, type: keyof typeof TYPES = 'FloatStorage') {
  const storage = a.storage({
    type: a.global('torch', type),
    key: a.text(String(key)),
    length: a.int(length),
  });
  return {
    pickled: a.tensor({ storage, size: a.tuple(a.int(length)) }),
    bytes: Buffer.from(Float32Array.from({ length }, (_, at) => at).buffer).subarray(
      0,
      TYPES[type] * length,
    ),
  };
}

const list = (...items: readonly Uint8Array[]) => a.join(a.EMPTY_LIST, a.MARK, ...items, a.APPENDS);

const file = (root: Uint8Array, data: readonly Uint8Array[] = []) =>
  archive({
    entries: inFolder({
      'data.pkl': a.pickle(root),
      version: '3\n',
      byteorder: 'little',
      ...Object.fromEntries(data.map((bytes, key) => [`data/${key}`, bytes])),
    }),
  });

interface ProcessSpec {
  readonly stage?: number;
  readonly world?: Uint8Array;
  readonly lengths?: readonly number[];
  readonly type?: keyof typeof TYPES;
}

/** File of a process; stage 2 by default. */
function process({ stage = 2, world = a.int(2), lengths = [4], type }: ProcessSpec = {}) {
  const vectors = lengths.map((length, key) => vector(key, length, type));
  const key = stage === 3 ? 'fp32_flat_groups' : 'single_partition_of_fp32_groups';
  const state = a.dict(
    ...[a.text('zero_stage'), a.int(stage)],
    ...[a.text('partition_count'), world],
    ...[a.text(key), list(...vectors.map(({ pickled }) => pickled))],
  );
  return file(
    a.dict(a.text('optimizer_state_dict'), state),
    vectors.map(({ bytes }) => bytes),
  );
}

const size = (...numbers: readonly number[]) =>
  a.call(a.global('torch', 'Size'), a.tuple(...numbers.map((number) => a.int(number))));

const shapes = (sizes: Readonly<Record<string, Uint8Array>>) =>
  a.dict(...Object.entries(sizes).flatMap(([name, each]) => [a.text(name), each]));

interface ModelSpec {
  readonly groups?: Uint8Array;
  readonly frozen?: Uint8Array;
  /** Elements of the fragment of the frozen parameter `f`. */
  readonly fragment?: number;
  readonly buffers?: readonly string[];
}

function model({ groups, frozen = Buffer.from([a.NONE]), fragment, buffers = [] }: ModelSpec = {}) {
  const values = vector(0, fragment ?? 1);
  const module = a.dict(...buffers.flatMap((name) => [a.text(name), values.pickled]));
  return file(
    a.dict(
      ...[a.text('module'), module],
      ...[a.text('buffer_names'), list(...buffers.map(a.text))],
      ...[a.text('param_shapes'), groups ?? list(shapes({ w: size(2, 3), b: size(1) }))],
      ...[a.text('frozen_param_shapes'), frozen],
      ...[
        a.text('frozen_param_fragments'),
        fragment === undefined ? a.join(a.NONE) : a.dict(a.text('f'), values.pickled),
      ],
    ),
    [values.bytes],
  );
}

const OPTIMIZERS = [0, 1].map((rank) => `step/zero_pp_rank_${rank}_mp_rank_00_optim_states.pt`);
const [FIRST = '', SECOND = ''] = OPTIMIZERS;
const MODEL = 'step/mp_rank_00_model_states.pt';

type Files = Readonly<Record<string, string | Uint8Array>>;

const files = (changes: Record<string, string | Uint8Array | undefined> = {}): Files =>
  Object.fromEntries(
    Object.entries({
      latest: 'step\n',
      [FIRST]: process(),
      [SECOND]: process({ lengths: [3] }),
      [MODEL]: model(),
      ...changes,
    }).filter((entry): entry is [string, string | Uint8Array] => entry[1] !== undefined),
  );

describe('a ZeRO checkpoint', () => {
  it('is refused by files-hold-tensors: one vector as the values of many parameters', () => {
    const { pickled, bytes } = vector(0, 500_000);
    const names = Array.from({ length: 60 }, (_, at) => `w${at}`);
    const state = a.dict(
      ...[a.text('zero_stage'), a.int(2), a.text('partition_count'), a.int(1)],
      a.text('single_partition_of_fp32_groups'),
      list(...names.map(() => pickled)),
    );
    const groups = list(...names.map((name) => shapes({ [name]: size(500_000) })));
    const attack = files({
      [FIRST]: file(a.dict(a.text('optimizer_state_dict'), state), [bytes]),
      [SECOND]: undefined,
      [MODEL]: model({ groups }),
    });
    expect(ruleBrokenBy(folderOf(attack))).toBe('files-hold-tensors');
  });

  it('is read if it follows all rules', () => {
    const { tensors } = opened(folderOf(files()));
    const w = tensors.get('w') ?? expect.fail();
    expect([...new Float32Array(readTensor(w).buffer)]).toEqual([0, 1, 2, 3, 0, 1]);
  });

  it.each<[rule: string, what: string, attack: Files]>([
    ['zero-tag', 'a tag that goes up', files({ latest: '../step' })],
    ['zero-latest', 'a missing step', files({ latest: 'global_step9' })],
    ['zero-latest', 'a step without files', { latest: 'step', 'step/config.json': '{}' }],
    ['zero-model-states', 'no model states', files({ [MODEL]: undefined })],
    [
      'zero-model-parallel',
      'a model that is split',
      files({ 'step/mp_rank_01_model_states.pt': model() }),
    ],
    [
      'zero-rank-once',
      'two files of a process',
      files({ 'step/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt': process() }),
    ],
    ['zero-rank-missing', 'a missing process', files({ [FIRST]: undefined })],
    ['zero-world', 'a missing last process', files({ [SECOND]: undefined })],
    [
      'zero-world',
      'another number of processes',
      files({ [SECOND]: process({ world: a.int(3) }) }),
    ],
    [
      'zero-entry',
      'a number of processes that is text',
      files({ [SECOND]: process({ world: a.text('2') }) }),
    ],
    ['zero-entry', 'an unknown stage', files({ [SECOND]: process({ stage: 4 }) })],
    ['zero-entry', 'no vectors', files({ [SECOND]: process({ lengths: [] }) })],
    ['zero-entry', 'shapes that are a number', files({ [MODEL]: model({ groups: a.int(1) }) })],
    [
      'zero-experts',
      'groups of other processes',
      files({ [FIRST]: process({ world: list(a.int(2), a.int(1)) }) }),
    ],
    [
      'zero-stage',
      'processes of two stages',
      files({ [SECOND]: process({ stage: 1, lengths: [3] }) }),
    ],
    [
      'zero-vectors',
      'vectors of another type',
      files({ [SECOND]: process({ lengths: [3], type: 'HalfStorage' }) }),
    ],
    [
      'zero-groups',
      'another number of groups',
      files({ [MODEL]: model({ groups: list(shapes({ w: size(7) }), shapes({})) }) }),
    ],
    ['zero-sum', 'too few elements', files({ [SECOND]: process({ lengths: [2] }) })],
    ['zero-sum', 'too many elements', files({ [SECOND]: process({ lengths: [5] }) })],
    [
      'zero-sum',
      'slices of another length in stage 3',
      files({
        [FIRST]: process({ stage: 3 }),
        [SECOND]: process({ stage: 3, lengths: [3] }),
        [MODEL]: undefined,
        'step/zero_pp_rank_0_mp_rank_00_model_states.pt': model(),
      }),
    ],
    [
      'zero-shape',
      'too many elements of a shape',
      files({ [MODEL]: model({ groups: list(shapes({ w: size(2 ** 40, 2 ** 40) })) }) }),
    ],
    [
      'zero-frozen',
      'a fragment that is too short',
      files({ [MODEL]: model({ frozen: shapes({ f: size(2) }), fragment: 1 }) }),
    ],
    [
      'zero-entry',
      'a missing fragment',
      files({ [MODEL]: model({ frozen: shapes({ f: size(2) }) }) }),
    ],
    [
      'zero-name-once',
      'a buffer with the name of a parameter',
      files({ [MODEL]: model({ buffers: ['w'] }) }),
    ],
    [
      'pickle-global',
      'a call of a function',
      files({ [MODEL]: file(a.call(a.global('os', 'system'), a.text('true'))) }),
    ],
  ])('is refused by %s: %s', (rule, _, attack) => {
    expect(ruleBrokenBy(folderOf(attack))).toBe(rule);
  });
});
