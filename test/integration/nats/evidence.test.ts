import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../../src/lib/errors.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import { createSessionEvents, type SessionEvent } from '../../../src/nats/session-events.ts';
import { messageEvent, newUid } from '../../support/nats/nats-fixture.ts';
import { useNats } from '../../support/nats/nats-suite.ts';

const nats = useNats();

const reply = (message: string): SessionEvent => ({ kind: 'reply', message, text: 'done', finishReason: 'complete' });
const record = (evidence: 'observed' | 'reported', size = 10) =>
  ({ action: 'tool.accepted', actor: 'agent/a', evidence, subject: 'x', facts: { text: 'x'.repeat(size) } }) as const;

describe('replies', () => {
  it('a reply survives a flood of events of its own session, for readers and followers', async () => {
    await nats.operator.manager.streams.update('temper-events', { max_msgs_per_subject: 3 });
    const events = createSessionEvents(nats.gateway);
    const uid = newUid();
    const before = await events.append(uid, 's', messageEvent('before'));
    const seq = await events.append(uid, 's', reply('m-1'));
    for (let index = 0; index < 5; index += 1) await events.append(uid, 's', messageEvent(`flood ${index}`));
    const lines = await events.read(uid, 's', before, 100);
    assert.deepEqual(
      lines.map(({ kind }) => kind),
      ['reply', 'event', 'event', 'event'],
    );
    assert.equal(lines[0]?.seq, seq);
    const stop = new AbortController();
    const followed: string[] = [];
    for await (const line of events.follow(uid, 's', { after: before, signal: stop.signal })) {
      followed.push(line.kind);
      if (followed.length === 4) stop.abort();
    }
    assert.deepEqual(followed, ['reply', 'event', 'event', 'event']);
  });
  it('a reply survives a flood of events of other agents that fills the stream', async () => {
    await nats.operator.manager.streams.update('temper-events', {
      max_msgs_per_subject: 10_000,
      max_bytes: 64 * 1_024,
    });
    const events = createSessionEvents(nats.gateway);
    const [victim, hostile] = [newUid(), newUid()];
    const before = await events.lastSequence(victim, 's');
    await events.append(victim, 's', reply('m-1'));
    for (let index = 0; index < 10; index += 1) {
      await events.append(hostile, 's', messageEvent(String(index).repeat(16 * 1_024)));
    }
    const lines = await events.read(victim, 's', before, 10);
    assert.deepEqual(
      lines.map((line) => line.kind === 'reply' && line.message),
      ['m-1'],
    );
    assert.equal(await events.lastSequence(victim, 's'), lines[0]?.seq);
  });
  it('a reply that is stored in both streams is read once, also after a repeated call', async () => {
    const events = createSessionEvents(nats.gateway);
    const uid = newUid();
    const first = await events.append(uid, 's', reply('m-1'));
    assert.equal(await events.append(uid, 's', reply('m-1')), first);
    assert.equal((await events.read(uid, 's', 0, 10)).length, 1);
    const { state } = await nats.gateway.manager.streams.info('temper-replies', {
      subjects_filter: `temper.replies.${uid}.s`,
    });
    assert.deepEqual(Object.values(state.subjects ?? {}), [1]);
  });
});

describe('evidence', () => {
  it('no number of reports removes an observed record', async () => {
    await nats.operator.manager.streams.update('temper-reports', { max_bytes: 64 * 1_024 });
    const audit = createNatsAudit(nats.gateway);
    await audit.append({ namespace: 'team-a', agentUid: 'victim' }, record('observed'));
    for (let index = 0; index < 20; index += 1) {
      await audit.append({ namespace: 'team-a', agentUid: 'hostile' }, record('reported', 16_000));
    }
    assert.equal((await audit.read('team-a', 'observed', 0, 10)).length, 1);
    assert.ok((await audit.read('team-a', 'reported', 0, 100)).length < 20);
  });
  it('the reports of one agent push out its own first', async () => {
    const limits = { max_bytes: 10 * 1_024 * 1_024, max_msgs_per_subject: 3 };
    await nats.operator.manager.streams.update('temper-reports', limits);
    const audit = createNatsAudit(nats.gateway);
    await audit.append({ namespace: 'team-r', agentUid: 'quiet' }, { ...record('reported'), subject: 'quiet' });
    for (let index = 0; index < 5; index += 1) {
      await audit.append({ namespace: 'team-r', agentUid: 'loud' }, { ...record('reported'), subject: 'loud' });
    }
    const subjects = (await audit.read('team-r', 'reported', 0, 100)).map(({ subject }) => subject);
    assert.deepEqual(subjects, ['quiet', 'loud', 'loud', 'loud']);
  });
  it('the work of one agent replaces its own oldest records, and keeps no decision of its namespace from being recorded', async () => {
    await nats.operator.manager.streams.update('temper-activity', { max_msgs_per_subject: 3 });
    await nats.operator.manager.streams.update('temper-audit', { max_msgs_per_subject: 2 });
    const audit = createNatsAudit(nats.gateway);
    const work = (agentUid: string, action: string) =>
      audit.append({ namespace: 'team-w', agentUid }, { ...record('observed'), action, subject: agentUid });
    await work('quiet', 'tool.brokered');
    for (const action of ['tool.call-started', 'tool.brokered', 'session.closed', 'schedule.created'])
      await work('busy', action);
    await audit.append({ namespace: 'team-w', agentUid: 'quiet' }, { ...record('observed'), action: 'approval.used' });
    const actions = (await audit.all('team-w', 10)).map(({ subject, action }) => `${subject} ${action}`);
    // Records of two streams with the time of the same millisecond have no order.
    assert.deepEqual(
      actions.filter((action) => action !== 'x approval.used'),
      ['quiet tool.brokered', 'busy tool.brokered', 'busy session.closed', 'busy schedule.created'],
    );
    assert.equal(actions.length, 5);
    assert.deepEqual(
      (await audit.read('team-w', 'observed', 0, 10)).map(({ action }) => action),
      ['approval.used'],
    );
  });
  it('one of two processes that record the start of a call is the first', async () => {
    const start = { ...record('observed'), action: 'tool.call-started' };
    const first = (namespace: string): Promise<boolean> =>
      createNatsAudit(nats.gateway).appendFirst({ namespace, agentUid: 'once' }, start, 'call-1');
    const both = await Promise.all([first('team-o'), first('team-o')]);
    assert.deepEqual(new Set(both), new Set([true, false]));
    assert.equal(await first('team-p'), true);
    assert.equal((await createNatsAudit(nats.gateway).all('team-o', 10)).length, 1);
  });
  it('an observed record that does not fit is refused, and the earlier ones and other namespaces are not affected', async () => {
    await nats.operator.manager.streams.update('temper-audit', { max_msgs_per_subject: 2 });
    const audit = createNatsAudit(nats.gateway);
    const append = (namespace: string) => audit.append({ namespace, agentUid: 'a' }, record('observed'));
    const first = await append('team-full');
    await append('team-full');
    await assert.rejects(append('team-full'), (error) => isTemperError(error, 'TEMPER_BUS_FULL'));
    await append('team-other');
    assert.equal((await audit.read('team-full', 'observed', 0, 10))[0]?.seq, first);
  });
});
