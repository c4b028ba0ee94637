import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OPERATOR_CONFIG } from '../../../test/support/operator/start-operator.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import { Store } from '../../kube/informer/store.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { Cache } from '../kube/cache.ts';
import type { Pod } from '../kube/types.ts';
import { PodTemplates } from '../pods/pod-template.ts';
import { type PoolDeps, reconcilePool } from './reconcile.ts';
import { WarmPool } from './warm-pool.ts';

const LOG = createLogger({ level: 'silent', destination: { write: () => {} }, secrets: createSecretRedactor() });
const TEMPLATES = new PodTemplates(OPERATOR_CONFIG);

interface PodFields {
  readonly className: string;
  readonly agentUid?: string;
  readonly isDeleting?: boolean;
}

function aPod(name: string, { className, agentUid, isDeleting = false }: PodFields): Pod {
  const labels = {
    [LABELS.sandboxClass]: className,
    ...(agentUid === undefined ? {} : { [LABELS.agentUid]: agentUid }),
  };
  const metadata = { name, namespace: 'team-a', uid: `u-${name}`, resourceVersion: '1', labels };
  return { metadata: { ...metadata, ...(isDeleting ? { deletionTimestamp: '2031-01-01T00:00:00Z' } : {}) } };
}

async function reconcileClass(className: string, ...pods: Pod[]): Promise<unknown[]> {
  const store = new Store<Pod>({ freeze: true });
  const pool = new WarmPool(new Cache([store]));
  store.replace(pods);
  const deleted: unknown[] = [];
  const client = {
    delete: async (_type: unknown, { name }: { name: string }, { uid }: { uid: string }) =>
      deleted.push([name, uid]) > 0,
  };
  const deps = { client, config: OPERATOR_CONFIG, templates: TEMPLATES, pool } as unknown as PoolDeps;
  const result = await reconcilePool(deps, `team-a/${className}`, { log: LOG, signal: NEVER_ABORTED });
  assert.deepEqual(result, { kind: 'done' });
  return deleted;
}

describe('the warm pods of a class', () => {
  it('the warm pods of a class that the configuration no longer has are deleted, and no other pod', async () => {
    const deleted = await reconcileClass(
      'renamed',
      aPod('warm', { className: 'renamed' }),
      aPod('claimed', { className: 'renamed', agentUid: 'u' }),
      aPod('leaving', { className: 'renamed', isDeleting: true }),
      aPod('other', { className: 'standard' }),
    );
    assert.deepEqual(deleted, [['warm', 'u-warm']]);
  });

  it('the warm pods of a namespace whose pool was removed are deleted', async () => {
    const [standard] = OPERATOR_CONFIG.sandboxClasses;
    assert.ok(standard !== undefined && standard.pool === undefined);
    const pod = aPod('warm', { className: 'standard' });
    const annotations = { [ANNOTATIONS.template]: TEMPLATES.get(standard).digest };
    const usable = { ...pod, metadata: { ...pod.metadata, annotations } };
    assert.deepEqual(await reconcileClass('standard', usable), [['warm', 'u-warm']]);
  });
});
