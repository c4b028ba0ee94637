import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { createNatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { accountProblems, desiredStreams } from '../../../src/nats/jetstream/topology.ts';
import { newMessage, newUid, startNatsFixture, type NatsFixture } from '../../support/nats/nats-fixture.ts';

const AGENTS = 1_100;
const BATCH = 50;
const TIMEOUT_MS = 20_000;
let bus: NatsFixture;
let gateway: JetStreamConnection;
before(async () => {
  bus = await startNatsFixture();
  gateway = await bus.connect('gateway');
});
after(async () => {
  await bus[Symbol.asyncDispose]();
});

describe('limits of consumers', () => {
  it(`each of ${AGENTS} agents gets its message`, { timeout: 300_000 }, async () => {
    const inbox = createNatsInbox(gateway);
    const deliver = async (): Promise<string | undefined> => {
      const uid = newUid();
      await inbox.publish(uid, { uid, key: 'k' }, newMessage(uid));
      const delivery = await inbox.fetchNext(uid, TIMEOUT_MS, AbortSignal.timeout(TIMEOUT_MS));
      return delivery?.message.text === uid ? uid : undefined;
    };
    for (let done = 0; done < AGENTS; done += BATCH) {
      const delivered = await Promise.all(Array.from({ length: BATCH }, deliver));
      assert.ok(!delivered.includes(undefined), `of agents ${done} to ${done + BATCH} one got no message`);
    }
  });
  it('each limit of an account that is too low is named with its value and the need', () => {
    const all = desiredStreams();
    const account = (limits: object) => ({
      limits: { max_consumers: -1, max_streams: -1, max_storage: -1, ...limits },
    });
    const problems = (limits: object) => accountProblems(account(limits) as Parameters<typeof accountProblems>[0], all);
    assert.deepEqual(problems({}), []);
    assert.match(problems({ max_consumers: 1_000 }).join(), /max_consumers of the NATS account is 1000.* 100000/);
    assert.match(problems({ max_streams: 3 }).join(), /max_streams .* 3,/);
    assert.match(problems({ max_storage: 1_000_000 }).join(), /max_storage/);
  });
});
