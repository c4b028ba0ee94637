import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import type { Json } from '../lib/json.ts';
import { anOp, aSharedTool } from '../tempering/tempering.testing.ts';
import type { RegisteredTool } from '../tempering/types.ts';
import type { GatewayClient } from './gateway-client.ts';
import { RemoteTools } from './tools.ts';

/** Tools over a client whose lists the test answers. */
function openTools() {
  const lists: PromiseWithResolvers<readonly RegisteredTool[]>[] = [];
  const client = {
    call: async (): Promise<Json> => {
      const list = Promise.withResolvers<readonly RegisteredTool[]>();
      lists.push(list);
      return [...(await list.promise)] as unknown as Json;
    },
  };
  const tools = new RemoteTools({
    client: client as unknown as GatewayClient,
    clock: systemClock,
    deliveryToken: () => 'token',
    builtIn: new Set(['file_read']),
    flush: async () => undefined,
    onUnusable: () => undefined,
  });
  const names = () => tools.resolve('analyst', 'team-a', 's-1').map(({ artifact }) => artifact.name);
  return { tools, names, lists, answer: (...listed: RegisteredTool[]) => lists[0]?.resolve(listed) };
}

describe('the tools of a session in a pod', () => {
  it('a refresh removes a revoked tool and adds a shared one, and announces the change', async () => {
    const { tools, names, answer } = openTools();
    await tools.open('s-1', anOp(), [aSharedTool('kept'), aSharedTool('revoked')]);
    let changes = 0;
    tools.onChange(() => (changes += 1));
    const refreshed = tools.refresh(anOp());
    answer(aSharedTool('kept'), aSharedTool('added'));
    await refreshed;
    assert.deepEqual(names(), ['kept', 'added']);
    assert.equal(changes, 1);
  });

  it('a refresh keeps a tool that joined while the gateway listed the others', async () => {
    const { tools, names, lists } = openTools();
    await tools.open('s-1', anOp(), [aSharedTool('revoked')]);
    const refreshed = tools.refresh(anOp());
    const joined = tools.addMissing(['forged_now'], anOp());
    lists[1]?.resolve([aSharedTool('forged_now')]);
    await joined;
    lists[0]?.resolve([aSharedTool('kept')]);
    await refreshed;
    assert.deepEqual(names(), ['kept', 'forged_now']);
  });

  it('a tool that was dropped while the gateway listed the others does not come back', async () => {
    const { tools, names, lists } = openTools();
    const dropped = aSharedTool('dropped');
    await tools.open('s-1', anOp(), [aSharedTool('kept'), dropped]);
    const refreshed = tools.refresh(anOp());
    const dropping = tools.drop(dropped.digest, { agent: 'analyst', namespace: 'team-a', session: 's-1' }, anOp());
    lists[1]?.resolve([]);
    await dropping;
    assert.deepEqual(names(), ['kept']);
    lists[0]?.resolve([aSharedTool('kept'), dropped]);
    await refreshed;
    assert.deepEqual(names(), ['kept']);
  });

  it('a refresh for a session that has ended changes nothing', async () => {
    const { tools, names, answer } = openTools();
    await tools.open('s-0', anOp(), [aSharedTool('other')]);
    const refreshed = tools.refresh(anOp());
    await tools.open('s-1', anOp(), [aSharedTool('own')]);
    answer(aSharedTool('listed_for_s_0'));
    await refreshed;
    assert.deepEqual(names(), ['own']);
    const idle = openTools();
    await idle.tools.refresh(anOp());
    assert.deepEqual(idle.names(), []);
  });
});
