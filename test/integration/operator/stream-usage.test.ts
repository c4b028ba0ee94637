import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../../src/lib/clock.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import { createNatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { reconcileTopology } from '../../../src/nats/jetstream/topology.ts';
import { openOperatorNats } from '../../../src/operator/nats/open.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { newMessage, newUid, startNatsFixture } from '../../support/nats/nats-fixture.ts';
import { pollValue } from '../../support/poll.ts';
import { NO_METRICS } from '../../support/stubs.ts';

const STORE_BYTES = 4 * 1_024 * 1_024;

describe('the size of streams', () => {
  it('the operator shows the size of each stream and reports an audit stream that is nearly full', {
    timeout: 300_000,
  }, async () => {
    await using bus = await startNatsFixture({ withoutTopology: true });
    await reconcileTopology(await bus.connect('operator'), { storeBytes: STORE_BYTES });
    const gateway = await bus.connect('gateway');
    const audit = createNatsAudit(gateway);
    const facts = { text: 'x'.repeat(90_000) };
    const record = { action: 'tool.accepted', actor: 'agent/a', evidence: 'observed', subject: 'x', facts } as const;
    for (let index = 0; index < 6; index += 1) await audit.append({ namespace: 'team-a', agentUid: 'a' }, record);
    // Four messages of a stream that keeps three.
    const owner = await bus.connect('operator');
    await owner.manager.streams.update('temper-activity', { max_msgs_per_subject: 3 });
    const call = { ...record, action: 'tool.brokered', facts: {} };
    for (let index = 0; index < 4; index += 1) await audit.append({ namespace: 'team-a', agentUid: 'a' }, call);
    await createNatsInbox(gateway).publish(newUid(), { uid: 'user', key: 'k' }, newMessage('waits'));
    const gauges = new Map<string, number>();
    const logLines: string[] = [];
    await using _operator = openOperatorNats(
      { url: bus.url, seedFile: bus.seedFile('operator'), caFile: bus.caFile, server: { storeBytes: STORE_BYTES } },
      {
        clock: systemClock,
        log: createLogger({
          level: 'info',
          destination: { write: (line: string) => void logLines.push(line) },
          secrets: createSecretRedactor(),
        }),
        metrics: {
          ...NO_METRICS,
          gauge: (name, labels, value) => void gauges.set(`${name} ${Object.values(labels).join()}`.trim(), value),
        },
      },
    );
    await pollValue(
      'the report of a nearly full stream',
      () => logLines.filter((line) => line.includes('the audit stream is nearly full')),
      (lines) => lines.length > 0,
    );
    await pollValue(
      'the whole check',
      () => gauges.get('temper_nats_topology_ready'),
      (ready) => ready === 1,
    );
    assert.equal(gauges.get('temper_nats_stream_messages temper-audit'), 6);
    assert.ok((gauges.get('temper_nats_stream_bytes temper-audit') ?? 0) > 500_000);
    assert.equal(gauges.get('temper_nats_stream_max_bytes temper-audit'), Math.floor(STORE_BYTES * 0.14));
    assert.equal(gauges.get('temper_nats_stream_removed_messages temper-activity'), 1);
    assert.equal(gauges.get('temper_audit_namespace_max_ratio'), 6 / 200_000);
    assert.equal(gauges.get('temper_nats_stream_messages temper-inbox'), 1);
    const age = gauges.get('temper_inbox_oldest_seconds') ?? -1;
    assert.ok(age >= 0 && age < 60, String(age));
  });
});
