import assert from 'node:assert/strict';
import { it } from 'node:test';
import { SESSION_IDLE_MS } from '../../../../src/agent/session/session-age.ts';
import { createNatsAudit } from '../../../../src/nats/audit.ts';
import { openSessionRegistry } from '../../../../src/nats/sessions/session-registry.ts';
import { createSessionStore } from '../../../../src/nats/sessions/session-store.ts';
import { sessionTool } from '../../../../src/tempering/registry/registered-tool.ts';
import { aCaller, anAcceptance, anArtifact } from '../../../../src/tempering/tempering.testing.ts';
import { clockAt } from '../../../support/clocks.ts';
import type { MessageClient } from '../../../support/gateway/message-client.ts';
import { pollAssertion } from '../../../support/poll.ts';

/** Half a day before which a session is idle. */
const LONG_AGO_MS = SESSION_IDLE_MS + 12 * 3_600_000;

export function idleSessionTests(open: () => MessageClient): void {
  it('a gateway closes an idle session with its history and tools, and none that has an unread message or is in use', async () => {
    const messages = open();
    const { fixture } = messages;
    const { uid } = await fixture.createRunningAgent('team-a', 'idle');
    const now = await fixture.nats.connect('gateway');
    const past = await fixture.nats.connect(
      'gateway',
      clockAt(() => Date.now() - LONG_AGO_MS),
    );
    const [sessions, before] = [createSessionStore(now, uid), createSessionStore(past, uid)];
    const registry = openSessionRegistry(now);
    for (const session of ['idle', 'unread', 'resumed', 'recent']) {
      await (session === 'recent' ? sessions : before).append(session, 0, [{ role: 'user', text: session }]);
      const tool = sessionTool(anAcceptance(anArtifact(session)), aCaller({ agent: 'idle', session }), 'then');
      await registry.register(uid, tool, () => []);
    }
    await messages.sendMessage('idle', 'a question', 'unread');
    assert.equal((await sessions.load('resumed')).seq, 1, 'a session is in use from its first read on');
    const replica = await fixture.startReplica();
    await pollAssertion('the idle session to be closed', async () =>
      assert.deepEqual((await sessions.list()).map(({ session }) => session).toSorted(), [
        'recent',
        'resumed',
        'unread',
      ]),
    );
    await replica.stop();
    assert.deepEqual((await registry.allTools(uid)).map(({ owner }) => owner.session).toSorted(), [
      'recent',
      'resumed',
      'unread',
    ]);
    const records = (await createNatsAudit(now).all('team-a', 1_000)).filter(({ facts }) => facts['agent'] === 'idle');
    assert.deepEqual(
      records.map(({ action, actor, subject, facts }) => [action, actor, subject, facts['tools'], facts['reason']]),
      [['session.closed', 'system', 'idle', 1, 'Idle']],
    );
    assert.deepEqual(await sessions.load('idle'), { seq: 0, items: [], tainted: false });
    assert.equal(await sessions.append('idle', 0, [{ role: 'user', text: 'again' }]), 1, 'its id is free again');
  });

  it('a session that is used while a gateway closes it keeps its history, and a crash in between loses nothing but the session', async () => {
    const { fixture } = open();
    const { uid } = await fixture.createRunningAgent('team-a', 'racing-idle');
    const now = await fixture.nats.connect('gateway');
    const past = await fixture.nats.connect(
      'gateway',
      clockAt(() => Date.now() - LONG_AGO_MS),
    );
    const [sessions, other, before] = [now, now, past].map((bus) => createSessionStore(bus, uid));
    assert.ok(sessions !== undefined && other !== undefined && before !== undefined);
    for (const session of ['used', 'crashed']) await before.append(session, 0, [{ role: 'user', text: session }]);
    const since = Date.now() - SESSION_IDLE_MS;
    const unused = await sessions.unused({ open: since, closed: 0 });
    assert.deepEqual(unused.map(({ session }) => session).toSorted(), ['crashed', 'used']);
    await other.load('used');
    const unexpected = () => Promise.reject(new Error('the rest of a session in use was removed'));
    assert.equal(await sessions.discard('used', since, unexpected), false);
    assert.equal(await other.append('used', 1, [{ role: 'user', text: 'more' }]), 2);
    assert.equal((await sessions.load('used')).seq, 2);
    await assert.rejects(
      sessions.discard('crashed', since, () => Promise.reject(new Error('killed'))),
      /killed/,
    );
    assert.deepEqual(
      (await other.unused({ open: since, closed: 0 })).map(({ session }) => session),
      ['crashed'],
    );
    assert.equal(await other.discard('crashed', since, async () => undefined), true);
    assert.deepEqual(await sessions.unused({ open: since, closed: 0 }), []);
    assert.equal(await sessions.exists('crashed'), false);
  });
}
