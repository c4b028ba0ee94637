import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../../src/lib/clock.ts';
import type { KubeClient } from '../../../src/kube/client/kube-client.ts';
import { AccountOwner } from '../../../src/operator/nats/account-owner.ts';
import { openOperatorNats } from '../../../src/operator/nats/open.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { clockAt } from '../../support/clocks.ts';
import { startNatsFixture } from '../../support/nats/nats-fixture.ts';
import { pollValue } from '../../support/poll.ts';
import { NEVER_ABORTED, NO_METRICS } from '../../support/stubs.ts';

const NOW = Date.parse('2026-11-22T10:00:00Z');

function clientWithService(uid: string): Pick<KubeClient, 'get'> {
  return { get: (async () => ({ metadata: { uid } })) as unknown as KubeClient['get'] };
}

function ownerOf(uid: string, release: string, minutes = 0): AccountOwner {
  const clock = clockAt(() => NOW + minutes * 60_000);
  return new AccountOwner({
    client: clientWithService(uid),
    clock,
    release,
    namespace: 'temper-system',
    service: 'gateway',
  });
}

describe('the owner of a NATS account', () => {
  it('an installation refuses an account that another one uses, and takes it over once that one is gone', async () => {
    await using bus = await startNatsFixture();
    const connection = await bus.connect('operator');
    assert.equal(await ownerOf('one', 'a').conflict(connection, NEVER_ABORTED), undefined);
    await ownerOf('one', 'a').claim(connection, NEVER_ABORTED);
    assert.equal(await ownerOf('one', 'a').conflict(connection, NEVER_ABORTED), undefined);
    const problem = await ownerOf('two', 'b').conflict(connection, NEVER_ABORTED);
    assert.match(problem ?? '', /belongs to release "a" in namespace temper-system/);
    assert.match((await ownerOf('two', 'b', 4).conflict(connection, NEVER_ABORTED)) ?? '', /release "a"/);
    assert.equal(await ownerOf('two', 'b', 5).conflict(connection, NEVER_ABORTED), undefined);
    await ownerOf('two', 'b', 5).claim(connection, NEVER_ABORTED);
    assert.match((await ownerOf('one', 'a', 6).conflict(connection, NEVER_ABORTED)) ?? '', /release "b"/);
  });
  it('an owner that cannot reach the API server still renews its entry', async () => {
    await using bus = await startNatsFixture();
    const connection = await bus.connect('operator');
    let isReachable = true;
    const reachable = clientWithService('one');
    const client = {
      get: ((...given: Parameters<KubeClient['get']>) =>
        isReachable ? reachable.get(...given) : Promise.reject(new Error('unreachable'))) as KubeClient['get'],
    };
    let minutes = 0;
    const clock = clockAt(() => NOW + minutes * 60_000);
    const owner = new AccountOwner({ client, clock, release: 'a', namespace: 'temper-system', service: 'gateway' });
    await owner.claim(connection, NEVER_ABORTED);
    [isReachable, minutes] = [false, 4];
    await owner.claim(connection, NEVER_ABORTED);
    assert.match((await ownerOf('two', 'b', 6).conflict(connection, NEVER_ABORTED)) ?? '', /release "a"/);
  });
  it('an operator without the account stays disconnected, says why, and touches nothing', {
    timeout: 300_000,
  }, async () => {
    await using bus = await startNatsFixture({ withoutTopology: true });
    const logLines: string[] = [];
    const destination = { write: (line: string) => void logLines.push(line) };
    const log = createLogger({ level: 'info', destination, secrets: createSecretRedactor() });
    const options = { url: bus.url, seedFile: bus.seedFile('operator'), caFile: bus.caFile };
    const open = (uid: string, storeBytes: number) =>
      openOperatorNats(
        { ...options, server: { storeBytes } },
        {
          clock: systemClock,
          log,
          metrics: NO_METRICS,
          owner: new AccountOwner({
            client: clientWithService(uid),
            clock: systemClock,
            release: uid,
            namespace: 'ns',
            service: 'gateway',
          }),
        },
      );
    await using first = open('one', 128 * 1_024 * 1_024);
    const connection = await bus.connect('operator');
    await pollValue(
      'the entry of the first operator',
      () => ownerOf('other', 'x').conflict(connection, NEVER_ABORTED),
      (problem) => problem !== undefined,
    );
    await using second = open('two', 64 * 1_024 * 1_024);
    await pollValue(
      'the refusal in the log',
      () => logLines.filter((line) => line.includes('belongs to another installation')),
      (lines) => lines.length > 0,
    );
    assert.ok(second.agentActivity.unavailableSince() instanceof Date);
    await assert.rejects(second.agentActivity.pending('uid', NEVER_ABORTED), { code: 'TEMPER_BUS_UNAVAILABLE' });
    assert.equal(first.agentActivity.unavailableSince(), undefined);
    const { config } = await connection.manager.streams.info('temper-audit');
    assert.equal(config.max_bytes, Math.floor(128 * 1_024 * 1_024 * 0.14));
  });
});
