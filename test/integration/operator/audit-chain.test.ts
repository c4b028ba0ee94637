import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  headVerifier,
  HEADS_MEMBER,
  parseSignedHeads,
  PUBLIC_KEYS_MEMBER,
  splitPublicKeys,
} from '../../../src/audit/signed-heads.ts';
import type { SignedHead } from '../../../src/audit/stream-chain.ts';
import { verifyCluster } from '../../../src/cli/cluster/audit/verify-chain.ts';
import { auditPage } from '../../../src/gateway/users/audit.ts';
import type { Json } from '../../../src/lib/json.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import { STREAMS } from '../../../src/nats/jetstream/names.ts';
import { natsAuditStream } from '../../../src/nats/audit-stream.ts';
import { auditChainRound } from '../../../src/operator/provenance/chain-task.ts';
import { fakeObjects } from '../../../src/operator/provenance/provenance.testing.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { startNatsFixture } from '../../support/nats/nats-fixture.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';

describe('the provenance chain over a NATS stream', () => {
  it('the leader signs the records of several gateways, and the next leader names a record that was removed', async () => {
    await using bus = await startNatsFixture({ users: { administrator: { publish: ['>'], subscribe: ['>'] } } });
    const operator = await bus.connect('operator');
    const gateways = await Promise.all([bus.connect('gateway'), bus.connect('gateway')]);
    const { client, objects } = fakeObjects();
    const gauges: Record<string, number> = {};
    const lines: string[] = [];
    const destination = { write: (line: string) => void lines.push(line) };
    const aLeader = () =>
      auditChainRound({
        auditStream: natsAuditStream(() => operator),
        client,
        clock: systemClock,
        log: createLogger({ level: 'info', destination, secrets: createSecretRedactor() }),
        operatorMetrics: { gauge: (name, _labels, value) => void (gauges[name] = value) },
        namespace: 'temper-system',
      });
    const append = (count: number) =>
      Promise.all(
        Array.from({ length: count }, (_, index) =>
          createNatsAudit(gateways[index % 2] ?? operator).append(
            { namespace: index % 3 === 0 ? 'team-a' : 'team-b', agentUid: 'u' },
            { action: 'tool.accepted', actor: 'agent/a', evidence: 'observed', subject: `s-${index}`, facts: {} },
          ),
        ),
      );
    const first = aLeader();
    await first(NEVER_ABORTED);
    assert.deepEqual(gauges, { temper_audit_chain_intact: 1, temper_audit_chain_records: 0 });
    for (const expected of [300, 600]) {
      await append(300);
      await first(NEVER_ABORTED);
      assert.deepEqual(gauges, { temper_audit_chain_intact: 1, temper_audit_chain_records: expected });
    }
    assert.deepEqual([...objects.keys()].sort(), ['temper-audit-heads', 'temper-audit-key']);
    const heads = JSON.stringify(objects.get('temper-audit-heads'));
    const verify = async (known?: SignedHead): Promise<[boolean, number]> => {
      const { data } = objects.get('temper-audit-heads') as unknown as { data: Record<string, string> };
      const signed = {
        heads: parseSignedHeads(data[HEADS_MEMBER] ?? '') ?? [],
        verifier: headVerifier(splitPublicKeys(data[PUBLIC_KEYS_MEMBER] ?? '')),
        now: new Date(),
        known,
      };
      let own = 0;
      const stream = natsAuditStream(() => gateways[0] ?? operator);
      const read = async (after: number) => (await auditPage(stream, 'team-a', { after, limit: 100 })).page as Json;
      const { ok } = await verifyCluster(signed, read, () => (own += 1));
      return [ok, own];
    };
    assert.deepEqual(await verify(), [true, 200], 'a user of team-a verifies the chain through a gateway');
    const { data: kept } = JSON.parse(heads) as { data: Record<string, string> };
    const last = parseSignedHeads(kept[HEADS_MEMBER] ?? '')?.at(-1);
    assert.ok(last);
    assert.deepEqual(await verify(last), [true, 200], 'a head that was kept elsewhere lies on the chain');
    assert.equal((await verify({ ...last, digest: 'sha256:0' }))[0], false, 'a head of another chain does not');
    const administrator = await bus.connect('administrator');
    await administrator.manager.streams.deleteMessage(STREAMS.audit, 450, false);
    await append(1);
    await aLeader()(NEVER_ABORTED);
    assert.equal(gauges['temper_audit_chain_intact'], 0);
    assert.match(lines.join(''), /record 450 of the audit stream was removed; no further record is signed/);
    assert.equal(JSON.stringify(objects.get('temper-audit-heads')), heads);
    assert.equal((await verify())[0], false);
    objects.delete('temper-audit-key');
    await first(NEVER_ABORTED);
    assert.match(lines.join(''), /temper-audit-key has no usable key/);
    assert.ok(!objects.has('temper-audit-key'), 'a lost key is not replaced');
    assert.equal(JSON.stringify(objects.get('temper-audit-heads')), heads);
  });
});
