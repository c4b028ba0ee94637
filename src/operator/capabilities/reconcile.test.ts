import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { Capability, CapabilityStatus } from '../../api/v1alpha1/capability.ts';
import { ApiError } from '../../kube/client/kube-client.ts';
import { Store } from '../../kube/informer/store.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { Cache } from '../kube/cache.ts';
import type { Stored } from '../kube/types.ts';
import { aTool } from '../tool/tool.testing.ts';
import { addToolIndexes } from '../tool/tool-index.ts';
import { aCapability, type CapabilityChanges } from './capability.testing.ts';
import { BY_NAMESPACE, type CapabilityDeps, CapabilityReconciler } from './reconcile.ts';
import { pruneCapability, type StoredCapability } from './stored-capability.ts';

/** An operator and what the API server stores. The caches follow the writes when `observe` is called. */
function aFixture({ serviceTools }: Pick<CapabilityDeps['config'], 'serviceTools'> = {}) {
  const store = new Store<StoredCapability>();
  const tools = new Store<ReturnType<typeof aTool>>();
  const toolCache = new Cache([tools]);
  const capabilities = new Cache([store]);
  capabilities.addIndex(BY_NAMESPACE, ({ metadata }) => [metadata.namespace]);
  addToolIndexes({ tools: toolCache, approvals: new Cache([]), requests: new Cache([]) });
  const stored = new Map<string, Stored<Capability>>();
  const writes: string[] = [];
  const events: string[] = [];
  const conflicts = new Set<string>();
  const patch = async (_type: unknown, { name }: { name: string }, body: { status: CapabilityStatus }) => {
    if (conflicts.has(name)) throw new ApiError(409, 'Conflict', `${name} changed`);
    const before = stored.get(name) ?? assert.fail();
    const version = Number(before.metadata.resourceVersion) + 1;
    const metadata = { ...before.metadata, resourceVersion: `${version}` };
    const after = { ...before, metadata, status: body.status };
    stored.set(name, after);
    const [available] = body.status.conditions ?? [];
    writes.push(`${name} ${available?.reason}`);
    return after;
  };
  const reconciler = new CapabilityReconciler({
    client: { patch } as unknown as CapabilityDeps['client'],
    clock: new FakeClock(),
    config: { serviceTools, egress: { service: 'e', podLabels: {} } } as CapabilityDeps['config'],
    capabilities,
    tools: toolCache,
    events: { record: (_object, { reason }) => void events.push(reason) } as CapabilityDeps['events'],
  });
  const observe = (): void => stored.forEach((object) => void store.set(pruneCapability(object)));
  return {
    writes,
    events,
    conflicts,
    tools,
    reconciler,
    observe,
    set: (name: string, changes: CapabilityChanges = {}) => {
      stored.set(name, aCapability(name, { version: stored.size + 1, ...changes }));
      observe();
    },
    remove: (name: string) => {
      stored.delete(name);
      store.delete(`team-a/${name}`);
    },
    reconcile: () => reconciler.reconcile('team-a', { signal: NEVER_ABORTED } as never),
  };
}

describe('the writer of Capability status', () => {
  it('each Capability is written once, and nothing is written when nothing changed, whether the cache follows or not', async () => {
    const fixture = aFixture();
    fixture.set('find');
    fixture.set('skill', { spec: { type: 'Skill', tool: undefined, backend: undefined, content: 'Do it.' } });
    fixture.set('entry', { spec: { type: 'Extension', tool: undefined, backend: undefined } });
    await fixture.reconcile();
    await fixture.reconcile();
    fixture.observe();
    await fixture.reconcile();
    assert.deepEqual(fixture.writes, ['find Callable', 'skill Loadable', 'entry CatalogueOnly']);
    assert.deepEqual(fixture.events, [], 'a Capability without a fault has no Event');
  });

  it('the next Capability gets the name of a deleted one, with an Event for the fault and for its end', async () => {
    const fixture = aFixture();
    fixture.set('first', { tool: { name: 'find' } });
    fixture.set('second', { tool: { name: 'find' }, second: 5 });
    await fixture.reconcile();
    fixture.remove('first');
    fixture.observe();
    await fixture.reconcile();
    assert.deepEqual(fixture.writes, ['first Callable', 'second NameTaken', 'second Callable']);
    assert.deepEqual(fixture.events, ['NameTaken', 'Callable']);
  });

  it('a Capability follows the Shared tools that it requires', async () => {
    const fixture = aFixture();
    const tool = (active: boolean, resourceVersion: string) =>
      aTool({ tier: 'Shared' }, { metadata: { resourceVersion }, status: { active } });
    fixture.set('find', { spec: { requiredTools: ['csv_rows'] } });
    await fixture.reconcile();
    fixture.tools.set(tool(true, '1'));
    await fixture.reconcile();
    fixture.tools.set(tool(false, '2'));
    await fixture.reconcile();
    assert.deepEqual(fixture.writes, ['find ToolMissing', 'find Callable', 'find ToolMissing']);
  });

  it('a tool of a service is there for the namespaces of the service', async () => {
    const namesOf = async (namespaces: string[]) => {
      const { set, reconcile, writes } = aFixture({
        serviceTools: [{ name: 'web_search' }, { name: 'sql_query', namespaces }],
      });
      set('search', { spec: { requiredTools: ['web_search'] } });
      set('query', { spec: { requiredTools: ['sql_query'] } });
      await reconcile();
      return writes;
    };
    assert.deepEqual((await namesOf(['team-a'])).sort(), ['query Callable', 'search Callable']);
    assert.deepEqual((await namesOf(['team-b'])).sort(), ['query ToolMissing', 'search Callable']);
  });

  it('an object whose write conflicts holds up no other, and the reconcile fails so that it is repeated', async () => {
    const fixture = aFixture();
    fixture.conflicts.add('busy');
    fixture.set('busy');
    fixture.set('find');
    await assert.rejects(fixture.reconcile(), /busy changed/);
    assert.deepEqual(fixture.writes, ['find Callable']);
    fixture.conflicts.clear();
    await fixture.reconcile();
    assert.deepEqual(fixture.writes, ['find Callable', 'busy Callable']);
  });
});
