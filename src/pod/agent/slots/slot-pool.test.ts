import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../../test/support/stubs.ts';
import type { Assignment } from '../../../gateway-api/pod-api.ts';
import type { RemoteDelivery } from '../../../gateway-client/bus.ts';
import type { Slot } from './slot.ts';
import { SlotPool } from './slot-pool.ts';

/** A pool whose slots work until the test ends them. */
function aPool() {
  const works: PromiseWithResolvers<void>[] = [];
  const errors: unknown[] = [];
  const refreshed: number[] = [];
  let opened = 0;
  let closed = 0;
  const open = (): Slot => {
    opened += 1;
    const number = opened;
    const worker = {
      handle: () => {
        const work = Promise.withResolvers<void>();
        works.push(work);
        return work.promise;
      },
      refreshTools: async () => void refreshed.push(number),
    };
    return {
      worker: worker as unknown as Slot['worker'],
      [Symbol.asyncDispose]: async () => {
        closed += 1;
      },
    };
  };
  const pool = new SlotPool(open, (error) => errors.push(error));
  const start = (): void => pool.start({} as RemoteDelivery, {} as Assignment);
  return { pool, works, errors, refreshed, start, opened: () => opened, closed: () => closed };
}

describe('the slots of a pod', () => {
  it('the pool waits for a free slot, uses idle slots again, and a stuck message keeps only its own slot', async () => {
    const { pool, works, start, opened } = aPool();
    start();
    start();
    let isFree = false;
    const waiting = async (): Promise<void> => {
      await pool.whenFree(2, NEVER_ABORTED);
      isFree = true;
    };
    const free = waiting();
    await Promise.resolve();
    assert.equal(isFree, false);
    works[1]?.resolve();
    await free;
    start();
    assert.equal(opened(), 2);
    works[2]?.resolve();
    await pool.whenFree(2, NEVER_ABORTED);
    assert.equal(opened(), 2, 'the first message is still in work');
    works[0]?.resolve();
    await pool.idle();
  });

  it('a change of tools reaches every message in work and no idle slot', async () => {
    const { pool, works, refreshed, start } = aPool();
    for (let message = 0; message < 3; message += 1) start();
    works[1]?.resolve();
    await pool.whenFree(3, NEVER_ABORTED);
    pool.refreshTools();
    assert.deepEqual(refreshed, [1, 3]);
    for (const work of works) work.resolve();
    await pool.idle();
  });

  it('a defect is reported and frees its slot, an aborted wait ends, and disposal waits for all work', async () => {
    const { pool, works, errors, start, closed } = aPool();
    start();
    start();
    works[0]?.reject(new Error('defect'));
    await pool.whenFree(2, NEVER_ABORTED);
    assert.match(String(errors[0]), /defect/);
    await pool.whenFree(1, AbortSignal.abort());
    const disposed = pool[Symbol.asyncDispose]();
    assert.equal(closed(), 0);
    works[1]?.resolve();
    await disposed;
    assert.equal(closed(), 2);
  });
});
