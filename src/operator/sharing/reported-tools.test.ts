import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { sha256 } from '../../lib/canonical.ts';
import { ReportedTools } from './reported-tools.ts';

/** An API server with one ConfigMap, or none. */
function aFixture(data?: Record<string, string>) {
  let stored = data === undefined ? undefined : { metadata: { name: '', resourceVersion: '7' }, data };
  const writes: string[] = [];
  const client = {
    get: async () => stored,
    create: async (_type: unknown, object: { data: Record<string, string> }) => {
      writes.push('create');
      stored = { metadata: { name: '', resourceVersion: '1' }, data: object.data };
      return object;
    },
    patch: async (
      _type: unknown,
      _ref: unknown,
      patch: { metadata: { resourceVersion: string }; data: Record<string, string | null> },
    ) => {
      assert.equal(patch.metadata.resourceVersion, stored?.metadata.resourceVersion);
      writes.push('patch');
      const next = Object.entries({ ...stored?.data, ...patch.data }).filter(([, value]) => value !== null);
      stored = {
        metadata: { name: '', resourceVersion: '8' },
        data: Object.fromEntries(next) as Record<string, string>,
      };
    },
  };
  const reported = new ReportedTools(client as unknown as KubeClient, new FakeClock(), 'temper-system');
  return { reported, writes, keys: () => Object.keys(stored?.data ?? {}) };
}

const toolOf = (namespace: string, name = 'double') => ({ namespace, digest: sha256(name) });

describe('the tools that reached tier Agent by reported answers', () => {
  it('a tool is remembered in its namespace alone, until an agent reaches tier Agent without such answers', async () => {
    const { reported, writes, keys } = aFixture();
    const [own, other] = [toolOf('team-a'), toolOf('team-b')];
    assert.equal(await reported.has(own, NEVER_ABORTED), false);
    await reported.remove(own, NEVER_ABORTED);
    assert.deepEqual(writes, [], 'what is not remembered costs no write');
    await reported.add(own, NEVER_ABORTED);
    await reported.add(own, NEVER_ABORTED);
    assert.deepEqual(writes, ['create']);
    assert.ok(
      keys().every((key) => /^[-._a-zA-Z0-9]+$/.test(key)),
      keys().join(),
    );
    assert.equal(await reported.has(own, NEVER_ABORTED), true);
    assert.equal(await reported.has(other, NEVER_ABORTED), false);
    assert.equal(await reported.has(toolOf('team-a', 'triple'), NEVER_ABORTED), false);
    await reported.add(other, NEVER_ABORTED);
    await reported.remove(own, NEVER_ABORTED);
    assert.equal(await reported.has(own, NEVER_ABORTED), false);
    assert.equal(await reported.has(other, NEVER_ABORTED), true);
  });

  it('a namespace that fills its part of the list loses the benefit of the doubt, and no other namespace does', async () => {
    const entries = Array.from({ length: 500 }, (_, index) => [`team-a.${sha256(`t${index}`).slice(7, 39)}`, 'x']);
    const { reported, keys } = aFixture(Object.fromEntries(entries) as Record<string, string>);
    await reported.add(toolOf('team-a'), NEVER_ABORTED);
    await reported.add(toolOf('team-a', 'another'), NEVER_ABORTED);
    assert.equal(keys().length, 501);
    assert.equal(await reported.has(toolOf('team-a', 'never seen'), NEVER_ABORTED), true);
    assert.equal(await reported.has(toolOf('team', 'never seen'), NEVER_ABORTED), false);
    await reported.add(toolOf('team'), NEVER_ABORTED);
    assert.equal(await reported.has(toolOf('team'), NEVER_ABORTED), true);
    assert.equal(await reported.has(toolOf('team', 'never seen'), NEVER_ABORTED), false);
  });
});
