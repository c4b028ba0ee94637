import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { AuditRecord } from '../../audit/port.ts';
import type { ToolAuditOrder } from '../../gateway-api/verification/tool-audit-schemas.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { Store } from '../../kube/informer/store.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import type { Json } from '../../lib/json.ts';
import type { ToolAudit } from '../../nats/promotion/tool-audits.ts';
import type { AuditedRun } from '../../tool-audit/report.ts';
import { Cache } from '../kube/cache.ts';
import type { Pod } from '../kube/types.ts';
import { MemoryPromotions } from '../promotion/memory-promotions.testing.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { aTool, DIGEST } from '../tool/tool.testing.ts';
import { TOOL_INDEX } from '../tool/tool-index.ts';
import { VerifierPods } from '../verifier/verifier-pods.ts';
import { ToolAudits } from './tool-audits.ts';

const RUN: AuditedRun = { outcome: 'complete', uses: 1, toolCalls: 2, turns: 3, tokens: 400 };
const MINUTE_MS = 60_000;

function anAudit(change: Partial<ToolAudit> = {}): ToolAudit {
  return {
    id: 'audit-1',
    agent: { uid: 'u-analyst', name: 'analyst', namespace: 'team-a' },
    tool: 'csv_rows',
    digest: DIGEST,
    tasks: ['sum the rows', 'count the rows'],
    maxTokens: 40_000,
    requestedAt: new Date(0).toISOString(),
    since: new Date(0).toISOString(),
    state: 'Requested',
    runs: [],
    ...change,
  };
}

function aVerifier(name: string): Pod {
  return {
    metadata: {
      name,
      namespace: 'temper-system',
      uid: `uid-${name}`,
      resourceVersion: '1',
      labels: {},
      annotations: { 'temper.dev/template-digest': 'd' },
    },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  };
}

/** Operators one after the other over one store, with these verifier pods. */
function aFixture(pods: readonly string[] = ['v-1']) {
  const memory = new MemoryPromotions();
  const podStore = new Store<Pod>();
  for (const name of pods) podStore.set(aVerifier(name));
  const toolStore = new Store<StoredTool>();
  for (const namespace of ['team-a', 'team-b', 'team-c'])
    toolStore.set(aTool({}, { metadata: { namespace, uid: namespace }, status: { active: true } }));
  const toolCache = new Cache([toolStore]);
  toolCache.addIndex(TOOL_INDEX.digest, ({ metadata, facts }) => [`${metadata.namespace}/${facts.digest}`]);
  const records: AuditRecord[] = [];
  const requeued: string[] = [];
  const clock = new FakeClock();
  const client = {
    patch: async (_type: unknown, { name }: { name: string }, patch: { metadata: { labels: object } }) => {
      const pod = podStore.list().find(({ metadata }) => metadata.name === name);
      assert.ok(pod);
      const claimed = { ...pod, metadata: { ...pod.metadata, labels: { ...patch.metadata.labels } } } as Pod;
      podStore.set(claimed);
      return claimed;
    },
  };
  const operator = () => {
    const verifierPods = new VerifierPods({
      client: client as unknown as KubeClient,
      pods: new Cache([podStore]),
      template: { digest: 'd', labels: {}, spec: {} } as never,
      max: 4,
      onDemand: () => undefined,
    });
    const audits = new ToolAudits({
      store: memory,
      verifierPods,
      tools: toolCache,
      audit: { append: async (_namespace, record) => void records.push(record) },
      clock,
      requeue: (key) => void requeued.push(key),
    });
    return { audits, verifierPods };
  };
  const orderFor = (pod: string, round: number) => memory.works.get(round === 0 ? `uid-${pod}` : `uid-${pod} ${round}`);
  const send = (pod: string, round: number, result: Json) =>
    void memory.sent.set(round === 0 ? `uid-${pod}` : `uid-${pod} ${round}`, result);
  const state = (id = 'audit-1') => memory.audits.get(id)?.audit;
  return { memory, podStore, toolStore, clock, records, requeued, operator, orderFor, send, state };
}

const result = (round: number, change: object = {}): Json =>
  ({ attempt: 'audit-1', round, model: 'replay/agent', run: RUN, ...change }) as unknown as Json;

describe('audits of tools by fresh agents', () => {
  it('a pod gets each task with the tool and without it, the status has the comparison, and the next leader goes on', async () => {
    const { memory, operator, orderFor, send, state, records, requeued } = aFixture();
    await memory.writeAudit(anAudit(), 0);
    const first = operator();
    await first.audits.round(NEVER_ABORTED);
    assert.deepEqual([state()?.state, state()?.pod], ['Running', { name: 'v-1', uid: 'uid-v-1' }]);
    const orders: ToolAuditOrder['audit'][] = [];
    let current = first;
    for (let round = 0; round < 4; round += 1) {
      orders.push((orderFor('v-1', round) as unknown as ToolAuditOrder).audit);
      assert.equal(orderFor('v-1', round + 1), undefined, 'one session at a time');
      send('v-1', round, result(round, { run: { ...RUN, uses: round % 2 === 0 ? 1 : 0 } }));
      // The next leader reads what the last one stored.
      current = operator();
      await current.audits.resume();
      assert.ok(current.verifierPods.isClaimed('uid-v-1'), 'the pod is kept');
      await current.audits.round(NEVER_ABORTED);
    }
    assert.deepEqual(
      orders.map(({ task, withTool, maxTokens }) => [task, withTool, maxTokens]),
      [
        ['sum the rows', true, 10_000],
        ['sum the rows', false, 10_000],
        ['count the rows', true, 10_000],
        ['count the rows', false, 10_000],
      ],
    );
    assert.equal(state()?.state, 'Completed');
    assert.ok(!current.verifierPods.isClaimed('uid-v-1'), 'the pod is released');
    const status = current.audits.of('team-a', DIGEST);
    assert.deepEqual([status?.evidence, status?.model, status?.tasks.length], ['Compared', 'replay/agent', 2]);
    assert.equal(current.audits.of('team-b', DIGEST), undefined);
    assert.ok(requeued.length > 0, 'the objects of the tool get the status');
    assert.deepEqual(
      records.map(({ action, facts }) => [action, facts['tokens'], facts['evidence']]),
      [['tool.audited', 1_600, 'Compared']],
    );
  });

  it('a tool that no session called is no evidence', async () => {
    const { memory, operator, send } = aFixture();
    await memory.writeAudit(anAudit({ tasks: ['hello'] }), 0);
    const { audits } = operator();
    for (const round of [0, 1]) {
      await audits.round(NEVER_ABORTED);
      send('v-1', round, result(round, { run: { ...RUN, uses: 0 } }));
    }
    await audits.round(NEVER_ABORTED);
    assert.equal(audits.of('team-a', DIGEST)?.evidence, 'NeverCalled');
  });

  it('an audit fails with the next step when its pod ends, sends another form or is late, or the tool left service', async () => {
    const problems: (string | undefined)[] = [];
    for (const breakIt of [
      ({ podStore }: ReturnType<typeof aFixture>) => podStore.delete('temper-system/v-1'),
      ({ send }: ReturnType<typeof aFixture>) => send('v-1', 0, { attempt: 'audit-1', round: 0, run: { outcome: 1 } }),
      ({ send }: ReturnType<typeof aFixture>) => send('v-1', 0, result(3)),
      ({ clock }: ReturnType<typeof aFixture>) => clock.advance(12 * MINUTE_MS),
    ]) {
      const fixture = aFixture();
      await fixture.memory.writeAudit(anAudit(), 0);
      const { audits, verifierPods } = fixture.operator();
      await audits.round(NEVER_ABORTED);
      await breakIt(fixture);
      await audits.round(NEVER_ABORTED);
      assert.equal(fixture.state()?.state, 'Failed');
      assert.ok(!verifierPods.isClaimed('uid-v-1'));
      assert.equal(fixture.records[0]?.action, 'tool.audit-failed');
      problems.push(fixture.state()?.problem);
    }
    assert.match(
      problems.join('\n'),
      /^pod v-1 was deleted; start .*\n.*another form; start .*\n.*another form.*\n.*no result in time/,
    );
    const gone = aFixture();
    gone.toolStore.set(aTool({}, { metadata: { uid: 'team-a', resourceVersion: '2' }, status: { active: false } }));
    await gone.memory.writeAudit(anAudit(), 0);
    await gone.operator().audits.round(NEVER_ABORTED);
    assert.match(gone.state()?.problem ?? '', /not in service for the agent any more/);
  });

  it('one audit of a namespace runs at a time, and two in all: promotions need the pods too', async () => {
    const { memory, operator } = aFixture(['v-1', 'v-2', 'v-3']);
    const inOther = (id: string, namespace: string) =>
      anAudit({ id, agent: { uid: `u-${id}`, name: 'analyst', namespace } });
    for (const [id, namespace] of [
      ['audit-1', 'team-a'],
      ['audit-2', 'team-a'],
      ['audit-3', 'team-b'],
      ['audit-4', 'team-c'],
    ] as const)
      await memory.writeAudit(inOther(id, namespace), 0);
    await operator().audits.round(NEVER_ABORTED);
    const running = [...memory.audits.values()].filter(({ audit }) => audit.pod !== undefined);
    assert.deepEqual(
      running.map(({ audit }) => audit.id),
      ['audit-1', 'audit-3'],
    );
  });
});
