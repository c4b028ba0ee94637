import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { PlainObject } from '../kube/types.ts';
import { VerifierPool, type VerifierPoolDeps } from './reconcile.ts';

const ENDPOINTS = { gateway: 'https://10.0.0.1:8443', gatewayName: 'gateway.temper-system.svc', caBundle: 'CA 1' };

/** An API server with the ConfigMap of verifier pods, and the operators that follow each other as leaders. */
function cluster() {
  const applied: PlainObject[] = [];
  let stored: PlainObject | undefined;
  const client = {
    get: async (_type: unknown, { name }: { name: string }) =>
      name === 'temper-verifier' ? { metadata: { name, uid: 'u-account' } } : stored,
    apply: async (_type: unknown, object: PlainObject) => {
      applied.push(object);
      stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(applied.length) } };
    },
  } as unknown as KubeClient;
  const leader = (endpoints: object) => {
    const pool = new VerifierPool({
      client,
      config: { namespace: 'temper-system', verifier: { warm: 0 } },
      template: { digest: 'd', labels: {}, spec: {} },
      verifierPods: { waiting: [], pods: () => [], isInUse: () => false, isClaimed: () => false },
      ids: { next: () => 'id' },
      endpoints: () => endpoints,
    } as unknown as VerifierPoolDeps);
    return pool.reconcile({ signal: NEVER_ABORTED } as Parameters<VerifierPool['reconcile']>[0]);
  };
  return { applied, leader };
}

describe('the ConfigMap of verifier pods', () => {
  it('a new leader writes it only when the endpoints differ from the stored ones', async () => {
    const { applied, leader } = cluster();
    await leader(ENDPOINTS);
    await leader(ENDPOINTS);
    assert.equal(applied.length, 1);
    await leader({ ...ENDPOINTS, caBundle: 'CA 2' });
    assert.deepEqual(
      applied.map(({ data }) => (data as Record<string, string>)['ca.crt']),
      ['CA 1', 'CA 2'],
    );
  });
});
