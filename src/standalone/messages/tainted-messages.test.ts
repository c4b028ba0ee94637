import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callOptions } from '../../../test/support/call-options.ts';
import type { HandledMessage } from '../../agent/loop/loop.ts';
import { createRecordSessionStore } from '../../agent/session/session-store.ts';
import type { Envelope } from '../../bus/port.ts';
import type { Engine } from '../../engine/engine.ts';
import { systemClock } from '../../lib/clock.ts';
import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import type { Member } from '../team/member.ts';
import type { OpenedAgent } from '../team/opened-agent.ts';
import { Dispatcher } from './dispatcher.ts';
import { LocalAsks } from './local-asks.ts';
import { localBus } from './local-bus.ts';
import { LocalInboxes } from './local-inbox.ts';
import { MessageLog } from './message-log.ts';

const SENDER = 'team-a/sender';
const RECEIVER = 'team-a/receiver';
type Handled = Parameters<Engine['handle']>[0];

const WORK: Envelope = {
  id: 'message-1',
  from: 'user',
  to: 'sender',
  session: 's-own',
  text: 'work',
  root: 'message-1',
  depth: 0,
  deadline: new Date(Date.now() + 3_600_000).toISOString(),
  time: new Date().toISOString(),
  source: 'User',
};
const ANSWERED: HandledMessage = {
  reply: 'done',
  finishReason: 'complete',
  turns: 1,
  toolCalls: 0,
  usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 },
  trace: [],
};

/** The messages of a process; opened again over the same records, those of the next one. */
async function open(records: RecordStore) {
  const log = await MessageLog.open(records, Date.now());
  const inboxes = new LocalInboxes({ log, clock: systemClock });
  const asks = new LocalAsks(inboxes, systemClock);
  const sender = {
    key: SENDER,
    name: 'sender',
    current: () => ({ message: WORK, signal: new AbortController().signal }),
    receiver: () => RECEIVER,
    clean: (text: string) => text,
  };
  return { log, inboxes, asks, bus: localBus({ inboxes, asks, clock: systemClock }, sender, WORK.session) };
}

/** Works on the messages of an agent whose sessions have these items; resolves with what its engine got when it is idle. */
async function work(
  { inboxes, asks }: Awaited<ReturnType<typeof open>>,
  name: string,
  taintedSessions: readonly string[] = [],
): Promise<Handled[]> {
  const handled: Handled[] = [];
  const sessions = createRecordSessionStore(memoryRecordStore(), systemClock, { agent: name, namespace: 'team-a' });
  for (const session of taintedSessions)
    await sessions.append(session, 0, [{ role: 'user', text: 'x', origin: 'Peer' }], { tainted: true });
  const engine = {
    handle: async (message: Handled) => {
      handled.push(message);
      return ANSWERED;
    },
  };
  const member = { name, namespace: 'team-a', agent: { metadata: { name }, spec: {} }, sessions };
  const dispatcher = new Dispatcher({
    inboxes,
    asks,
    clock: systemClock,
    open: async () => ({ engine }) as unknown as OpenedAgent,
    ended: () => undefined,
    ending: (all, _member, message, end) => asks.ending(all, message, end),
    failed: () => [],
    withoutSources: (text) => text,
  });
  dispatcher.serve(member as unknown as Member);
  await dispatcher.idle(AbortSignal.timeout(30_000));
  await dispatcher.stop();
  return handled;
}

describe('the taint of messages in one process', () => {
  it('a message of a tainted session taints its receiver, also in the next process, and one of a clean session does not', async () => {
    const records = memoryRecordStore();
    const first = await open(records);
    const draft = { to: 'receiver', text: 'hello' };
    await first.bus.send({ ...draft, session: 'a', tainted: true }, { ...callOptions(), key: 'one' });
    await first.bus.send({ ...draft, session: 'b', tainted: false }, { ...callOptions(), key: 'two' });
    await first.bus.send({ ...draft, session: 'c' }, { ...callOptions(), key: 'three' });
    await first.log.flush();
    const handled = await work(await open(records), 'receiver');
    const marks = new Map(handled.map(({ session, tainted, source }) => [session, { tainted, source }]));
    assert.deepEqual(
      [...marks].toSorted(([a], [b]) => (a < b ? -1 : 1)),
      ['a', 'b', 'c'].map((session) => [`sender.${session}`, { tainted: session === 'a', source: 'Agent' }]),
    );
  });

  it('an answer has the taint of the session that gave it, for the call that waits and as a message', async () => {
    const messages = await open(memoryRecordStore());
    const ask = (session: string) =>
      messages.bus.ask(
        { to: 'receiver', session, text: 'what?' },
        { milliseconds: 0 },
        { ...callOptions(), key: session },
      );
    const tickets = { a: (await ask('a')).ticket, b: (await ask('b')).ticket };
    await work(messages, 'receiver', ['sender.a']);
    const ofCall = await messages.bus.task(tickets.a, 0, callOptions());
    assert.deepEqual([ofCall.state, ofCall.tainted], ['Answered', true]);
    const answers = await work(messages, 'sender');
    assert.deepEqual(
      answers.map(({ source, tainted }) => [source, tainted]),
      [['Reply', false]],
      'the call took the other answer',
    );
    const later = await ask('c');
    await work(messages, 'receiver', ['sender.c']);
    const [answer] = await work(messages, 'sender');
    assert.deepEqual([answer?.source, answer?.tainted, answer?.text.includes(later.ticket)], ['Reply', true, true]);
  });
});
