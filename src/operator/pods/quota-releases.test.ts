import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../kube/client/kube-client.ts';
import { Store } from '../../kube/informer/store.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { Cache } from '../kube/cache.ts';
import type { Pod } from '../kube/types.ts';
import { QuotaReleases, isQuotaError } from './quota-releases.ts';

function aPod(namespace: string, endsAtMs?: number): Pod {
  const metadata = { name: `pod-${namespace}`, namespace, uid: `u-${namespace}`, resourceVersion: '1' };
  if (endsAtMs === undefined) return { metadata };
  const deletionTimestamp = new Date(endsAtMs).toISOString();
  return { metadata: { ...metadata, deletionTimestamp, deletionGracePeriodSeconds: 30 } };
}

function releasesOf(...pods: Pod[]) {
  const store = new Store<Pod>({ freeze: true });
  const clock = new FakeClock();
  const releases = new QuotaReleases(new Cache([store]), clock);
  store.replace(pods);
  return { releases, clock, store };
}

describe('the quota that terminating pods release', () => {
  it('a namespace without a terminating pod releases nothing, whatever other namespaces do', () => {
    const { releases } = releasesOf(aPod('team-a'), aPod('team-b', 30_000));
    assert.equal(releases.retryAfterMs('team-a'), undefined);
  });

  it('a terminating pod is awaited until its grace period has passed, and then every second', async () => {
    const { releases, clock } = releasesOf(aPod('team-a', 20_000));
    assert.equal(releases.retryAfterMs('team-a'), 21_000);
    await clock.advance(20_500);
    assert.equal(releases.retryAfterMs('team-a'), 1_000);
  });

  it('a pod that no kubelet ends is awaited for one more grace period and not longer', async () => {
    const { releases, clock } = releasesOf(aPod('team-a', 0));
    await clock.advance(39_999);
    assert.equal(releases.retryAfterMs('team-a'), 1_000);
    await clock.advance(1);
    assert.equal(releases.retryAfterMs('team-a'), undefined);
  });

  it('a deleted pod is awaited until the controller manager has updated the quota', async () => {
    const pod = aPod('team-a', 30_000);
    const { releases, clock, store } = releasesOf(pod);
    store.delete('team-a/pod-team-a');
    releases.onDeleted(pod);
    assert.equal(releases.retryAfterMs('team-a'), 1_000);
    assert.equal(releases.retryAfterMs('team-b'), undefined);
    await clock.advance(10_000);
    assert.equal(releases.retryAfterMs('team-a'), undefined);
  });

  it('only the 403 of a full quota is a quota error', () => {
    const full =
      'pods "a" is forbidden: exceeded quota: temper-agents, requested: pods=1, used: pods=1, limited: pods=1';
    assert.equal(isQuotaError(new ApiError(403, 'Forbidden', full)), true);
    assert.equal(isQuotaError(new ApiError(422, 'Invalid', full)), false);
    assert.equal(isQuotaError(new ApiError(403, 'Forbidden', 'pods "a" is forbidden: violates PodSecurity')), false);
    assert.equal(isQuotaError(new Error(full)), false);
  });
});
