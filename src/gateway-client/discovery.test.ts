import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callOptions } from '../../test/support/call-options.ts';
import type { CallerContext } from '../tools/contract.ts';
import { systemClock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import { remoteRanking } from './discovery.ts';
import type { GatewayClient } from './gateway-client.ts';

describe('the tools that fit a message, ranked in the gateway', () => {
  function aRanking(answer: () => Promise<Json>) {
    const bodies: unknown[] = [];
    const client = {
      call: async ({ body }: { body?: unknown }): Promise<Json> => {
        bodies.push(body);
        return answer();
      },
    } as unknown as GatewayClient;
    const rank = remoteRanking({ client, clock: systemClock, deliveryToken: () => 'token' });
    const ask = (query: string) =>
      rank({ query }, { indexes: [], permits: () => true }, {} as CallerContext, callOptions());
    return { ask, bodies };
  }

  it('the gateway gets the beginning of the message, and its order is the result', async () => {
    const found = { name: 'x', kind: 'tool', description: '', available: true };
    const capabilities = [
      { ...found, id: 'tool:x', relevance: 0.9 },
      { ...found, id: 'tool:y', relevance: 0.4 },
    ];
    const { ask, bodies } = aRanking(async () => ({ capabilities, more: 0 }));
    const ranked = await ask(`  ${'long '.repeat(1_000)}`);
    assert.deepEqual(
      ranked?.map(({ id, relevance }) => [id, relevance]),
      [
        ['tool:x', 0.9],
        ['tool:y', 0.4],
      ],
    );
    assert.deepEqual(bodies, [
      { query: 'long '.repeat(1_000).slice(0, 2_048), forMessage: true, deliveryToken: 'token' },
    ]);
  });

  it('an error and a malformed answer leave the words alone, and a message without text asks nothing', async () => {
    const error = new TemperError('TEMPER_GATEWAY_UNAVAILABLE', 'away');
    assert.equal(await aRanking(() => Promise.reject(error)).ask('read a file'), undefined);
    assert.equal(await aRanking(async () => ({ capabilities: [{ id: 7 }] })).ask('read a file'), undefined);
    const { ask, bodies } = aRanking(async () => ({ capabilities: [], more: 0 }));
    assert.equal(await ask('  \n'), undefined);
    assert.deepEqual(bodies, []);
  });
});
