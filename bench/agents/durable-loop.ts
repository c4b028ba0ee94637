import { createAgentLoop } from '../../src/agent/loop/loop.ts';
import { scriptedInvoker } from '../../src/agent/loop/scripted-loop.testing.ts';
import { createRecordSessionStore } from '../../src/agent/session/session-store.ts';
import { openLedgerBook } from '../../src/ledger/ledger.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { ulids } from '../../src/lib/ids.ts';
import type { RecordStore } from '../../src/lib/record-store.ts';
import { meteredStub } from '../../src/models/pipeline.testing.ts';
import type { Model } from '../../src/models/port.ts';

/** The loop of an agent with an instant tool `lookup`, whose sessions and ledger are in these records. */
export async function openDurableLoop(records: RecordStore, model: Model) {
  const book = await openLedgerBook(records, systemClock);
  const ledger = book.ledger([{ name: 'agent/a', quotas: { tokensPerDay: 1e9 }, prefix: 'spec.quotas.' }]);
  const loop = createAgentLoop({
    model: meteredStub(model, { ledger, ids: ulids }),
    invoker: scriptedInvoker({ lookup: () => ({ found: true }) }),
    sessions: createRecordSessionStore(records, systemClock, { agent: 'a', namespace: 'n' }),
    clock: systemClock,
  });
  return { loop, [Symbol.asyncDispose]: () => book.close() };
}
