import assert from 'node:assert/strict';
import { rename } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { isTemperError } from '../../../src/lib/errors.ts';
import { GatewayFixture } from '../../support/gateway/gateway-fixture.ts';

describe('a gateway whose client of NATS gives up', { timeout: 240_000 }, () => {
  it('a replica without a connection ends with the reason, so that it is started again', async () => {
    await using fixture = await GatewayFixture.open(['team-a']);
    const replica = await fixture.startReplica();
    const { server } = fixture.nats;
    const seed = fixture.nats.seedFile('gateway');
    // A client that cannot read its key when it reconnects closes the connection and opens no other one.
    await rename(seed, `${seed}.away`);
    await server.kill();
    await server.restart();
    assert.ok(isTemperError(await replica.failure(), 'TEMPER_BUS_UNAVAILABLE'));
    await rename(`${seed}.away`, seed);
  });
});
