import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { digestOf } from '../../lib/canonical.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { ApiError } from '../../kube/client/kube-client.ts';
import { Store } from '../../kube/informer/store.ts';
import { Cache } from '../kube/cache.ts';
import type { PlainObject } from '../kube/types.ts';
import { POLICY_DIGEST_ANNOTATION } from './installed-policies.ts';
import { AdmissionPolicyMonitor, type AdmissionPolicyMonitorDeps } from './monitor.ts';

const NAME = 'temper-reserved';

function installed(spec: Record<string, string>, version: string): PlainObject {
  const annotations = { [POLICY_DIGEST_ANNOTATION]: digestOf(spec) };
  return { metadata: { name: NAME, uid: NAME, resourceVersion: version, annotations }, spec };
}

const OLD = { rule: 'old' };
const NEW = { rule: 'new' };
const BINDING = { policyName: NAME, validationActions: ['Deny'] };

/** A monitor that requires the policy `OLD`, which is installed; `upgrade` installs another one. */
function aMonitor() {
  const policies = new Store<PlainObject>();
  const bindings = new Store<PlainObject>();
  const clock = new FakeClock();
  policies.set(installed(OLD, '1'));
  const annotations = { [POLICY_DIGEST_ANNOTATION]: digestOf(BINDING) };
  bindings.set({ metadata: { name: NAME, uid: 'binding', resourceVersion: '1', annotations }, spec: BINDING });
  const client = {
    get: async () => ({ metadata: { name: 'team-a', labels: { 'temper.dev/agents': 'true' } } }),
    create: async (_type: unknown, pod: PlainObject) => {
      if (Object.keys(pod.metadata.labels ?? {}).length > 0) return pod;
      throw new ApiError(403, 'Forbidden', 'denied');
    },
  };
  const monitor = new AdmissionPolicyMonitor({
    client,
    clock,
    policies: new Cache([policies]),
    bindings: new Cache([bindings]),
    expected: { [NAME]: digestOf(OLD) },
  } as unknown as AdmissionPolicyMonitorDeps);
  return {
    monitor,
    clock,
    install: (spec: Record<string, string>, version: string) => policies.set(installed(spec, version)),
  };
}

describe('the monitor of the admission policies', () => {
  it('a policy of another version counts as lasting after a minute, which is one change of the state', async () => {
    const { monitor, clock, install } = aMonitor();
    assert.deepEqual(await monitor.state('team-a', NEVER_ABORTED), { kind: 'protected' });
    install(NEW, '2');
    const early = await monitor.state('team-a', NEVER_ABORTED);
    assert.ok(early.kind === 'notEnforced' && !early.isLasting);
    assert.equal(monitor.isNotEnforced('team-a'), true);
    await clock.advance(59_999);
    assert.equal(await monitor.refresh('team-a', NEVER_ABORTED), false);
    await clock.advance(1);
    assert.equal(await monitor.refresh('team-a', NEVER_ABORTED), true);
    const late = await monitor.state('team-a', NEVER_ABORTED);
    assert.ok(late.kind === 'notEnforced' && late.isLasting);
    assert.equal(await monitor.refresh('team-a', NEVER_ABORTED), false);
  });

  it('a policy that is in force again ends the outage, so the next one has its own minute', async () => {
    const { monitor, clock, install } = aMonitor();
    install(NEW, '2');
    await monitor.state('team-a', NEVER_ABORTED);
    await clock.advance(50_000);
    install(OLD, '3');
    assert.deepEqual(await monitor.state('team-a', NEVER_ABORTED), { kind: 'protected' });
    install(NEW, '4');
    await clock.advance(20_000);
    const again = await monitor.state('team-a', NEVER_ABORTED);
    assert.ok(again.kind === 'notEnforced' && !again.isLasting);
  });

  it('a namespace without agents is no longer counted', async () => {
    const { monitor } = aMonitor();
    await monitor.state('team-a', NEVER_ABORTED);
    await monitor.state('team-b', NEVER_ABORTED);
    monitor.retain(['team-b', 'team-c']);
    assert.deepEqual(monitor.states(), ['protected']);
  });

  it('a check survives the abort of the reconcile that asked first', async () => {
    const { monitor } = aMonitor();
    const first = monitor.state('team-a', AbortSignal.abort(new Error('timed out')));
    const second = monitor.state('team-a', NEVER_ABORTED);
    await assert.rejects(first, /timed out/);
    assert.deepEqual(await second, { kind: 'protected' });
  });
});
