/** Tensors and parameters rebuilt by pickles: mostly valid, with some parts that no pickler writes. */
import * as a from '../checkpoint/torch/assemble.js';
import type { Dice } from './dice.js';

/** Values in place of a boolean. */
const TRUTHS: readonly (() => Buffer)[] = [
  () => a.join(a.TRUE),
  () => a.join(a.FALSE),
  () => a.join(a.NONE),
  () => a.join(0x4b, 0),
  () => a.join(0x4b, 1),
  () => a.int(0),
  () => a.float(0),
  () => a.float(1),
  () => a.text(''),
  () => a.text('False'),
  () => a.join(a.EMPTY_TUPLE),
  () => a.join(a.EMPTY_LIST),
  () => a.join(a.EMPTY_DICT),
  () => a.global('torch', 'bool'),
  () => a.get(2),
];

const anyTruth = (dice: Dice): Buffer => dice.pick(TRUTHS)();

/** A boolean, or sometimes another value. */
const truth = (dice: Dice): Buffer =>
  dice.happens(0.8) ? a.join(dice.pick([a.TRUE, a.FALSE, a.FALSE])) : anyTruth(dice);

const DICTS = ['OrderedDict', 'Counter'] as const;

/** A plain dict or one of its subclasses. */
function dictOf(pairs: readonly Buffer[], dice: Dice): Buffer {
  const plain = a.dict(...pairs);
  if (dice.happens(0.7)) return plain;
  const type = dice.pick(DICTS);
  const callee = a.global('collections', type);
  return dice.happens(0.5)
    ? a.call(callee, plain)
    : a.join(a.call(callee), a.MARK, ...pairs, a.SETITEMS);
}

/** The argument for the flags of a tensor: `neg`, `conj`, and other values. */
export function flags(dice: Dice): Buffer {
  const flag = (name: string, value = truth(dice)) => [a.text(name), value];
  const none = a.join(a.FALSE);
  return dice.pick([
    () => a.join(a.NONE),
    () => dictOf([], dice),
    () => dictOf([...flag('conj', none), ...flag('neg', none)], dice),
    () => dictOf([...flag('conj'), ...flag('neg')], dice),
    () => dictOf(flag(dice.pick(['conj', 'neg'])), dice),
    () => dictOf(flag(dice.pick(['', 'Neg', 'x', 'requires_grad'])), dice),
    () => dictOf([...flag('conj', none), ...flag('neg', none), ...flag('x')], dice),
    () => dictOf([...flag('neg'), anyTruth(dice), truth(dice)], dice),
    () => anyTruth(dice),
  ])();
}

/** Names that have a meaning for instances or their classes. */
const ATTRIBUTES = [
  '_metadata',
  '_metadata',
  'data',
  'data',
  'data',
  'grad',
  'items',
  'keys',
  'detach',
  'requires_grad',
  '__class__',
  '__dict__',
] as const;

/** The first storage of the hand-written files. */
const floats = (isLegacy: boolean) => a.storage(isLegacy ? { view: a.NONE } : {});

const attribute = (dice: Dice, isLegacy: boolean): Buffer[] => [
  a.text(dice.pick(ATTRIBUTES)),
  dice.pick([
    () => a.dict(),
    () => a.get(2),
    () => a.tensor({ storage: floats(isLegacy) }),
    () => anyTruth(dice),
  ])(),
];

/** A state for BUILD, or for the last argument of `_rebuild_parameter_with_state`. */
export function state(dice: Dice, isLegacy: boolean): Buffer {
  return dice.pick([
    () => a.join(a.NONE),
    () => dictOf([], dice),
    () =>
      dictOf([a.text('_metadata'), a.dict(a.text(''), a.dict(a.text('version'), a.int(1)))], dice),
    () => dictOf(attribute(dice, isLegacy), dice),
    () => dictOf([...attribute(dice, isLegacy), ...attribute(dice, isLegacy)], dice),
    () => a.tuple(a.NONE, a.NONE),
    () => a.tuple(a.dict(), dictOf(attribute(dice, isLegacy), dice)),
    () => a.tuple(dictOf(attribute(dice, isLegacy), dice), a.NONE),
    () => a.join(a.EMPTY_LIST, a.tuple(...attribute(dice, isLegacy)), a.APPEND),
    () => a.tuple(floats(isLegacy), a.int(0), a.tuple(a.int(2)), a.tuple(a.int(1))),
    () => anyTruth(dice),
  ])();
}

const TYPES = [
  'float32',
  'float64',
  'float16',
  'bfloat16',
  'int64',
  'int32',
  'uint8',
  'bool',
  'complex64',
  'complex128',
  'complex32',
  'float8_e4m3fn',
] as const;

/** A storage of the hand-written files. Legacy ids end with a view. */
function storage(dice: Dice, isLegacy: boolean): Buffer {
  const untyped: readonly [string, string] = isLegacy
    ? ['torch', 'ByteStorage']
    : ['torch.storage', 'UntypedStorage'];
  const [type, key, length] = dice.pick([
    [a.global('torch', 'FloatStorage'), '0', 4],
    [a.global(...untyped), '1', 16],
    [a.global('torch', 'ComplexFloatStorage'), '2', 2],
  ] as const);
  const view = isLegacy ? { view: viewOf(length, dice) } : {};
  return a.storage({ type, key: a.text(key), length: a.int(length), ...view });
}

/** A part of a storage, mostly under its own key. */
function viewOf(length: number, dice: Dice): Buffer {
  if (dice.happens(0.3)) return a.join(a.NONE);
  const start = dice.below(length);
  const key = dice.happens(0.3) ? dice.below(10) : 10 + dice.below(1000);
  const most = length - start;
  return dice.pick([
    () => a.tuple(a.text('8'), a.int(2), a.int(2)),
    ...Array<() => Buffer>(6).fill(() =>
      a.tuple(
        a.text(`${key}`),
        a.int(start),
        a.int(dice.happens(0.7) ? most : 1 + dice.below(most)),
      ),
    ),
    () => a.tuple(a.text('7'), a.int(dice.below(16)), a.int(dice.below(16))),
  ])();
}

/** A tensor of any type on a part of a byte storage, possibly beginning within an element. */
function viewed(dice: Dice): Buffer {
  const start = dice.below(9);
  const view = a.tuple(a.text(`${2000 + start}`), a.int(start), a.int(16 - start));
  const type = a.global('torch', 'ByteStorage');
  return a.tensor({
    by: a.global('torch._utils', '_rebuild_tensor_v3'),
    storage: a.storage({ type, key: a.text('1'), length: a.int(16), view }),
    size: a.tuple(a.int(1)),
    rest: [a.global('torch', dice.pick(TYPES)), a.NONE],
  });
}

/** A tensor by either function, sometimes with flags. */
function tensor(dice: Dice, isLegacy: boolean): Buffer {
  if (isLegacy && dice.happens(0.2)) return viewed(dice);
  const isTyped = dice.happens(0.6);
  const more = dice.happens(0.3) ? [flags(dice)] : [];
  const size = dice.pick([0, 1, 1, 1, 2, 3]);
  return a.tensor({
    storage: storage(dice, isLegacy),
    offset: a.int(dice.pick([0, 0, 0, 0, 0, 1, 2])),
    size: a.tuple(a.int(size)),
    stride: a.tuple(a.int(dice.pick([1, 1, 1, 0, 2]))),
    requiresGrad: dice.happens(0.8) ? a.FALSE : truth(dice),
    ...(isTyped && { by: a.global('torch._utils', '_rebuild_tensor_v3') }),
    rest: isTyped ? [a.global('torch', dice.pick(TYPES)), ...more] : more,
  });
}

/** A tensor or a parameter, sometimes with a state. */
export function rebuilt(dice: Dice, isLegacy: boolean): Buffer {
  const value = dice.happens(0.8) ? tensor(dice, isLegacy) : a.get(2);
  const hooks = a.dict();
  const made = dice.pick([
    () => value,
    () => value,
    () => a.call(a.global('torch._utils', '_rebuild_parameter'), value, truth(dice), hooks),
    () =>
      a.call(
        a.global('torch._utils', '_rebuild_parameter_with_state'),
        ...[value, truth(dice), hooks, state(dice, isLegacy)],
      ),
  ])();
  return dice.happens(0.15) ? a.join(made, state(dice, isLegacy), a.BUILD) : made;
}
