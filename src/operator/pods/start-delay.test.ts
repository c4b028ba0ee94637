import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Pod } from '../kube/types.ts';
import { latestWarning, isLate } from './start-delay.ts';

const CREATED = '2026-05-04T12:00:00Z';
const after = (seconds: number) => new Date(Date.parse(CREATED) + seconds * 1_000);
const aPod = (status: object = { phase: 'Pending' }): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'team-a', uid: 'u-pod', creationTimestamp: CREATED },
    status,
  }) as Pod;

describe('a late pod', () => {
  it('a pod that is still starting after 15 seconds is late', () => {
    assert.equal(isLate(aPod(), after(14)), false);
    assert.equal(isLate(aPod(), after(15)), true);
  });

  it('a running pod and a pod whose status already contains the error are not late', () => {
    const ready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    const crashed = { containerStatuses: [{ name: 'agent', state: { waiting: { reason: 'CrashLoopBackOff' } } }] };
    for (const status of [ready, crashed]) assert.equal(isLate(aPod(status), after(99)), false);
  });

  it('the latest warning Event explains a late pod, with escaped text', async () => {
    const requests: object[] = [];
    const source = { component: 'kubelet' };
    const events = [
      {
        reason: 'FailedScheduling',
        message: 'too early',
        lastTimestamp: '2026-05-04T12:00:01Z',
        reportingComponent: 'default-scheduler',
      },
      {
        reason: 'FailedMount',
        message: 'configmap \u001b[2J "orders" not found\n',
        eventTime: '2026-05-04T12:00:09Z',
        source,
      },
      { reason: 'Odd', message: 'without a time', lastTimestamp: null, eventTime: null, source },
      // Any writer of the namespace can create these.
      { reason: 'Forged', message: 'call 555', eventTime: '2026-05-04T12:00:10Z' },
      { reason: 'Forged', message: 'call 555', eventTime: '2026-05-04T12:00:10Z', reportingComponent: 'mine', source },
    ];
    const client = {
      list: async (_type: object, options: object) => {
        requests.push(options);
        return events;
      },
    } as unknown as KubeClient;
    const { signal } = new AbortController();
    assert.equal(await latestWarning(client, aPod(), signal), 'FailedMount: configmap \\u{1b}[2J "orders" not found');
    assert.deepEqual(requests, [
      { namespace: 'team-a', fieldSelector: 'involvedObject.uid=u-pod,type=Warning,reason!=Unhealthy' },
    ]);
    events.length = 0;
    assert.equal(await latestWarning(client, aPod(), signal), undefined);
  });
});
