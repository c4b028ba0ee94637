import type { ApiUser } from './api-client.ts';
import type { ControlPlane } from './control-plane.ts';
import type { ChartObject } from './helm.ts';
import { pollValue } from '../support/poll.ts';

const CLUSTER_SCOPED = new Set([
  'ClusterRole',
  'ClusterRoleBinding',
  'CustomResourceDefinition',
  'FlowSchema',
  'Namespace',
  'Node',
  'PriorityClass',
  'PriorityLevelConfiguration',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
]);

/** The path of the collection in which the object is created. */
export function collectionOf({ apiVersion, kind, metadata }: ChartObject, namespace = 'default'): string {
  const lower = kind.toLowerCase();
  const plural = lower.endsWith('y') ? `${lower.slice(0, -1)}ies` : lower.endsWith('s') ? `${lower}es` : `${lower}s`;
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const scope = CLUSTER_SCOPED.has(kind) ? '' : `/namespaces/${metadata.namespace ?? namespace}`;
  return `${root}${scope}/${plural}`;
}

/** Creates objects as an administrator. Throws the API server's message when it rejects one. */
export async function createAll(plane: ControlPlane, objects: readonly ChartObject[], query = ''): Promise<void> {
  for (const object of objects) {
    const { status, body } = await plane.admin.call('POST', `${collectionOf(object)}${query}`, { body: object });
    if (status !== 201) {
      throw new Error(`${object.kind} ${object.metadata.name}: ${status} ${String(body['message'])}`);
    }
  }
}

export async function createNamespace(
  plane: ControlPlane,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<void> {
  await createAll(plane, [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }]);
}

interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** One rule of each built-in role, to check that a binding is in effect. */
const SAMPLE_RULES: Readonly<Record<string, PolicyRule>> = {
  edit: { apiGroups: [''], resources: ['configmaps'], verbs: ['create'] },
  'cluster-admin': { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
};

/** Grants a user rules in one namespace, or in all without a namespace. Returns when the authorizer applies them. */
export async function grant(
  plane: ControlPlane,
  subject: ApiUser,
  rules: readonly PolicyRule[] | 'edit' | 'cluster-admin',
  namespace?: string,
): Promise<void> {
  const name = `test-${subject.user.replace(/[^a-z0-9]/g, '-')}-${Math.random().toString(36).slice(2, 8)}`;
  const metadata = namespace === undefined ? { name } : { name, namespace };
  const prefix = namespace === undefined ? 'Cluster' : '';
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const role = typeof rules === 'string' ? { kind: 'ClusterRole', name: rules } : { kind: `${prefix}Role`, name };
  if (typeof rules !== 'string') {
    await createAll(plane, [{ apiVersion, kind: `${prefix}Role`, metadata, rules }]);
  }
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: subject.user }];
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', ...role };
  await createAll(plane, [{ apiVersion, kind: `${prefix}RoleBinding`, metadata, subjects, roleRef }]);
  const rule = typeof rules === 'string' ? SAMPLE_RULES[rules] : rules.at(-1);
  if (rule === undefined) throw new Error('grant needs at least one rule');
  await waitUntilAuthorized(plane, subject, rule, namespace);
}

/** The authorizer applies roles and bindings some time after they are stored. */
async function waitUntilAuthorized(
  plane: ControlPlane,
  { user, groups = [] }: ApiUser,
  rule: PolicyRule,
  namespace?: string,
) {
  const [verb] = rule.verbs;
  const [group] = rule.apiGroups;
  const [resource, subresource] = rule.resources[0]?.split('/') ?? [];
  const [name] = rule.resourceNames ?? [];
  const resourceAttributes = { verb, group, resource, subresource, name, namespace };
  const body = { spec: { user, groups, resourceAttributes } };
  await pollValue(
    `the grant of ${user}`,
    () => plane.admin.call('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { body }),
    (answer) => (answer.body['status'] as { allowed?: boolean } | undefined)?.allowed === true,
  );
}
