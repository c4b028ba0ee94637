import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import { Store } from '../../kube/informer/store.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { Cache } from '../kube/cache.ts';
import { pruneAgent } from '../kube/prune.ts';
import type { StoredAgent } from '../kube/types.ts';
import { endLateSpecialists } from './specialists.ts';

const OF_AN_AGENT = { [LABELS.parentAgent]: 'u-lead', [LABELS.specialist]: 'true' };

const aSpecialist = (name: string, endsAt: string, labels: object = OF_AN_AGENT, more: object = {}): StoredAgent =>
  ({
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'Agent',
    metadata: {
      namespace: 'team-a',
      name,
      uid: `u-${name}`,
      labels,
      annotations: { [ANNOTATIONS.endsAt]: endsAt },
      ...more,
    },
    spec: {},
  }) as unknown as StoredAgent;

describe('specialists past their time', () => {
  it('only children that are late are deleted, by their UID, and no list of the API server is read for it', async () => {
    const deleted: unknown[] = [];
    const store = new Store<StoredAgent>();
    for (const agent of [
      aSpecialist('late', '2026-05-04T11:59:00Z'),
      aSpecialist('early', '2026-05-04T12:01:00Z'),
      aSpecialist('not-a-child', '2026-05-04T11:59:00Z', { [LABELS.specialist]: 'true' }),
      aSpecialist('lasting', '2026-05-04T11:59:00Z', { [LABELS.parentAgent]: 'u-lead' }),
      aSpecialist('ending', '2026-05-04T11:59:00Z', undefined, { deletionTimestamp: '2026-05-04T11:59:30Z' }),
      aSpecialist('broken', 'soon'),
    ])
      store.set(pruneAgent(agent));
    const client = {
      delete: async (_type: unknown, ref: unknown, options: unknown) => void deleted.push([ref, options]),
    };
    const clock = new FakeClock('2026-05-04T12:00:00Z');
    const deps = { client, agents: new Cache([store]), clock, log: { info: () => undefined } };
    await endLateSpecialists(deps as never, NEVER_ABORTED);
    assert.deepEqual(deleted, [[{ namespace: 'team-a', name: 'late' }, { uid: 'u-late' }]]);
  });
});
