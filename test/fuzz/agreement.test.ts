/** Checks that minimind and PyTorch read the same tensors from mutated files that both accept. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import { TORCH_TYPES } from '../../src/checkpoint/torch/pickle/globals.js';
import { readTensor } from '../../src/checkpoint/view.js';
import { folderOf } from '../checkpoint/temp-folder.js';
import * as a from '../checkpoint/torch/assemble.js';
import { archive, inFolder } from '../checkpoint/torch/zip-builder.js';
import { type Answer, askPyTorch, type Described, type Question, whyNoPyTorch } from './pytorch.js';
import { type Reader, WEIGHTS } from './readers.js';
import {
  AGREEMENTS,
  again,
  COMPARES,
  FIRST_SEED,
  FUZZ_TIMEOUT_MS,
  MUTATIONS,
  WITHOUT_PYTORCH,
} from './settings.js';

const reason = COMPARES
  ? WITHOUT_PYTORCH && 'MINIMIND_FUZZ_WITHOUT_PYTORCH=1: only crashes and refusals are checked'
  : 'npm run test:fuzz compares';

interface Read extends Question {
  readonly seed: number;
  readonly tensors: Readonly<Record<string, Described>>;
}

/** The tensors that minimind reads from the file of a seed, and a copy of the file; undefined when it is refused. */
function readSeed(reader: Reader, seed: number, folder: string): Read | undefined {
  const source = reader.write(seed);
  try {
    const checkpoint = openCheckpoint(source);
    try {
      const tensors = [...checkpoint.tensors].map(([name, tensor]): [string, Described] => {
        const bytes = readTensor(tensor);
        // Every byte but 0 is True; copies by PyTorch make it 1.
        const values = tensor.dtype === 'BOOL' ? bytes.map((byte) => Number(byte !== 0)) : bytes;
        const sha256 = createHash('sha256').update(values).digest('hex');
        const dtype = TORCH_TYPES[tensor.dtype]?.name ?? tensor.dtype;
        return [name, { dtype, shape: tensor.shape, sha256 }];
      });
      const file = path.join(folder, `${seed}${path.extname(source)}`);
      fs.copyFileSync(source, file);
      return { seed, file, keys: checkpoint.stateDict, tensors: Object.fromEntries(tensors) };
    } finally {
      checkpoint.close();
    }
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

/** Difference of an answer, undefined when PyTorch loads the same or refuses the file. */
function difference(read: Read, answer: Answer): string | undefined {
  if ('refused' in answer) return undefined;
  const report = (differing: unknown) =>
    `seed ${read.seed} (${again(read.seed)}): ${JSON.stringify(differing)}`;
  if ('unlike' in answer) return report(answer.unlike);
  const names = new Set([...Object.keys(read.tensors), ...Object.keys(answer.tensors)]);
  const differing = [...names].flatMap((name) => {
    const [own, other] = [read.tensors[name], answer.tensors[name]];
    return isDeepStrictEqual(own, other) ? [] : [{ name, own, other }];
  });
  return differing.length > 0 ? report(differing) : undefined;
}

const BATCH = 500;
/** Most seeds tried for each file that both shall read. */
const MOST_TRIES = 20;
const MOST_SHOWN = 5;

describe(`minimind and PyTorch read the same tensors${reason ? ` (skipped: ${reason})` : ''}`, () => {
  it.skipIf(reason).each(Object.entries(WEIGHTS))(
    'from mutated files: %s',
    (kind, make) => {
      const reader = make();
      const differences: string[] = [];
      let both = 0;
      let seed = FIRST_SEED;
      const last = FIRST_SEED + (MUTATIONS > 1 ? MOST_TRIES * AGREEMENTS : 1);
      while (both < AGREEMENTS && seed < last) {
        const folder = folderOf({});
        const reads: Read[] = [];
        for (; reads.length < BATCH && seed < last; seed++) {
          const read = readSeed(reader, seed, folder);
          if (read) reads.push(read);
        }
        const answers = askPyTorch(reads);
        both += answers.filter((answer) => !('refused' in answer)).length;
        differences.push(
          ...reads.flatMap((read, at) => difference(read, answers[at] ?? { refused: '' }) ?? []),
        );
        fs.rmSync(folder, { recursive: true });
      }
      process.stdout.write(`${kind}: ${both} files of ${seed - FIRST_SEED} were read by both\n`);
      expect(differences.slice(0, MOST_SHOWN)).toEqual([]);
      if (MUTATIONS > 1) expect(both).toBeGreaterThanOrEqual(AGREEMENTS);
    },
    FUZZ_TIMEOUT_MS,
  );

  it.skipIf(reason)('from the items of a dict, not from its attributes', () => {
    const attributes = ['items', '__getitem__'].flatMap((name) => [
      a.text(name),
      a.global('collections', 'OrderedDict'),
    ]);
    const write = (...build: readonly Buffer[]) => {
      const name = 'x.pt';
      const object = a.join(
        a.call(a.global('collections', 'OrderedDict')),
        ...[a.MARK, a.text('layers.0.w'), a.tensor(), a.SETITEMS],
        ...build,
      );
      const entries = inFolder({
        'data.pkl': a.pickle(a.dict(a.text('model'), object)),
        byteorder: 'little',
        'data/0': Buffer.alloc(16, 1),
        version: '3\n',
      });
      return {
        file: path.join(folderOf({ [name]: archive({ entries }) }), name),
        keys: ['model'],
      };
    };
    const [plain, dressed] = askPyTorch([write(), write(a.dict(...attributes), a.join(a.BUILD))]);
    expect(plain).toHaveProperty('tensors');
    expect(Object.keys(plain && 'tensors' in plain ? plain.tensors : {})).toEqual(['layers.0.w']);
    expect(dressed).toEqual(plain);
  });
});

describe('a Python without PyTorch', () => {
  it('is named, with a way to choose another', () => {
    expect(whyNoPyTorch('/no/python')).toMatch(
      /^\/no\/python does not start .*PYTHON=\/path\/to\/python npm run test:fuzz$/,
    );
  });
});
