/** Returns a function that runs asynchronous work, at most `limit` at a time, in call order. */
export function limitConcurrency(limit: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      // Passes the slot to the next waiter directly; a decrement here would let a new caller take it first.
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
