import type { Storage } from './values.js';
import type { Writable, WritableTensor } from './write-values.js';

export interface Leaf {
  readonly leaf: WritableTensor | Storage;
  /** The keys that lead to it: `model.embed.weight`. */
  readonly name: string;
}

/** Every tensor and storage that a value holds, each once, in the order in which it is written. */
export function* leavesOf(root: Writable): Generator<Leaf, void, void> {
  const seen = new Set<Writable>();
  const stack = [{ value: root, name: '' }];
  for (let step = stack.pop(); step; step = stack.pop()) {
    const { value, name } = step;
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) continue;
    if (seen.has(value)) continue;
    seen.add(value);
    if (value.kind === 'tensor' || value.kind === 'storage') yield { leaf: value, name };
    // What is pushed last is looked at first.
    for (const [key, part] of partsOf(value).reverse()) {
      stack.push({ value: part, name: name && key ? `${name}.${key}` : name || key });
    }
  }
}

/** What a container holds, each part with the text of its key. */
function partsOf(value: Exclude<Extract<Writable, object>, Uint8Array>): [string, Writable][] {
  switch (value.kind) {
    case 'dict':
      return [...value.entries].flatMap(([key, part]): [string, Writable][] => [
        ['', key],
        [keyText(key), part],
      ]);
    case 'list':
    case 'tuple':
      return value.items.map((part, index) => [`${index}`, part]);
    case 'set':
      return [...value.items].map((part) => ['', part]);
    case 'opaque':
      return [
        ['', value.args],
        ['', value.state ?? null],
      ];
    case 'float':
    case 'global':
    case 'storage':
    case 'tensor':
      return [];
  }
}

const keyText = (key: Writable) => (typeof key === 'object' ? '' : `${key}`);
