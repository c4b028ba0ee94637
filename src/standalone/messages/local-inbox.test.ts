import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { messagesContract, type PortRules } from '../../../test/contracts/messages.ts';
import { callOptions } from '../../../test/support/call-options.ts';
import type { Envelope, MessageSender } from '../../bus/port.ts';
import { systemClock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import { LocalAsks } from './local-asks.ts';
import { localBus } from './local-bus.ts';
import { LocalInboxes, type LocalInboxesDeps } from './local-inbox.ts';
import { MessageLog } from './message-log.ts';

const SENDER = 'team-a/sender';
const RECEIVER = 'team-a/receiver';
const SESSION = 's-own';

/** The message that the sender works on. */
function aMessage(change: Partial<Envelope> = {}): Envelope {
  const now = Date.now();
  return {
    id: 'message-1',
    from: 'user',
    to: 'sender',
    session: SESSION,
    text: 'work',
    root: 'message-1',
    depth: 0,
    deadline: new Date(now + 3_600_000).toISOString(),
    time: new Date(now).toISOString(),
    source: 'User',
    ...change,
  };
}

async function open(records: RecordStore, deps: Partial<LocalInboxesDeps> = {}, message = aMessage()) {
  const log = await MessageLog.open(records, Date.now());
  const inboxes = new LocalInboxes({ log, clock: systemClock, ...deps });
  const asks = new LocalAsks(inboxes, systemClock);
  const { signal } = new AbortController();
  const sender = {
    key: SENDER,
    name: 'sender',
    current: () => ({ message, signal }),
    receiver: (name: string) => `team-a/${name}`,
    clean: (text: string) => text,
  };
  return { log, inboxes, asks, bus: localBus({ inboxes, asks, clock: systemClock }, sender, SESSION) };
}

describe('the messages of one process', () => {
  let folder: string;
  let opened = 0;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-messages-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));
  const records = (): RecordStore => fileRecordStore(join(folder, String((opened += 1))));

  messagesContract('files of one process', async (rules: PortRules) => {
    const { inboxes, bus } = await open(records(), rules);
    const sender: MessageSender = bus;
    return {
      sender,
      receiver: inboxes.receiver(RECEIVER),
      to: 'receiver',
      async fillInbox() {
        for (let count = 0; count < 1_000; count += 1)
          await bus.send(
            { to: 'receiver', session: `s-${count}`, text: 'x' },
            { ...callOptions(), key: `fill ${count}` },
          );
      },
    };
  });

  it('after a crash a message in work is delivered again, an ended one is not, and a repeated send is the same message', async () => {
    const files = records();
    const first = await open(files);
    const op = { ...callOptions(), key: 'call-1' };
    const draft = { to: 'receiver', session: 's-1', text: 'one' };
    const { id } = await first.bus.send(draft, op);
    await first.bus.send({ ...draft, session: 's-2', text: 'two' }, { ...op, key: 'call-2' });
    const taken = await first.inboxes.receiver(RECEIVER).next(callOptions());
    const other = await first.inboxes.receiver(RECEIVER).next(callOptions());
    await other.ack();
    assert.deepEqual([taken.message.text, other.message.text], ['one', 'two']);
    await first.log.flush();
    const second = await open(files);
    assert.deepEqual(await second.bus.send(draft, op), { id, duplicate: true });
    assert.equal((await second.bus.send({ ...draft, session: 's-2' }, { ...op, key: 'call-2' })).duplicate, true);
    const again = await second.inboxes.receiver(RECEIVER).next(callOptions());
    assert.equal(again.message.text, 'one');
    assert.equal(second.inboxes.hasWork(RECEIVER), true);
    await again.ack();
    assert.equal(second.inboxes.hasWork(RECEIVER), false);
  });

  it('an answer is taken once: by the call that waits, or by the message that brings it', async () => {
    const files = memoryRecordStore();
    const { inboxes, asks, bus } = await open(files);
    const ask = (key: string, milliseconds: number) =>
      bus.ask({ to: 'receiver', session: 's-1', text: key }, { milliseconds }, { ...callOptions(), key });
    const answer = async (): Promise<void> => {
      const delivery = await inboxes.receiver(RECEIVER).next(callOptions());
      const { message } = delivery;
      await delivery.endWith('completed', (all) =>
        asks.ending(all, message, {
          state: 'Answered',
          text: `re ${message.text}`,
          finishReason: 'complete',
          tainted: false,
        }),
      );
    };
    const [waited] = await Promise.all([ask('one', 10_000), answer()]);
    assert.deepEqual([waited.state, waited.text], ['Answered', 're one']);
    assert.equal((await ask('one', 0)).text, 're one', 'a repeated call gets the answer again');
    const late = await ask('two', 0);
    assert.equal(late.state, 'Pending');
    await answer();
    const replies = inboxes.receiver(SENDER);
    const first = await replies.next(callOptions());
    assert.equal(await asks.mayHandle(SENDER, first.message), false, 'a call took it');
    await first.ack();
    const second = await replies.next(callOptions());
    assert.deepEqual(
      [second.message.text, second.message.source, second.message.session],
      ['re two', 'Reply', SESSION],
    );
    assert.equal(await asks.mayHandle(SENDER, second.message), true);
    assert.equal((await bus.task(late.ticket, 0, callOptions())).state, 'Delivered');
    await assert.rejects(bus.task('msg-other', 0, callOptions()), { code: 'TEMPER_NOT_FOUND' });
  });

  it('a chain ends at its depth, an agent of the chain cannot be asked, and a killed chain sends nothing', async () => {
    const deep = await open(memoryRecordStore(), {}, aMessage({ depth: 5 }));
    const draft = { to: 'receiver', session: 's-1', text: 'x' };
    await assert.rejects(deep.bus.send(draft, callOptions()), { code: 'TEMPER_MESSAGE_DEPTH' });
    const cyclic = await open(memoryRecordStore(), {}, aMessage({ depth: 1, ancestors: [RECEIVER] }));
    await assert.rejects(cyclic.bus.ask(draft, { milliseconds: 0 }, callOptions()), { code: 'TEMPER_MESSAGE_CYCLE' });
    assert.equal((await cyclic.bus.send(draft, callOptions())).duplicate, false);
  });

  it('a message that no attempt ends fails, and its question with it', async () => {
    const failures: string[] = [];
    const { inboxes, bus } = await open(memoryRecordStore(), {
      onUndelivered: (_all, _agent, { text }, { code }) => {
        failures.push(`${text} ${code}`);
        return [];
      },
    });
    await bus.send({ to: 'receiver', session: 's-1', text: 'poison' }, callOptions());
    for (let attempt = 0; attempt < 10; attempt += 1)
      await (await inboxes.receiver(RECEIVER).next(callOptions())).retry(0);
    await assert.rejects(inboxes.receiver(RECEIVER).next(callOptions(100)), { code: 'TEMPER_TIMEOUT' });
    assert.deepEqual(failures, ['poison TEMPER_MESSAGE_UNDELIVERED']);
  });
});
