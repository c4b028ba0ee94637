import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { isTemperError } from '../lib/errors.ts';
import { ulids } from '../lib/ids.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { busContract } from './contract.test.ts';
import { createMemoryBus } from './memory.ts';

busContract('memory', (settings) => createMemoryBus({ clock: systemClock, ids: ulids, ...settings }));

const op = (key: string): CallOptions => ({
  signal: new AbortController().signal,
  deadline: Number.POSITIVE_INFINITY,
  key,
});

describe('the in-memory bus', () => {
  it('the inbox refuses messages beyond its limit, and accepts the same message once another was acknowledged', async () => {
    const bus = createMemoryBus({ clock: systemClock, ids: ulids, maxWaiting: 1 });
    const draft = { to: 'analyst', session: 's', text: 'x' };
    await bus.client('ann').send(draft, op('1'));
    await assert.rejects(bus.client('ann').send(draft, op('2')), (error) =>
      isTemperError(error, 'TEMPER_QUOTA_EXCEEDED'),
    );
    await (await bus.agent('analyst').next(op('next'))).ack();
    assert.equal((await bus.client('ann').send(draft, op('2'))).duplicate, false);
    bus.close();
  });
  it('a slow subscriber receives the number of events it lost', async () => {
    const bus = createMemoryBus({ clock: systemClock, ids: ulids });
    const events = bus.client('ann').events(['e'], op('events'))[Symbol.asyncIterator]();
    for (let data = 0; data < 1_003; data += 1) bus.publish({ type: 'e', agent: 'a', time: '', data });
    assert.deepEqual((await events.next()).value.data, { events: 3 });
    assert.equal((await events.next()).value.data, 3);
    await events.return?.();
    bus.close();
  });
  it('closing the bus ends every wait', async () => {
    const bus = createMemoryBus({ clock: systemClock, ids: ulids });
    const waiting = bus.agent('analyst').next(op('next'));
    bus.close();
    await assert.rejects(waiting, (error) => isTemperError(error, 'TEMPER_CANCELLED'));
  });
});
