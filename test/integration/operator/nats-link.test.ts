import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../../src/lib/clock.ts';
import { NatsLink } from '../../../src/operator/nats/nats-link.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { startNatsFixture } from '../../support/nats/nats-fixture.ts';
import { NEVER_ABORTED, NO_METRICS } from '../../support/stubs.ts';

const QUIET = { level: 'error' as const, destination: { write: () => undefined }, secrets: createSecretRedactor() };

describe('the connection of the operator', { timeout: 120_000 }, () => {
  it('who asks for a connection at the moment in which one is closed waits for the next one', async () => {
    await using nats = await startNatsFixture();
    const { url, caFile } = nats;
    const options = { url, caFile, seedFile: nats.seedFile('operator'), server: { storeBytes: 256 * 1_024 * 1_024 } };
    await using link = new NatsLink(options, { clock: systemClock, log: createLogger(QUIET), metrics: NO_METRICS });
    const first = await link.waitForConnection(NEVER_ABORTED);
    assert.ok(first !== undefined);
    const asked = Promise.withResolvers<Promise<typeof first | undefined>>();
    const ask = () => asked.resolve(link.waitForConnection(NEVER_ABORTED));
    first.closed.addEventListener('abort', ask, { once: true });
    await first.nats.close();
    const second = await asked.promise;
    assert.notEqual(second, first);
    assert.equal(second?.closed.aborted, false);
  });
});
