/** What a projector of keys and values is made of: for each teacher one adapter for K and one for V. */
import { type Figure, figure } from '../budget/figure.js';

/** A model whose keys and values are mapped to a student's width. */
export interface Teacher {
  readonly name: string;
  /** d_t */
  readonly width: number;
  readonly layers?: number;
}

/** v1, one matrix; v2, a bottleneck of a norm and two linear layers. In the order in which the comparison trains them. */
export const KINDS = ['linear', 'elastic'] as const;
export type AdapterKind = (typeof KINDS)[number];

/** Of an elastic adapter's norm: torch.nn.LayerNorm's own. */
export const NORM_EPSILON = 1e-5;

export interface AdapterShape {
  readonly kind: AdapterKind;
  readonly teacherWidth: number;
  readonly studentWidth: number;
  /** Of an elastic adapter. */
  readonly hidden?: number;
  /** Of a linear adapter: none in a saved projector, one in the published verification. */
  readonly bias?: boolean;
}

/** What an adapter maps; each teacher has one for either. */
export const BRANCHES = ['K', 'V'] as const;

/** The width between the two linear layers of an elastic adapter: `int(d_t * mlp_ratio)` in Python. */
export const hiddenOf = (teacherWidth: number, ratio: number): number =>
  Math.trunc(teacherWidth * ratio);

/** A teacher's name as the names of tensors have it, where "." parts them. */
export const moduleName = (teacher: string): string => teacher.replaceAll(/[.-]/g, '_');

/** Names of teachers that a projector cannot tell apart, each with the one before it. */
export function sharedModules(teachers: readonly string[]) {
  const owners = new Map<string, string>();
  return teachers.flatMap((second) => {
    const module = moduleName(second);
    const first = owners.get(module);
    if (first !== undefined) return [{ module, first, second }];
    owners.set(module, second);
    return [];
  });
}

const SOURCE =
  'torch.nn.LayerNorm has 2·d values, torch.nn.Linear out·in, and out more with a bias';

/** The parameters of one adapter. */
export function adapterParameters(shape: AdapterShape): Figure {
  const { kind, teacherWidth, studentWidth, hidden = 0, bias = false } = shape;
  const widths = { teacher_width: teacherWidth, student_width: studentWidth };
  switch (kind) {
    case 'linear':
      return figure({
        label: bias ? 'one linear adapter with bias' : 'one linear adapter',
        unit: 'parameters',
        formula: `teacher_width * student_width${bias ? ' + student_width' : ''}`,
        inputs: widths,
        source: SOURCE,
      });
    case 'elastic':
      return figure({
        label: 'one elastic adapter',
        unit: 'parameters',
        formula:
          '2 * teacher_width + teacher_width * hidden + hidden + hidden * student_width + student_width',
        inputs: { ...widths, hidden },
        source: SOURCE,
      });
  }
}
