import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../../src/lib/clock.ts';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { createTaskRecords } from '../../../src/nats/tasks/task-records.ts';
import { NatsTrustEvidence } from '../../../src/operator/nats/sources/task-evidence.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { newUid, startNatsFixture } from '../../../test/support/nats/nats-fixture.ts';
import { atMost, mebibytes, plain, type Row, seconds } from '../row.ts';

const STORE_BYTES = 2 * 1_024 ** 3;
const BATCH = 200;
const MAX_SECONDS = 10;
const MAX_HEAP_BYTES = 64 * 1_024 * 1_024;
const SAMPLE_MS = 20;
const MARKS = { countFrom: 0, checkedAt: 0 };
const UNLIMITED = { reserve: () => Promise.resolve() };

/** The operator folds the task records of all agents, as after its start. */
export async function benchEvidence(agents: number, records: number): Promise<Row[]> {
  await using nats = await startNatsFixture({ storeBytes: STORE_BYTES });
  const connection = await nats.connect('gateway');
  const uids = Array.from({ length: agents }, newUid);
  await writeRecords(connection, uids, records);
  const evidence = trustEvidence(await nats.connect('operator'));
  for (const uid of uids) evidence.get(uid, MARKS);
  const { elapsed, growth } = await fold(evidence, agents);
  const tasks = uids.reduce((sum, uid) => sum + (evidence.get(uid, MARKS)?.total.tasks ?? 0), 0);
  const what = `evidence of trust: ${agents} agents with ${records} records folded`;
  return [
    atMost('goal', what, elapsed, MAX_SECONDS, seconds),
    atMost('requirement', `${what}: growth of the heap`, growth, MAX_HEAP_BYTES, mebibytes),
    atMost('requirement', `${what}: records that are missing`, records - tasks, 0, plain),
  ];
}

async function writeRecords(connection: JetStreamConnection, uids: readonly string[], records: number): Promise<void> {
  const tasks = createTaskRecords(connection, () => UNLIMITED);
  const endedAt = Date.now();
  for (let first = 0; first < records; first += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, records - first) }, (_, index) => first + index);
    await Promise.all(
      batch.map((index) => {
        const end = { message: `m-${index}`, session: 's', outcome: 'completed', deliveries: 1, endedAt } as const;
        return tasks.end(uids[index % uids.length] ?? '', end);
      }),
    );
  }
}

function trustEvidence(connection: JetStreamConnection): NatsTrustEvidence {
  const link = {
    current: () => connection,
    waitForConnection: () => Promise.resolve(connection),
    unavailableSince: () => undefined,
  };
  const log = createLogger({ level: 'warn', destination: process.stderr, secrets: createSecretRedactor() });
  return new NatsTrustEvidence({ link, clock: systemClock, log });
}

async function fold(evidence: NatsTrustEvidence, agents: number): Promise<{ elapsed: number; growth: number }> {
  const ended = new AbortController();
  const heap = sampleHeap(ended.signal);
  const start = performance.now();
  let folded = 0;
  for await (const batch of evidence.updates(ended.signal)) {
    folded += batch.length;
    if (folded >= agents) break;
  }
  const elapsed = (performance.now() - start) / 1_000;
  ended.abort();
  return { elapsed, growth: await heap };
}

/** The largest growth of the heap until the signal aborts. */
async function sampleHeap(signal: AbortSignal): Promise<number> {
  const before = process.memoryUsage().heapUsed;
  let most = before;
  while (!signal.aborted) {
    await sleep(SAMPLE_MS, undefined, { signal }).catch(() => undefined);
    most = Math.max(most, process.memoryUsage().heapUsed);
  }
  return most - before;
}
