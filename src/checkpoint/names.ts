/** Names as a model gives them, out of names as a file has them. Knows no model. */
import { refusal } from './refusal.js';

/** What wrappers put before every name: data parallelism, and compilation. */
const WRAPPERS = ['module.', '_orig_mod.'] as const;

/** What compiling a part of a model puts among the parts of a name. */
const COMPILED = '_orig_mod';

/**
 * Each name of a file → the name without what wrappers added: `module.` and `_orig_mod.` at the front, in
 * any order and number, only where every name has them; `._orig_mod.` inside a name always. In the order
 * of `names`.
 *
 * @param file For the message.
 * @throws UserError when two names become one.
 */
export function canonicalNames(names: Iterable<string>, file: string): ReadonlyMap<string, string> {
  const own = [...names];
  const stripped = withoutWrappers(own.map(withoutCompiledParts));
  const canonical = new Map<string, string>();
  const owners = new Map<string, string>();
  for (const [index, name] of own.entries()) {
    const short = stripped[index] ?? name;
    const owner = owners.get(short);
    if (owner !== undefined && owner !== name) {
      throw refusal(file, {
        rule: 'names-collide',
        place: `tensor ${JSON.stringify(name)}`,
        message: `is ${JSON.stringify(short)} without the prefixes of wrappers, and so is tensor ${JSON.stringify(owner)}`,
        suggestion: 'save the state dict of the model itself, not of its wrapper',
      });
    }
    owners.set(short, name);
    canonical.set(name, short);
  }
  return canonical;
}

function withoutCompiledParts(name: string): string {
  if (!name.includes(`.${COMPILED}.`)) return name;
  const isInside = (index: number, parts: readonly string[]) =>
    index > 0 && index < parts.length - 1;
  return name
    .split('.')
    .filter((part, index, parts) => part !== COMPILED || !isInside(index, parts))
    .join('.');
}

function withoutWrappers(names: readonly string[]): readonly string[] {
  let rest = names;
  // Each round shortens every name, so the rounds end.
  for (;;) {
    const prefix = WRAPPERS.find((wrapper) => rest.every((name) => name.startsWith(wrapper)));
    if (prefix === undefined || rest.length === 0) return rest;
    rest = rest.map((name) => name.slice(prefix.length));
  }
}

/** `0`, or up to five ASCII digits without a leading zero. */
const LAYER_NUMBER = /^(?:0|[1-9]\d{0,4})$/;

/** The number that a part of a name is, when it may be the number of a layer. */
export function layerNumber(text: string): number | undefined {
  return LAYER_NUMBER.test(text) ? Number(text) : undefined;
}
