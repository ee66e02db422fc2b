/** Binary heap of sequences by the step in which they end. */

export interface Timed {
  /** Step that ends the sequence. */
  readonly finish: number;
}

export const earliest = <T extends Timed>(heap: readonly T[]): T | undefined => heap[0];

export function insert<T extends Timed>(heap: T[], item: T): void {
  let at = heap.length;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const above = heap[parent] as T;
    if (above.finish <= item.finish) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = item;
}

/** Removes the first one; the heap must not be empty. */
export function takeEarliest<T extends Timed>(heap: T[]): T {
  const first = heap[0] as T;
  const last = heap.pop() as T;
  if (heap.length > 0) sink(heap, last);
  return first;
}

function sink<T extends Timed>(heap: T[], item: T): void {
  let at = 0;
  for (let child = 1; child < heap.length; child = 2 * at + 1) {
    const other = child + 1;
    const isOtherFirst =
      other < heap.length && (heap[other] as T).finish < (heap[child] as T).finish;
    const next = isOtherFirst ? other : child;
    if ((heap[next] as T).finish >= item.finish) break;
    heap[at] = heap[next] as T;
    at = next;
  }
  heap[at] = item;
}
