import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Logger } from '../../telemetry/log.ts';
import { clockWithShortPauses } from '../../../test/support/clocks.ts';
import { NatsSecrets } from './nats-secrets.ts';

const clock = clockWithShortPauses(new Set([1_000]), 1);
const log = { warn() {} } as unknown as Logger;

describe('the Secrets for NATS', () => {
  it('they exist when the keys of the users and the certificate do, also after errors of the API server', async () => {
    const stored = new Set<string>();
    const seen: boolean[] = [];
    const secrets = new NatsSecrets();
    const reads = {
      async read(name: string) {
        seen.push(secrets.exist);
        if (seen.length === 1) throw new Error('the API server is away');
        if (seen.length === 5) stored.add('temper-nats-users');
        if (seen.length === 9) stored.add('temper-nats-tls');
        return stored.has(name) ? {} : undefined;
      },
    };
    await secrets.watch({ secrets: reads, clock, log }, new AbortController().signal);
    assert.ok(secrets.exist && seen.length >= 10);
    assert.ok(seen.every((exist) => !exist));
  });

  it('the wait ends with its signal', async () => {
    const stop = new AbortController();
    const secrets = new NatsSecrets();
    const reads = {
      async read() {
        stop.abort();
        return undefined;
      },
    };
    await secrets.watch({ secrets: reads, clock, log }, stop.signal);
    assert.equal(secrets.exist, false);
  });
});
