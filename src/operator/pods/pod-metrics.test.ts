import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parsePrometheusText } from '../../../test/support/prometheus-text.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { createRegistry, registerMetrics } from '../../telemetry/prometheus.ts';
import { OPERATOR_METRICS } from '../../telemetry/temper-metrics.ts';
import type { ApplyResult } from '../agent/apply.ts';
import type { ObservedAgent } from '../agent/observed.ts';
import { READY, aPod, anAgent, anObservation } from '../agent/observed.testing.ts';
import { plan } from '../agent/plan.ts';
import { summarize } from '../agent/summarize.ts';
import { reasonOf } from '../conditions.ts';
import { recordChange, recordPlan } from './pod-metrics.ts';
import { StartTimes } from './start-times.ts';

const UID = 'u-agent';
const COUNT = 'temper_agent_ready_seconds_count';
const PENDING_POD = { phase: 'Pending' };

/** Reconciles agents as `AgentReconciler` does, without an API server. */
function recorder(hasPool = true) {
  const registry = createRegistry();
  const operatorMetrics = registerMetrics(registry, OPERATOR_METRICS);
  const clock = new FakeClock();
  const starts = new StartTimes(clock, operatorMetrics);
  const deps = { starts, operatorMetrics, hasPool: () => hasPool };
  const reconcile = (change: Partial<ObservedAgent>, applied: (kind: string) => ApplyResult) => {
    const observed = anObservation(change);
    const planned = plan(observed);
    recordPlan(deps, observed, planned);
    const result = applied(planned.step.kind);
    const status = summarize(observed, planned, result, { evaluation: undefined, tools: undefined });
    recordChange(deps, { observed, planned, applied: result, ready: reasonOf(status.conditions, 'Ready') });
    return status;
  };
  const samples = async () => {
    const { samples: all } = parsePrometheusText(await registry.metrics());
    return (name: string) => all.get(name);
  };
  return { clock, starts, reconcile, samples };
}

const bound =
  (uid: string, status: object, claimed = false) =>
  (): ApplyResult => ({
    kind: 'bound',
    pod: aPod(uid, { name: `pod-${uid}`, status }),
    origin: claimed ? 'claimed' : 'created',
  });
const unbound = (): ApplyResult => ({ kind: 'unbound' });

describe('the metrics of starts', () => {
  it('a new agent is measured from its creation until its pod runs, as a cold start', async () => {
    const { clock, starts, reconcile, samples } = recorder();
    starts.begin(UID, 'cold');
    await clock.advance(1_000);
    const status = reconcile({}, bound('u-pod', PENDING_POD));
    await clock.advance(2_000);
    const pod = aPod('u-pod', { name: 'pod-u-pod' });
    reconcile({ agent: anAgent({}, status), bound: pod, pods: [pod] }, bound('u-pod', READY));
    const value = await samples();
    assert.equal(value(`${COUNT}{path="cold"}`), 1);
    assert.equal(value('temper_agent_ready_seconds_sum{path="cold"}'), 3);
    assert.equal(value('temper_pool_claims_total{outcome="miss"}'), 1);
  });

  it('a claimed pod that is ready is a warm start and a hit', async () => {
    const { reconcile, samples } = recorder();
    reconcile({ warmPod: aPod('u-warm', { name: 'warm-standard-x' }) }, bound('u-warm', READY, true));
    const value = await samples();
    assert.equal(value(`${COUNT}{path="warm"}`), 1);
    assert.equal(value('temper_pool_claims_total{outcome="hit"}'), 1);
  });

  it('a claim of a pod that is gone is lost, and the start continues', async () => {
    const { reconcile, samples } = recorder();
    const warmPod = aPod('u-warm', { name: 'warm-standard-x' });
    reconcile({ warmPod }, () => ({ kind: 'waiting', message: 'm' }));
    reconcile({}, bound('u-pod', READY));
    const value = await samples();
    assert.equal(value('temper_pool_claims_total{outcome="lost"}'), 1);
    assert.equal(value(`${COUNT}{path="cold"}`), 1);
  });

  it('a start without a pool is no miss', async () => {
    const { reconcile, samples } = recorder(false);
    reconcile({}, bound('u-pod', READY));
    assert.equal((await samples())('temper_pool_claims_total{outcome="miss"}'), undefined);
  });

  for (const claimed of [false, true]) {
    it(`an idle agent that a message wakes is a wake, with a ${claimed ? 'warm' : 'new'} pod`, async () => {
      const { reconcile, samples } = recorder();
      const idle = { idle: { scaleToZeroAfter: '30m' } };
      const conditions = [{ type: 'Ready', status: 'True', reason: 'Idle', message: 'm' }];
      const warm = claimed ? { warmPod: aPod('u-pod', { name: 'warm-standard-x' }) } : {};
      reconcile({ agent: anAgent(idle, { conditions }), pending: 1, ...warm }, bound('u-pod', READY, claimed));
      assert.equal((await samples())(`${COUNT}{path="wake"}`), 1);
    });
  }

  it('an agent that is refused, suspended, or runs already is not measured', async () => {
    const { starts, reconcile, samples } = recorder();
    const conditions = [{ type: 'Ready', status: 'True', reason: 'Running', message: 'm' }];
    const pod = aPod('u-pod', { name: 'p' });
    const running = { agent: anAgent({}, { pod: { name: 'p', uid: 'u-pod' }, conditions }), bound: pod, pods: [pod] };
    for (const change of [{ policy: undefined }, { agent: anAgent({ suspend: true }) }]) {
      starts.begin(UID, 'cold');
      reconcile(change, unbound);
      reconcile(running, bound('u-pod', READY));
    }
    starts.begin(UID, 'wake');
    reconcile(running, bound('u-pod', READY));
    const value = await samples();
    for (const path of ['cold', 'warm', 'wake']) assert.equal(value(`${COUNT}{path="${path}"}`), undefined);
  });
});

describe('the metric of replaced pods', () => {
  const agent = anAgent({}, { pod: { name: 'p', uid: 'u-pod' } });
  const cases: readonly [string, Partial<ObservedAgent>][] = [
    ['deleted', {}],
    ['deleted', { bound: aPod('u-pod', { terminating: true }) }],
    ['ended', { bound: aPod('u-pod', { status: { phase: 'Failed', reason: 'Evicted' } }) }],
    ['template', { bound: aPod('u-pod', { digest: 'sha256:old' }) }],
    ['conflict', { bound: aPod('u-pod'), hasBindingConflict: true }],
  ];
  for (const [reason, change] of cases) {
    const what = change.bound?.metadata.deletionTimestamp === undefined ? reason : `${reason} gracefully`;
    it(`a pod that is replaced with the reason ${what} is counted once`, async () => {
      const { reconcile, samples } = recorder();
      const status = reconcile({ agent, ...change }, () => ({ kind: 'waiting', message: 'm' }));
      reconcile({ agent: anAgent({}, status) }, bound('u-next', READY));
      assert.equal((await samples())(`temper_pods_replaced_total{reason="${reason}"}`), 1);
    });
  }

  it('a pod that the agent keeps, or that a suspension removes, is not counted', async () => {
    const { reconcile, samples } = recorder();
    const pod = aPod('u-pod', { name: 'p' });
    reconcile({ agent, bound: pod, pods: [pod] }, bound('u-pod', READY));
    reconcile({ agent: anAgent({ suspend: true }, agent.status), bound: pod, pods: [pod] }, unbound);
    const value = await samples();
    for (const [reason] of cases) assert.equal(value(`temper_pods_replaced_total{reason="${reason}"}`), undefined);
  });
});
