/** Work of generators in advance. */

/**
 * Requests items of a generator before the previous ones are used, so that threads work in the meantime.
 * @param count How many.
 */
export async function* ahead<Item>(
  items: AsyncGenerator<Item>,
  count: () => number,
): AsyncGenerator<Item> {
  const waiting: Promise<IteratorResult<Item>>[] = [];
  const request = () => {
    const next = items.next();
    // Reported when it is awaited.
    next.catch(() => {});
    waiting.push(next);
    return next;
  };
  try {
    for (let next = request(); ; next = waiting[0] ?? request()) {
      const { done, value } = await next;
      if (done) return;
      waiting.shift();
      while (waiting.length < count()) request();
      yield value;
    }
  } finally {
    await Promise.allSettled(waiting);
    await items.return(undefined);
  }
}
