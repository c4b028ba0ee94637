import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { SerialQueue } from './serial-queue.ts';

describe('SerialQueue', () => {
  it('work runs one at a time and in order, and each call gets its own result, whatever fails', async () => {
    const tasks = fc.array(fc.record({ turns: fc.nat(3), fails: fc.boolean() }), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(tasks, async (specs) => {
        const queue = new SerialQueue();
        const started: number[] = [];
        let running = 0;
        const results = specs.map(({ turns, fails }, index) =>
          queue.run(async () => {
            started.push(index);
            assert.equal((running += 1), 1);
            for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
            running -= 1;
            if (fails) throw new Error(`failure ${index}`);
            return index;
          }),
        );
        assert.equal(queue.size, specs.length);
        await queue.idle();
        assert.deepEqual(
          started,
          specs.map((_, index) => index),
        );
        const settled = await Promise.allSettled(results);
        assert.equal(queue.size, 0);
        for (const [index, result] of settled.entries()) {
          if (result.status === 'fulfilled') assert.equal(result.value, index);
          else assert.equal((result.reason as Error).message, `failure ${index}`);
          assert.equal(result.status === 'rejected', specs[index]?.fails);
        }
      }),
    );
  });

  it('work never starts within the call of run', async () => {
    const queue = new SerialQueue();
    let started = false;
    const result = queue.run(async () => {
      started = true;
    });
    assert.equal(started, false);
    await result;
    assert.equal(started, true);
  });
});
