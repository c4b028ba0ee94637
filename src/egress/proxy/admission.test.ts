import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { ConnectionRequest } from '../authorizer.ts';
import { Admission } from './admission.ts';

const GATEWAY = { token: 'gateway', address: '10.0.0.1' };
const REQUEST = { host: 'api.example.com', port: 443 };

/** As a gateway signs it; the proxy cannot check the signature. */
function deliveryToken(namespace: string, agentUid: string): string {
  return `d1.${Buffer.from(JSON.stringify({ namespace, agentUid })).toString('base64url')}.signature`;
}

/** The answer depends on the token of the caller, as that of a real gateway: `gateway` is the only one of a gateway. */
function start(answer: (request: ConnectionRequest) => Promise<void> = async () => undefined) {
  const clock = new FakeClock();
  const asked: ConnectionRequest[] = [];
  const admission = new Admission({
    clock,
    authorizer: {
      authorize: async (request) => {
        asked.push(request);
        await answer(request);
        const caller = request.token === 'gateway' ? 'Gateway' : 'Pod';
        const owner = { agent: 'anna', agentUid: 'uid', namespace: 'team-a', session: 's', message: 'm' };
        return { caller, ...owner, remainingMs: 60_000 };
      },
    },
  });
  const ask = (namespace: string, change: Partial<ConnectionRequest & { agent: string }> = {}) => {
    const { agent = namespace, ...request } = { ...GATEWAY, ...REQUEST, ...change };
    return admission.authorize({ deliveryToken: deliveryToken(namespace, agent), ...request }, NEVER_ABORTED);
  };
  /** How many of as many requests, one after another, are not refused for their rate. */
  const served = async (count: number, ...[namespace, change]: Parameters<typeof ask>): Promise<number> => {
    let found = 0;
    for (let index = 0; index < count; index += 1) {
      await ask(namespace, change).then(
        () => (found += 1),
        (error: unknown) => assert.ok(isTemperError(error, 'TEMPER_RATE_LIMITED'), String(error)),
      );
    }
    return found;
  };
  return { clock, admission, asked, ask, served };
}

describe('the admission of requests to the egress proxy', () => {
  it('an agent and a namespace that use up what they may ask through a gateway take nothing from others behind it', async () => {
    const { clock, ask, served, asked } = start();
    await ask('team-b');
    assert.equal(await served(150, 'team-a', { agent: 'first' }), 100);
    assert.equal(await served(150, 'team-a', { agent: 'second' }), 100);
    for (const agent of ['third', 'fourth', 'fifth']) await served(150, 'team-a', { agent });
    const count = asked.length;
    assert.equal(count, 1 + 400);
    await assert.rejects(ask('team-a', { agent: 'sixth' }), /agents of namespace team-a through this gateway/);
    assert.equal(asked.length, count);
    assert.equal(await served(100, 'team-b'), 100);
    clock.skip(1_000);
    assert.equal(await served(100, 'team-a', { agent: 'first' }), 20);
    assert.equal(await served(100, 'team-a', { agent: 'sixth' }), 60);
  });

  it('an address without the token of a gateway has the limit of one address, whatever its delivery tokens name', async () => {
    const { ask, served } = start();
    await ask('team-a');
    const pod = { token: 'pod', address: '10.0.0.7' };
    let found = 0;
    for (let index = 0; index < 150; index += 1)
      found += await served(1, `team-${index}`, { ...pod, agent: `${index}` });
    assert.equal(found, 100);
    // Nor does the address of a gateway help; the first request of that gateway counted for it.
    assert.equal(await served(150, 'team-c', { token: 'pod', address: GATEWAY.address }), 99);
  });

  it('a token that no gateway has confirmed yet counts for its address, and one that a gateway rejects counts so again', async () => {
    let isValid = true;
    const { ask, asked } = start(async () => {
      if (!isValid) throw new TemperError('TEMPER_TOKEN_INVALID', 'the token was rejected');
    });
    await ask('team-a');
    isValid = false;
    const rejected = async (count: number): Promise<void> => {
      for (let index = 0; index < count; index += 1) {
        await assert.rejects(ask(`team-${index}`), { code: 'TEMPER_TOKEN_INVALID' });
      }
    };
    await rejected(1 + 99);
    await assert.rejects(ask('team-z'), /too many requests from this address/);
    assert.equal(asked.length, 1 + 100);
  });

  it('the namespaces behind a gateway take turns when authorizations wait', async () => {
    const held: (() => void)[] = [];
    let isHeld = false;
    const { ask, asked } = start(() => (isHeld ? new Promise((resolve) => held.push(resolve)) : Promise.resolve()));
    await ask('team-a');
    isHeld = true;
    const waiting = Array.from({ length: 80 }, (_, index) => ask('team-a', { agent: `${index}` }));
    waiting.push(ask('team-b', { host: 'other.example.com' }));
    await new Promise(setImmediate);
    const before = asked.length;
    assert.ok(asked.every(({ host }) => host !== 'other.example.com'));
    for (const release of held.splice(0, 2)) release();
    await new Promise(setImmediate);
    assert.deepEqual(
      asked.slice(before).map(({ host }) => host),
      ['api.example.com', 'other.example.com'],
    );
    isHeld = false;
    for (const release of held) release();
    await Promise.all(waiting);
  });
});
