import type { Family } from './family.js';

/** The registry, one line a family; each is loaded when it is needed. */
export const FAMILIES = {
  hybrid: async () => (await import('./models/hybrid.js')).hybrid,
  minimind: async () => (await import('./models/minimind.js')).minimind,
  minigpt: async () => (await import('./models/minigpt.js')).minigpt,
  llama: async () => (await import('./models/llama.js')).llama,
} as const satisfies Record<string, () => Promise<Family>>;

export type FamilyName = keyof typeof FAMILIES;

export const FAMILY_NAMES = Object.keys(FAMILIES) as readonly FamilyName[];

/** What a document without `model.family` means. */
export const DEFAULT_FAMILY: FamilyName = 'hybrid';

export function isFamilyName(name: unknown): name is FamilyName {
  return typeof name === 'string' && Object.hasOwn(FAMILIES, name);
}

export async function loadFamily(name: FamilyName): Promise<Family> {
  return FAMILIES[name]();
}
