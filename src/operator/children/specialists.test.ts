import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { endLateSpecialists } from './specialists.ts';

const aSpecialist = (
  name: string,
  endsAt: string,
  labels: object = { [LABELS.parentAgent]: 'u-lead' },
  more: object = {},
) => ({
  metadata: {
    namespace: 'team-a',
    name,
    uid: `u-${name}`,
    labels,
    annotations: { [ANNOTATIONS.endsAt]: endsAt },
    ...more,
  },
});

describe('specialists past their time', () => {
  it('only children that are late are deleted, by their UID', async () => {
    const deleted: unknown[] = [];
    const selectors: unknown[] = [];
    const objects = [
      aSpecialist('late', '2026-05-04T11:59:00Z'),
      aSpecialist('early', '2026-05-04T12:01:00Z'),
      aSpecialist('not-a-child', '2026-05-04T11:59:00Z', {}),
      aSpecialist('ending', '2026-05-04T11:59:00Z', undefined, { deletionTimestamp: '2026-05-04T11:59:30Z' }),
      aSpecialist('broken', 'soon'),
    ];
    const client = {
      list: async (_type: unknown, selector: unknown) => {
        selectors.push(selector);
        return objects;
      },
      delete: async (_type: unknown, ref: unknown, options: unknown) => void deleted.push([ref, options]),
    };
    const deps = { client, clock: new FakeClock('2026-05-04T12:00:00Z'), log: { info: () => undefined } };
    await endLateSpecialists({ ...deps, namespaces: ['team-a'] } as never, NEVER_ABORTED);
    assert.deepEqual(deleted, [[{ namespace: 'team-a', name: 'late' }, { uid: 'u-late' }]]);
    assert.deepEqual(selectors, [{ namespace: 'team-a', labelSelector: LABELS.specialist }]);
  });
});
