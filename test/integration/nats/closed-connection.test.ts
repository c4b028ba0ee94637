import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isTemperError } from '../../../src/lib/errors.ts';
import { createNatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { subjects } from '../../../src/nats/jetstream/names.ts';
import { newUid, type NatsFixture, startNatsFixture } from '../../support/nats/nats-fixture.ts';
import { poll } from '../../support/poll.ts';

const TIMEOUT_MS = 60_000;

describe('a connection that closes and will not reconnect', () => {
  let nats: NatsFixture;
  before(async () => {
    nats = await startNatsFixture();
  });
  after(async () => {
    await nats?.[Symbol.asyncDispose]();
  });

  it('a call that waits for a message throws, and so do later calls', async () => {
    const connection = await nats.connect('gateway');
    const inbox = createNatsInbox(connection);
    const uid = newUid();
    const isUnavailable = (error: unknown) => isTemperError(error, 'TEMPER_BUS_UNAVAILABLE');
    const waiting = assert.rejects(inbox.fetchNext(uid, TIMEOUT_MS, AbortSignal.timeout(TIMEOUT_MS)), isUnavailable);
    await poll('the waiting call', () => nats.hasSubscription(subjects.notifyInbox(uid)));
    await connection[Symbol.asyncDispose]();
    await waiting;
    await assert.rejects(inbox.fetchNext(uid, TIMEOUT_MS, AbortSignal.timeout(TIMEOUT_MS)), isUnavailable);
    assert.equal(await inbox.fetchNext(uid, TIMEOUT_MS, AbortSignal.abort()), undefined);
  });
});
