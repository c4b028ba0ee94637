import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ApiClient } from '../../cluster/api-client.ts';
import { type InstalledCluster, RELEASE_NAMESPACE } from '../support/installed-cluster.ts';
import { pollAssertion } from '../../support/poll.ts';

/** Resources that the control plane creates and deletes by itself. */
const VOLATILE = new Set(['events', 'endpointslices', 'endpoints', 'leases', 'apiservices', 'csinodes', 'nodes']);
/** Objects that Kubernetes creates in every namespace. */
const IN_EVERY_NAMESPACE = ['configmaps/kube-root-ca.crt', 'serviceaccounts/default'];

/** The objects that stay according to docs/install.md. */
const KEPT_IN_RELEASE = [
  'configmaps/temper-audit-heads',
  'configmaps/temper-nats-store',
  'persistentvolumeclaims/data-temper-nats-0',
  'secrets/temper-audit-key',
  'secrets/temper-ca',
  'secrets/temper-egress-tls',
  'secrets/temper-gateway-signing-keys',
  'secrets/temper-gateway-tls',
  'secrets/temper-nats-config',
  'secrets/temper-nats-tls',
  'secrets/temper-nats-users',
  'secrets/temper-source-keys',
];
const KINDS = ['agents', 'approvalrequests', 'approvals', 'capabilities', 'emergenttools', 'trustpolicies'];
const KEPT_WITH_AGENTS = [
  'configmaps/temper-endpoints',
  'networkpolicies/temper-allow-egress',
  'networkpolicies/temper-allow-gateway',
  'networkpolicies/temper-deny-all',
  'resourcequotas/temper-agents',
  'serviceaccounts/temper-agent',
  'serviceaccounts/temper-users',
];

/**
 * The last suite of an installation. `before` are the objects before the chart was installed; `testNamespaces` were created by the suites, and
 * `testObjects` in the namespace of the release.
 */
export function removal(
  cluster: () => InstalledCluster,
  before: () => ReadonlySet<string>,
  testNamespaces: readonly string[],
  testObjects: readonly string[],
): void {
  describe('helm uninstall', () => {
    it('helm uninstall leaves only the documented objects', async () => {
      const { node } = cluster();
      await cluster().kubectl('delete', 'agents', '--all', '-A', '--wait=false');
      await pollAssertion('the deletion of all agent pods', async () => {
        const pods = await cluster().kubectl('get', 'pods', '-A', '-l', 'temper.dev/agent-uid', '-o', 'name');
        assert.equal(pods, '');
      });
      await cluster().helm('uninstall', 'temper', '--wait');
      const crds = KINDS.map((kind) => `customresourcedefinitions/${kind}.temper.dev`);
      const release = [...IN_EVERY_NAMESPACE, ...KEPT_IN_RELEASE, ...testObjects].map(
        (name) => `${RELEASE_NAMESPACE}/${name}`,
      );
      const expected = [...crds, `namespaces/${RELEASE_NAMESPACE}`, ...release].toSorted();
      await pollAssertion('the documented objects', async () => {
        const left = [...(await allObjects(node.admin))].filter((name) => !before().has(name));
        const others = left.filter(
          (name) => !testNamespaces.some((one) => name === `namespaces/${one}` || name.startsWith(`${one}/`)),
        );
        assert.deepEqual(others.toSorted(), expected);
      });
    });

    it('a namespace of deleted agents keeps its network policies, quota and accounts, and has no pod', async () => {
      const [namespace = ''] = testNamespaces;
      const found = [...(await allObjects(cluster().node.admin))].filter((name) => name.startsWith(`${namespace}/`));
      const expected = [...IN_EVERY_NAMESPACE, ...KEPT_WITH_AGENTS, 'trustpolicies/policy'];
      assert.deepEqual(found.toSorted(), expected.map((name) => `${namespace}/${name}`).toSorted());
    });
  });
}

interface Resource {
  readonly name: string;
  readonly verbs: readonly string[];
}

/** All objects of all kinds that the API server serves, as `[namespace/]resource/name`. */
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
