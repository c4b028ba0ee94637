import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SingleFlight } from './single-flight.ts';

describe('SingleFlight', () => {
  it('concurrent calls with one key share one run, and a later call starts another', async () => {
    const flights = new SingleFlight<number>();
    const work = Promise.withResolvers<number>();
    let runs = 0;
    const start = (): Promise<number> => {
      runs += 1;
      return work.promise;
    };
    const calls = [flights.run('a', start), flights.run('a', start)];
    assert.equal(flights.isRunning('a'), true);
    work.resolve(1);
    assert.deepEqual(await Promise.all(calls), [1, 1]);
    assert.equal(flights.isRunning('a'), false);
    await flights.run('a', start);
    assert.equal(runs, 2);
  });

  it('calls with different keys run independently', async () => {
    const flights = new SingleFlight<string>();
    const results = await Promise.all(['a', 'b'].map((key) => flights.run(key, async () => key)));
    assert.deepEqual(results, ['a', 'b']);
  });

  it('a failure rejects every caller that joined, and the next call starts again', async () => {
    const flights = new SingleFlight<number>();
    const fail = (): Promise<number> => Promise.reject(new Error('broken'));
    const results = await Promise.allSettled([flights.run('a', fail), flights.run('a', async () => 1)]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.equal(await flights.run('a', async () => 2), 2);
  });
});
