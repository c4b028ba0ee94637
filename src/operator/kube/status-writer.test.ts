import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../kube/client/kube-client.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { type StoredPolicy, TYPES } from './types.ts';
import { StatusWriter, type StatusWriterDeps } from './status-writer.ts';

type PolicyStatus = NonNullable<StoredPolicy['status']>;

function aPolicy(resourceVersion: string, status?: PolicyStatus): StoredPolicy {
  const metadata = { name: 'standard', namespace: 'team-a', uid: 'u', resourceVersion, generation: 1 };
  const policy = { apiVersion: 'temper.dev/v1alpha1', kind: 'TrustPolicy', metadata, spec: {} };
  return { ...policy, ...(status === undefined ? {} : { status }) } as unknown as StoredPolicy;
}

function statusWith(reason: string, status: 'True' | 'False' = 'True', agents = 1): PolicyStatus {
  const condition = { type: 'Ready', status, reason, message: reason, observedGeneration: 1 };
  return { agents, conditions: [{ ...condition, lastTransitionTime: '2031-05-05T11:00:00Z' }] } as PolicyStatus;
}

function aWriter(onPatch: () => void = () => {}) {
  const patches: unknown[] = [];
  const events: unknown[] = [];
  const client = {
    patch: async (_type: unknown, ref: object, patch: object, _signal: unknown, options: object) => {
      onPatch();
      patches.push({ ref, patch, options });
      const { status } = patch as { status: PolicyStatus };
      const stored = aPolicy(`v${patches.length + 1}`, status);
      return { ...stored, metadata: { ...stored.metadata, managedFields: [{ manager: 'temper-operator' }] } };
    },
  };
  const deps = {
    client,
    events: {
      record: (subject: { metadata: object }, event: object) => events.push({ ...subject.metadata, ...event }),
    },
  } as unknown as StatusWriterDeps;
  const writer = new StatusWriter<StoredPolicy>(deps, {
    type: TYPES.trustPolicies,
    awaited: 'Ready',
    differs: ({ status }, after) => status?.conditions?.[0]?.reason !== after.conditions?.[0]?.reason,
    patch: (_before, after) => after,
    prune: ({ metadata: { managedFields: _dropped, ...metadata }, ...rest }) => ({ ...rest, metadata }) as StoredPolicy,
  });
  return { writer, patches, events };
}

describe('the status writer', () => {
  it('a different status is one patch of the status subresource on the version that was read', async () => {
    const { writer, patches } = aWriter();
    const policy = aPolicy('v1');
    const status = statusWith('Accepted');
    const events = await writer.write(policy, policy, status, NEVER_ABORTED);
    assert.deepEqual(patches, [
      {
        ref: { namespace: 'team-a', name: 'standard' },
        patch: { metadata: { resourceVersion: 'v1' }, status },
        options: { subresource: 'status' },
      },
    ]);
    assert.deepEqual(events, [{ type: 'Normal', reason: 'Accepted', message: 'Accepted' }]);
  });

  it('a current status is neither written nor an Event', async () => {
    const { writer, patches } = aWriter();
    const policy = aPolicy('v1', statusWith('Accepted'));
    assert.equal(await writer.write(policy, policy, statusWith('Accepted'), NEVER_ABORTED), undefined);
    assert.deepEqual(patches, []);
  });

  it('an Event names the object, and a condition that becomes False is a warning', async () => {
    const { writer, events } = aWriter();
    const policy = aPolicy('v1', statusWith('Accepted'));
    const written = await writer.write(policy, policy, statusWith('InvalidSpec', 'False'), NEVER_ABORTED);
    writer.recordEvents(policy, written ?? []);
    const subject = { name: 'standard', namespace: 'team-a', uid: 'u' };
    assert.deepEqual(events, [{ ...subject, type: 'Warning', reason: 'InvalidSpec', message: 'InvalidSpec' }]);
  });

  it('the written object replaces the cached one until the cache changes', async () => {
    const { writer } = aWriter();
    const cached = aPolicy('v1');
    const status = statusWith('Accepted');
    await writer.write(cached, cached, status, NEVER_ABORTED);
    const written = writer.latest(cached);
    assert.equal(written.metadata.resourceVersion, 'v2');
    await writer.write(cached, written, statusWith('InvalidSpec', 'False'), NEVER_ABORTED);
    assert.equal(writer.latest(cached).metadata.resourceVersion, 'v3');
    const updated = aPolicy('v3', status);
    assert.equal(writer.latest(updated), updated);
    assert.equal(writer.latest(cached), cached, 'the cache had another version meanwhile, so the own write is dropped');
  });

  it('the written object is kept without what the cache does not keep either', async () => {
    const { writer } = aWriter();
    const cached = aPolicy('v1');
    await writer.write(cached, cached, statusWith('Accepted'), NEVER_ABORTED);
    assert.equal(writer.latest(cached).metadata.managedFields, undefined);
  });

  it('the watch event of an own write is not external, even when it arrives before the response', async () => {
    const status = statusWith('Accepted');
    const external: boolean[] = [];
    const { writer } = aWriter(() => external.push(writer.isExternalWrite(aPolicy('v2', status))));
    const policy = aPolicy('v1');
    await writer.write(policy, policy, status, NEVER_ABORTED);
    assert.deepEqual(external, [false]);
    assert.equal(writer.isExternalWrite(aPolicy('v9', statusWith('Intruder'))), true);
    writer.forget(policy);
    assert.equal(writer.isExternalWrite(aPolicy('v9', statusWith('Intruder'))), false);
  });

  it('a failed write records no own write, so the next reconcile reads the cached object', async () => {
    const { writer, events } = aWriter(() => {
      throw new ApiError(409, 'Conflict', 'changed');
    });
    const policy = aPolicy('v1');
    await assert.rejects(writer.write(policy, policy, statusWith('Accepted'), NEVER_ABORTED), { status: 409 });
    assert.equal(writer.latest(policy), policy);
    assert.deepEqual(events, []);
  });
});
