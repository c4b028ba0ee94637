import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { errors } from '@nats-io/transport-node';
import { natsError } from './errors.ts';

describe('errors of NATS', () => {
  it('a write that nothing responds to may be repeated, because its stream has no leader at the moment', () => {
    // The client throws a class for it that it does not export.
    const cause = new errors.RequestError('no responders', { cause: new errors.NoRespondersError('subject') });
    const { code, retry } = natsError(new Error('jetstream is not enabled', { cause }), 'publishing');
    assert.deepEqual([code, retry], ['TEMPER_BUS_UNAVAILABLE', 'backoff']);
  });

  it('an error of unknown origin is an internal error', () => {
    assert.equal(natsError(new Error('no'), 'publishing').code, 'TEMPER_INTERNAL');
  });
});
