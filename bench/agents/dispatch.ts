import { mkdtemp, rm } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { anAgent, says } from '../../src/agent/loop/scripted-loop.testing.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { fileRecordStore } from '../../src/lib/file-record-store.ts';
import type { RecordStore } from '../../src/lib/record-store.ts';
import type { Model } from '../../src/models/port.ts';
import { LocalInboxes } from '../../src/standalone/messages/local-inbox.ts';
import { MessageLog } from '../../src/standalone/messages/message-log.ts';
import { callOptions } from '../../test/support/call-options.ts';
import { quantile } from '../baseline/baseline.ts';
import { openDurableLoop } from './durable-loop.ts';
import type { BenchRow } from '../row.ts';

const MESSAGES = 200;
const AGENT = 'n/a';
const GOAL_MILLISECONDS = 2;
const MAX_RATIO = 3;
const MODEL: Model = {
  async *stream() {
    yield* says('done');
  },
  embed: () => Promise.reject(new Error('not used')),
};

/**
 * What one message costs beside its model, from the sender to its end: stored, delivered, answered in one turn, and ended. Its
 * writes are repeated alone after each message, because other processes share the disk.
 */
export async function benchDispatch(): Promise<BenchRow[]> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-bench-dispatch-'));
  try {
    const writes: Write[] = [];
    const records = recording(fileRecordStore(join(folder, 'state')), writes);
    const repeated = fileRecordStore(join(folder, 'repeated'));
    await using durable = await openDurableLoop(records, MODEL);
    const inboxes = new LocalInboxes({ log: await MessageLog.open(records, Date.now()), clock: systemClock });
    const times: number[] = [];
    const bare: number[] = [];
    const replies: string[] = [];
    for (let index = 0; index < MESSAGES; index += 1) {
      writes.length = 0;
      const started = performance.now();
      replies.push(await dispatch(inboxes, durable, index));
      times.push(performance.now() - started);
      bare.push(await millisecondsOf(repeated, writes));
    }
    const ratio = p50(times) / p50(bare);
    const answered = replies.filter((reply) => reply === 'done').length;
    return [
      {
        name: 'message dispatched in one process: instant model, durable',
        figures: {
          p50: `${p50(times).toFixed(2)} ms (goal ${GOAL_MILLISECONDS} ms)`,
          writes: String(writes.length),
          'the same writes alone, p50': `${p50(bare).toFixed(2)} ms`,
          ratio: ratio.toFixed(2),
          answered: String(answered),
          'load average': loadavg()[0]?.toFixed(1) ?? '',
        },
        limit: `all ${MESSAGES} answered, none left; at most ${MAX_RATIO} times their writes alone`,
        met: answered === MESSAGES && inboxes.inboxes.get(AGENT)?.messages.size === 0 && ratio <= MAX_RATIO,
      },
    ];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function dispatch(
  inboxes: LocalInboxes,
  { loop }: Awaited<ReturnType<typeof openDurableLoop>>,
  index: number,
): Promise<string> {
  const now = systemClock.now();
  await inboxes.publish(AGENT, `m-${index}`, {
    from: 'user',
    to: 'a',
    source: 'User',
    session: `s-${index}`,
    text: 'What is it?',
    depth: 0,
    deadline: new Date(now.getTime() + 3_600_000).toISOString(),
    time: now.toISOString(),
  });
  const delivery = await inboxes.receiver(AGENT).next(callOptions());
  const { session, root, text } = delivery.message;
  const { reply } = await loop.handle({ session, rootMessage: root, text }, anAgent(), () => undefined, callOptions());
  await delivery.ack();
  return reply;
}

type Write = (records: RecordStore) => Promise<void>;

/** Notes each write, so that it can be repeated on another store. */
function recording(records: RecordStore, writes: Write[]): RecordStore {
  const note = (write: Write): Promise<void> => {
    writes.push(write);
    return write(records);
  };
  return {
    ...records,
    put: (...written) => note((store) => store.put(...written)),
    append: (...written) => note((store) => store.append(...written)),
    sync: (log) => note((store) => store.sync(log)),
  };
}

async function millisecondsOf(records: RecordStore, writes: readonly Write[]): Promise<number> {
  const started = performance.now();
  for (const write of writes) await write(records);
  return performance.now() - started;
}

function p50(times: readonly number[]): number {
  return quantile(times, 0.5);
}
