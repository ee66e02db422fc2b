/** JSON and YAML with a value or a letter changed. */
import { type Dice, mutateBytes } from './dice.js';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Numbers at the edges; large ones are refused before anything is built. */
const NUMBERS = [0, -1, 1, 2, 3, 7, 0.5, 1e9, 2 ** 31, 2 ** 53, 1e308, -0] as const;
const STRINGS = [
  '',
  '0',
  'F32',
  '__proto__',
  'constructor',
  'toString',
  'null',
  '\ud800',
  'é\u202e',
  '../x',
] as const;

function otherValue(value: Json, dice: Dice): Json {
  if (typeof value === 'number' && dice.happens(0.6)) return value + dice.pick([1, -1, 8, -8]);
  return dice.pick<Json>([
    dice.pick(NUMBERS),
    dice.pick(NUMBERS),
    dice.pick(STRINGS),
    null,
    true,
    false,
    [],
    {},
    [value],
    { x: value },
    { toString: value },
  ]);
}

/** A value with one change at any depth: replaced, removed, moved to another key, or doubled. */
function mutateValue(value: Json, dice: Dice): Json {
  if (typeof value !== 'object' || value === null) return otherValue(value, dice);
  const keys = Object.keys(value);
  if (keys.length === 0 || dice.happens(0.05)) return otherValue(value, dice);
  const key = dice.pick(keys);
  if (Array.isArray(value)) {
    const index = Number(key);
    const item = value[index] ?? null;
    const items = dice.happens(0.7)
      ? [mutateValue(item, dice)]
      : dice.pick<Json[]>([[], [item, item]]);
    return value.toSpliced(index, 1, ...items);
  }
  const entries = Object.entries(value);
  const at = keys.indexOf(key);
  const part = value[key] ?? null;
  const changed = dice.happens(0.75)
    ? [[key, mutateValue(part, dice)] as const]
    : dice.pick([
        [],
        [[dice.pick(keys), part] as const],
        [[dice.pick(STRINGS), part] as const],
        [[key, part] as const, [`${key}x`, part] as const],
      ]);
  return Object.fromEntries(
    entries.toSpliced(at, 1, ...changed.map(([k, v]): [string, Json] => [k, v])),
  );
}

/** JSON with one to three changes of its values, or a change of its bytes. */
export function mutateJson(text: string, dice: Dice): Buffer {
  if (dice.happens(0.2)) return mutateBytes(Buffer.from(text), dice);
  let value = JSON.parse(text) as Json;
  for (let count = dice.pick([1, 1, 2, 3]); count > 0; count--) value = mutateValue(value, dice);
  return Buffer.from(JSON.stringify(value));
}

const PIECES = [
  '- ',
  ': ',
  '{',
  '}',
  '[',
  ']',
  '&a ',
  '*a',
  '<<: ',
  '!!str ',
  '|',
  '"',
  "'",
  '#',
  '\t',
  '? ',
  '---\n',
  '0x10',
  '1e3',
  '.nan',
  '~',
  '\0',
] as const;

/** YAML with one to three changes of its lines and values, sometimes also of its bytes. */
export function mutateYaml(text: string, dice: Dice): Buffer {
  let lines = text.split('\n');
  for (let count = dice.pick([1, 1, 2, 3]); count > 0; count--) {
    const at = dice.below(lines.length);
    const line = lines[at] ?? '';
    const column = dice.below(line.length + 1);
    const changed = dice.pick<readonly string[]>([
      [],
      [line, line],
      [line, dice.pick(lines)],
      [` ${line}`],
      [line.slice(0, column) + dice.pick(PIECES) + line.slice(column)],
      [line.replace(/: *[^#]*/, `: ${dice.pick(NUMBERS)} `)],
      [line.replace(/: *[^#]*/, `: ${JSON.stringify(dice.pick(STRINGS))} `)],
      [line.replace(/: *[^#]*/, `: ${dice.pick(PIECES)} `)],
    ]);
    lines = lines.toSpliced(at, 1, ...changed);
  }
  const mutated = Buffer.from(lines.join('\n'));
  return dice.happens(0.1) ? mutateBytes(mutated, dice) : mutated;
}

/** A safetensors file with a changed header and matching length, or with changed bytes. */
export function mutateSafetensors(bytes: Buffer, dice: Dice): Buffer {
  if (dice.happens(0.2)) return mutateBytes(bytes, dice);
  const end = 8 + Number(bytes.readBigUInt64LE());
  const header = mutateJson(bytes.toString('utf8', 8, end), dice);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length + (dice.happens(0.05) ? dice.pick([-1, 1]) : 0)));
  const data = bytes.subarray(end);
  return Buffer.concat([length, header, dice.happens(0.3) ? mutateBytes(data, dice) : data]);
}
