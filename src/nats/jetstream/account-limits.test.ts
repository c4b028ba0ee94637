import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { accountProblems, desiredStreams } from './topology.ts';

describe('limits of the NATS account', () => {
  it('each limit of an account that is too low is named with its value and the need', () => {
    const all = desiredStreams();
    const account = (limits: object) => ({
      limits: { max_consumers: -1, max_streams: -1, max_storage: -1, ...limits },
    });
    const problems = (limits: object) => accountProblems(account(limits) as Parameters<typeof accountProblems>[0], all);
    assert.deepEqual(problems({}), []);
    assert.match(problems({ max_consumers: 100 }).join(), /max_consumers of the NATS account is 100.* 1000/);
    assert.match(problems({ max_streams: 3 }).join(), /max_streams .* 3,/);
    assert.match(problems({ max_storage: 1_000_000 }).join(), /max_storage/);
  });
});
