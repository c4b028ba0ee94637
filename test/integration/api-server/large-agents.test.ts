import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { RecordingMetrics } from '../../../src/kube/metrics.testing.ts';
import { Reflector } from '../../../src/kube/informer/reflector.ts';
import { Store } from '../../../src/kube/informer/store.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { type StoredAgent, TYPES } from '../../../src/operator/kube/types.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { type ApiServerFixture, startApiServerFixture } from '../../support/api-server/api-server-fixture.ts';
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
    const metrics = new RecordingMetrics();
    const lines: string[] = [];
    const log = createLogger({
      level: 'info',
      destination: { write: (line: string) => lines.push(line) },
      secrets: createSecretRedactor(),
    });
    await using transport = await server.connect();
    await using reflector = new Reflector<StoredAgent>({
      type: TYPES.agents,
      transport,
      store: new Store<StoredAgent>(),
      clock: systemClock,
      log,
      metrics,
      random: Math.random,
    });
    reflector.start();
    await reflector.synced(NEVER_ABORTED);
    assert.equal(reflector.store.list().length, LARGE_AGENTS);
    assert.deepEqual(lines, []);
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
