/** Limits that a model is held against, for continuous integration. */
import type { Exact, Figure } from './figure.js';
import type { ModelProfile } from './profile.js';

/** What can be limited: the flag, and the figure that it speaks of. */
export const LIMITS = {
  'max-params': (profile: ModelProfile) => profile.parameters.total,
  'max-memory': (profile: ModelProfile) => profile.inference.total,
  'max-kv-cache': (profile: ModelProfile) => profile.inference.state.keyValueCache,
  'max-training-memory': (profile: ModelProfile) => profile.training.total,
  'max-flops': (profile: ModelProfile) => profile.forwardFlops.total,
} as const satisfies Record<string, (profile: ModelProfile) => Figure>;

export type LimitName = keyof typeof LIMITS;

export interface LimitCheck {
  readonly limit: LimitName;
  readonly figure: Figure;
  readonly allowed: Exact;
  readonly passed: boolean;
}

/** Holds a profile against the limits that are given. */
export function checkLimits(
  profile: ModelProfile,
  limits: Readonly<Partial<Record<LimitName, Exact | undefined>>>,
): LimitCheck[] {
  return (Object.keys(LIMITS) as LimitName[]).flatMap((limit) => {
    const allowed = limits[limit];
    if (allowed === undefined) return [];
    const figure = LIMITS[limit](profile);
    return [{ limit, figure, allowed, passed: figure.value <= allowed }];
  });
}
