import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ApiClient } from '../cluster/api-client.ts';
import { type Installation, RELEASE_NAMESPACE } from './installation.ts';
import { eventually } from './scene.ts';

/** What comes and goes by itself: reports, and what the control plane makes of other objects. */
const VOLATILE = new Set(['events', 'endpointslices', 'endpoints', 'leases', 'apiservices', 'csinodes', 'nodes']);
/** What every namespace has, of whomever it is. */
const OF_NAMESPACES = ['configmaps/kube-root-ca.crt', 'serviceaccounts/default'];

/** What docs/install.md says stays. */
const LEFT_OF_RELEASE = [
  'configmaps/temper-bus-store',
  'persistentvolumeclaims/data-temper-nats-0',
  'secrets/temper-authority',
  'secrets/temper-gateway-keys',
  'secrets/temper-gateway-tls',
  'secrets/temper-nats-config',
  'secrets/temper-nats-tls',
  'secrets/temper-nats-users',
];
const KINDS = ['agents', 'approvalrequests', 'approvals', 'capabilities', 'emergenttools', 'trustpolicies'];
const LEFT_WITH_AGENTS = [
  'configmaps/temper-doors',
  'networkpolicies/temper-allow-gateway',
  'networkpolicies/temper-deny-all',
  'resourcequotas/temper-agents',
  'serviceaccounts/temper-agent',
  'serviceaccounts/temper-people',
];

/** The last test of an installation. `before` is what the cluster held before the chart; `ours` are namespaces of these tests. */
export function removal(
  installation: () => Installation,
  before: () => ReadonlySet<string>,
  ours: readonly string[],
): void {
  describe('helm uninstall', () => {
    it('leaves what the docs say and nothing else', async () => {
      const { node } = installation();
      await installation().kubectl('delete', 'agents', '--all', '-A', '--wait=false');
      await eventually(async () => {
        const pods = await installation().kubectl('get', 'pods', '-A', '-l', 'temper.dev/agent-uid', '-o', 'name');
        assert.equal(pods, '');
      });
      await installation().helm('uninstall', 'temper', '--wait');
      const crds = KINDS.map((kind) => `customresourcedefinitions/${kind}.temper.dev`);
      const release = [...OF_NAMESPACES, ...LEFT_OF_RELEASE].map((name) => `${RELEASE_NAMESPACE}/${name}`);
      const expected = [...crds, `namespaces/${RELEASE_NAMESPACE}`, ...release].toSorted();
      await eventually(async () => {
        const left = [...(await allObjects(node.admin))].filter((name) => !before().has(name));
        const others = left.filter(
          (name) => !ours.some((one) => name === `namespaces/${one}` || name.startsWith(`${one}/`)),
        );
        assert.deepEqual(others.toSorted(), expected);
      });
    });

    it('leaves beside agents that are gone what closes their namespace, and no pod', async () => {
      const [namespace = ''] = ours;
      const found = [...(await allObjects(installation().node.admin))].filter((name) =>
        name.startsWith(`${namespace}/`),
      );
      const expected = [...OF_NAMESPACES, ...LEFT_WITH_AGENTS, 'trustpolicies/policy'];
      assert.deepEqual(found.toSorted(), expected.map((name) => `${namespace}/${name}`).toSorted());
    });
  });
}

interface Resource {
  readonly name: string;
  readonly verbs: readonly string[];
}

/** Everything of every kind that the API server serves, as `[namespace/]resource/name`. */
export async function allObjects(admin: ApiClient): Promise<Set<string>> {
  const { body } = await admin.call('GET', '/apis');
  const groups = body['groups'] as { preferredVersion: { groupVersion: string } }[];
  const roots = ['/api/v1', ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`)];
  const found = await Promise.all(roots.map((root) => objectsBelow(admin, root)));
  return new Set(found.flat());
}

async function objectsBelow(admin: ApiClient, root: string): Promise<string[]> {
  const { body } = await admin.call('GET', root);
  const resources = ((body['resources'] ?? []) as Resource[]).filter(
    ({ name, verbs }) => verbs.includes('list') && !name.includes('/') && !VOLATILE.has(name),
  );
  const lists = await Promise.all(
    resources.map(async ({ name }) => {
      const list = await admin.call('GET', `${root}/${name}`);
      const items = (list.body['items'] ?? []) as { metadata: { name: string; namespace?: string } }[];
      return items.map(({ metadata }) => [metadata.namespace, name, metadata.name].filter(Boolean).join('/'));
    }),
  );
  return lists.flat();
}
