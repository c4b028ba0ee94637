import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Reflector } from '../../../src/kube/informer/reflector.ts';
import { Store } from '../../../src/kube/informer/store.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { type StoredAgent, TYPES } from '../../../src/operator/kube/types.ts';
import { type ApiServerFixture, startApiServerFixture } from '../../support/api-server/api-server-fixture.ts';
import { openKubeFixture } from '../../support/api-server/kube-fixture.ts';
import { buildAgent, buildTrustPolicy, readyReason } from '../../support/builders.ts';
import { startOperator } from '../../support/operator/start-operator.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';

/** Together more than one page of a list may have. */
const LARGE_AGENTS = 100;
/** The longest prompt of the CRD, in characters of three bytes. */
const LARGE_PROMPT = '漢'.repeat(65_536);
const CONCURRENCY = 8;

describe('the largest agents of one tenant', () => {
  let server: ApiServerFixture;

  before(async () => {
    server = await startApiServerFixture();
    for (const namespace of ['greedy', 'modest']) await server.createNamespace(namespace);
    const names = Array.from({ length: LARGE_AGENTS }, (_, index) => `large-${index}`);
    const create = async () => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        const agent = buildAgent('greedy', name, { prompt: { system: LARGE_PROMPT }, suspend: true });
        await server.client.create(TYPES.agents, agent, NEVER_ABORTED);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, create));
  });

  after(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  it('a reflector reads 20 MiB of agents in smaller pages, and needs no second list', async () => {
    await using kube = await openKubeFixture(server.plane.kubeconfig);
    const { transport, log, metrics, logLines } = kube;
    const store = new Store<StoredAgent>();
    const [clock, random] = [systemClock, Math.random];
    await using reflector = new Reflector({ type: TYPES.agents, transport, store, clock, log, metrics, random });
    reflector.start();
    await reflector.synced(NEVER_ABORTED);
    assert.equal(reflector.store.list().length, LARGE_AGENTS);
    assert.deepEqual(logLines, []);
    assert.equal(metrics.counts['reflector_lists_total'], 1);
  });

  it('an operator that starts among them runs the agent of another tenant', async () => {
    const operator = await startOperator(server);
    try {
      // From then on a new agent precedes those of the first list.
      await server.waitForAgent('greedy', 'large-0', 'is reconciled', (agent) => readyReason(agent) !== 'Pending');
      await server.apply(buildTrustPolicy('modest'));
      await server.apply(buildAgent('modest', 'analyst'));
      await server.waitForAgent('modest', 'analyst', 'is running', (agent) => readyReason(agent) === 'Running');
    } finally {
      await operator.stop();
    }
  });
});
