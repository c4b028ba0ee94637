import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OPERATOR_CONFIG } from '../../../test/support/operator/start-operator.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import { ApiError } from '../../kube/client/kube-client.ts';
import { Store } from '../../kube/informer/store.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { Cache } from '../kube/cache.ts';
import type { Pod } from '../kube/types.ts';
import { PodTemplates } from '../pods/pod-template.ts';
import { QuotaReleases } from '../pods/quota-releases.ts';
import { type PoolDeps, isPooled, reconcilePool } from './reconcile.ts';
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

function reconcileInFullQuota(...pods: Pod[]) {
  return reconcileRefused(
    new ApiError(403, 'Forbidden', 'pods "x" is forbidden: exceeded quota: temper-agents'),
    ...pods,
  );
}

/** A pool of one pod whose creation the API server refuses. Returns the result and the number of warnings in the log. */
async function reconcileRefused(refusal: ApiError, ...pods: Pod[]) {
  const [standard] = OPERATOR_CONFIG.sandboxClasses;
  assert.ok(standard !== undefined);
  const store = new Store<Pod>({ freeze: true });
  const cache = new Cache([store]);
  const config = { ...OPERATOR_CONFIG, sandboxClasses: [{ ...standard, pool: [{ namespace: 'team-a', size: 1 }] }] };
  const deps = {
    client: {
      create: async () => {
        throw refusal;
      },
    },
    config,
    templates: new PodTemplates(config),
    pool: new WarmPool(cache),
    ids: { next: () => 'id' },
    namespaces: { prepare: async () => ({ kind: 'prepared' }) },
    policyMonitor: { state: async () => ({ kind: 'protected' }) },
    quotaReleases: new QuotaReleases(cache, new FakeClock()),
  } as unknown as PoolDeps;
  store.replace(pods);
  let lines = 0;
  const destination = { write: () => void (lines += 1) };
  const log = createLogger({ level: 'warn', destination, secrets: createSecretRedactor() });
  const result = await reconcilePool(deps, 'team-a/standard', { log, signal: NEVER_ABORTED });
  return { result, lines };
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

  it('a full quota is a warning only when no pod of the namespace terminates', async () => {
    const full = await reconcileInFullQuota();
    assert.deepEqual(full, { result: { kind: 'requeueAfter', afterMs: 30_000 }, lines: 1 });
    const { metadata } = aPod('leaving', { className: 'standard', agentUid: 'u' });
    const leaving = { metadata: { ...metadata, deletionTimestamp: new Date(4_000).toISOString() } };
    assert.deepEqual(await reconcileInFullQuota(leaving), {
      result: { kind: 'requeueAfter', afterMs: 5_000 },
      lines: 0,
    });
  });

  it('a pool whose namespace does not exist yet is looked at again soon, without a warning', async () => {
    const missing = new ApiError(404, 'NotFound', 'namespaces "team-a" not found');
    assert.deepEqual(await reconcileRefused(missing), { result: { kind: 'requeueAfter', afterMs: 10_000 }, lines: 0 });
    await assert.rejects(reconcileRefused(new ApiError(500, 'InternalError', 'etcd')), { status: 500 });
  });

  it('a pool serves only the template of its class, in its own namespaces', () => {
    const [standard] = OPERATOR_CONFIG.sandboxClasses;
    assert.ok(standard !== undefined);
    const pooled = { ...standard, pool: [{ namespace: 'team-a', size: 1 }] };
    const templates = new PodTemplates(OPERATOR_CONFIG);
    const isServed = (namespace: string, sandbox = {}) =>
      isPooled({ sandboxClasses: [pooled] }, templates, namespace, templates.get(pooled, sandbox));
    assert.equal(isServed('team-a'), true);
    assert.equal(isServed('team-b'), false);
    assert.equal(isServed('team-a', { resources: { cpu: '2' } }), false);
  });
});
