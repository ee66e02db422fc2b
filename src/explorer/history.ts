/** States to return to. */
export interface History<State> {
  readonly past: readonly State[];
  readonly present: State;
  readonly future: readonly State[];
  /** Name of the last change; changes of one name in a row are one step. */
  readonly change: string | undefined;
}

/** Most steps that can be undone. */
const MOST_STEPS = 200;

export const historyOf = <State>(present: State): History<State> => ({
  past: [],
  present,
  future: [],
  change: undefined,
});

/**
 * The history with a new state.
 * @param change Name of a change that continues, as the drag of a slider; undefined for a step of its own.
 */
export function extendedHistory<State>(
  history: History<State>,
  next: State,
  change?: string,
): History<State> {
  const { past, present } = history;
  if (next === present) return history;
  const continues = change !== undefined && change === history.change;
  const kept = continues ? past : [...past, present].slice(-MOST_STEPS);
  return { past: kept, present: next, future: [], change };
}

export function undone<State>(history: History<State>): History<State> {
  const { past, present, future } = history;
  const last = past.at(-1);
  if (last === undefined) return history;
  return {
    past: past.slice(0, -1),
    present: last,
    future: [present, ...future],
    change: undefined,
  };
}

export function redone<State>(history: History<State>): History<State> {
  const { past, present, future } = history;
  const [next] = future;
  if (next === undefined) return history;
  return {
    past: [...past, present],
    present: next,
    future: future.slice(1),
    change: undefined,
  };
}
