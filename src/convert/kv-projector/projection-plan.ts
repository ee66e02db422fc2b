/** Assigns the tensors of a file to teachers, keys or values, and adapters. */

import type { Shape } from '../../base/tensor/dtype.js';
import { STORED_DTYPES, shapeText } from '../../base/tensor/dtype.js';
import { groupBy } from '../../base/values.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { quoted, quotedNames } from '../../checkpoint/checkpoint-rules.js';
import type { StoredTensor } from '../../checkpoint/stored-tensor.js';
import type { ErrorCollector } from './arguments.js';
import { errorCollector } from './arguments.js';
import type { Branch } from './projector.js';
import { moduleName } from './projector.js';
import type { SavedAdapter, SavedProjector } from './saved.js';

/** A tensor [..., d_t], and the adapter that maps it to [..., d_s]. */
export interface ProjectedTensor {
  readonly teacher: string;
  readonly branch: Branch;
  /** Name in the input file. */
  readonly input: string;
  /** Name in the output file. */
  readonly output: string;
  readonly tensor: StoredTensor;
  readonly adapter: SavedAdapter;
  /** Output shape. */
  readonly shape: Shape;
}

export interface ProjectionPlan {
  readonly tensors: readonly ProjectedTensor[];
  /** Teachers of the projector, by module name, without tensors in the file. */
  readonly unused: readonly string[];
  /** Tensors that are already results. */
  readonly ignored: readonly string[];
}

const INPUT = 'input.';
const OUTPUT = 'output.';

const ADVICE =
  'name each tensor after its teacher, as in Qwen2-7B.K and Qwen2-7B.V, or all of them as in input.Qwen2-7B.K';

interface TeacherTensor {
  readonly name: string;
  readonly teacher: string;
  readonly branch: Branch;
  readonly tensor: StoredTensor;
}

/**
 * Plans the tensors to project. Names are TEACHER.K and TEACHER.V, or input.TEACHER.K, which becomes
 * output.TEACHER.K; existing tensors under output. are ignored.
 * @throws UserError with every tensor that does not fit the projector.
 */
export function planProjection(projector: SavedProjector, kv: Checkpoint): ProjectionPlan {
  const complain = errorCollector(kv.path);
  const prefix = [...kv.tensors.keys()].some((name) => name.startsWith(INPUT)) ? INPUT : '';
  const { named, ignored, strange } = namedTensors(kv, prefix);
  if (named.length === 0) complain(undefined, 'holds no keys or values', ADVICE);
  // If no tensor fits, the file is of another kind, and a list of all names would not help.
  else
    for (const name of strange) complain(name, 'is neither keys nor values of a teacher', ADVICE);
  const byModule = groupBy(projector.adapters, ({ module }) => module);
  checkTeachers(named, projector, byModule, complain);
  const tensors = named.flatMap(
    (each) => projected(each, projector, byModule, prefix, complain) ?? [],
  );
  complain.end();
  const used = new Set(tensors.map(({ adapter }) => adapter.module));
  const unused = new Set(projector.adapters.map(({ module }) => module));
  for (const module of used) unused.delete(module);
  return { tensors, unused: [...unused], ignored };
}

function namedTensors(kv: Checkpoint, prefix: string) {
  const named: TeacherTensor[] = [];
  const ignored: string[] = [];
  const strange: string[] = [];
  for (const [name, tensor] of kv.tensors) {
    const [, teacher, branch] = /^(.+)\.([KV])$/s.exec(name.slice(prefix.length)) ?? [];
    if (prefix !== '' && name.startsWith(OUTPUT)) ignored.push(name);
    else if (teacher === undefined || !name.startsWith(prefix)) strange.push(name);
    else named.push({ name, teacher, branch: branch === 'V' ? 'V' : 'K', tensor });
  }
  return { named, ignored, strange };
}

/** Checks that each teacher has both tensors and its own adapter. */
function checkTeachers(
  named: readonly TeacherTensor[],
  { path }: SavedProjector,
  byModule: Adapters,
  complain: ErrorCollector,
): void {
  const modules = new Map<string, string>();
  for (const [teacher, [first, second]] of groupBy(named, (each) => each.teacher)) {
    const module = moduleName(teacher);
    const other = modules.get(module);
    modules.set(module, teacher);
    if (!byModule.has(module)) {
      complain(
        first.name,
        `${path} has no adapter for the teacher ${quoted(teacher)}`,
        `it has those of ${quotedNames([...byModule.keys()])}, with "_" for "." and "-"`,
      );
    } else if (other !== undefined) {
      complain(first.name, `${quoted(teacher)} and ${quoted(other)} would share one adapter`);
    }
    if (second === undefined) {
      const lacking = first.branch === 'K' ? 'values (V)' : 'keys (K)';
      complain(first.name, `has no ${lacking} of ${quoted(teacher)} next to it`);
    }
  }
}

/** Adapters of each teacher, by its module. */
type Adapters = ReadonlyMap<string, readonly SavedAdapter[]>;

function projected(
  { name, teacher, branch, tensor }: TeacherTensor,
  { studentWidth }: SavedProjector,
  byModule: Adapters,
  prefix: string,
  complain: ErrorCollector,
): ProjectedTensor | undefined {
  const module = moduleName(teacher);
  const own = byModule.get(module) ?? [];
  if (own.length === 0) return undefined;
  const adapter = own.find((each) => each.branch === branch);
  const { shape, dtype } = tensor;
  const width = own[0]?.teacherWidth;
  if (adapter === undefined) {
    complain(name, `the projector has no adapter for ${branch} of ${quoted(teacher)}`);
  } else if (shape.at(-1) !== width) {
    complain(
      name,
      `has shape ${shapeText(shape)}, expected [..., ${width}], the width of the teacher`,
      'give keys and values of all heads in one row, before any of them is dropped',
    );
  } else if (STORED_DTYPES[dtype].kind !== 'float') {
    complain(name, `is ${dtype}, expected floats`);
  } else {
    const output = prefix === '' ? name : `${OUTPUT}${name.slice(prefix.length)}`;
    const outShape = [...shape.slice(0, -1), studentWidth];
    return { teacher, branch, input: name, output, tensor, adapter, shape: outShape };
  }
  return undefined;
}
