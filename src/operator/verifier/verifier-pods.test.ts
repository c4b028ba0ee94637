import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ANNOTATIONS } from '../../api/cluster.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import { Store } from '../../kube/informer/store.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { Cache } from '../kube/cache.ts';
import type { Pod } from '../kube/types.ts';
import { VerifierPods } from './verifier-pods.ts';

const TEMPLATE = { digest: 'd', labels: {}, spec: {} };
const CLAIM = { key: 'team-a/uid/digest', namespace: 'team-a', attempt: 'a-1' };

function podsWith(patch: () => Pod): VerifierPods {
  const store = new Store<Pod>();
  const metadata = { name: 'warm', namespace: 'temper-system', uid: 'uid-warm', resourceVersion: '1' };
  const conditions = [{ type: 'Ready', status: 'True' }];
  store.set({
    metadata: { ...metadata, annotations: { [ANNOTATIONS.template]: TEMPLATE.digest } },
    status: { phase: 'Running', conditions },
  });
  const client = { patch: async () => patch() } as unknown as KubeClient;
  return new VerifierPods({
    client,
    pods: new Cache([store]),
    template: TEMPLATE,
    max: 3,
    onDemand: () => undefined,
  });
}

describe('the claim of a verifier pod', () => {
  it('a promotion that takes a pod waits for no other one, also before the API server has answered', async () => {
    const during: (readonly string[])[] = [];
    const pods = podsWith(() => {
      during.push(pods.waiting);
      return { metadata: { name: 'warm', uid: 'uid-warm' } };
    });
    const claimed = await pods.claim(CLAIM, NEVER_ABORTED);
    assert.equal(claimed?.metadata.uid, 'uid-warm');
    assert.deepEqual([during, pods.waiting], [[[]], []]);
  });

  it('a promotion waits for a pod that the API server did not give it, and for one while there is none', async () => {
    const refused = podsWith(() => {
      throw new ApiError(409, 'Conflict', 'another operator assigned it');
    });
    assert.equal(await refused.claim(CLAIM, NEVER_ABORTED), undefined);
    assert.deepEqual(refused.waiting, [CLAIM.key]);
  });
});
