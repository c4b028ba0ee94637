import assert from 'node:assert/strict';
import type { HttpResponse } from '../gateway-fixture.ts';

/** Calls by their status; 0 for those whose connection the gateway closed. */
export type StatusCounts = ReadonlyMap<number, number>;

/** Makes `count` calls, at most `concurrency` at a time. */
export async function flood(
  count: number,
  call: (index: number) => Promise<Pick<HttpResponse, 'status'>>,
  concurrency = 16,
): Promise<StatusCounts> {
  const counts = new Map<number, number>();
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) {
      const index = next;
      next += 1;
      const status = await call(index).then(
        (response) => response.status,
        () => 0,
      );
      counts.set(status, (counts.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: Math.min(count, concurrency) }, work));
  return counts;
}

/** Calls in one round, and the rounds after which a limit that was not reached is none. */
const ROUND = 600;
const MAX_ROUNDS = 10;

/** Floods in rounds until the calls suffice: on a slow machine a limit is refilled as fast as one round uses it. */
export async function floodUntil(
  suffices: (counts: StatusCounts) => boolean,
  call: (index: number) => Promise<Pick<HttpResponse, 'status'>>,
  concurrency?: number,
): Promise<StatusCounts> {
  const all = new Map<number, number>();
  for (let round = 0; round < MAX_ROUNDS && !suffices(all); round += 1) {
    const counts = await flood(ROUND, (index) => call(round * ROUND + index), concurrency);
    for (const [status, count] of counts) all.set(status, (all.get(status) ?? 0) + count);
  }
  return all;
}

/** Asserts that the gateway answered with these statuses alone, and with `required` at least once. 503 is always possible on a busy machine. */
export function assertStatuses(
  counts: StatusCounts,
  allowed: readonly number[],
  required: readonly number[] = [],
): void {
  const seen = [...counts].map(([status, count]) => `${status} ×${count}`).join(', ');
  for (const status of counts.keys())
    assert.ok(status === 503 || allowed.includes(status), `the gateway answered ${seen}`);
  for (const status of required) assert.ok(counts.has(status), `the gateway answered ${seen}, and never ${status}`);
}
