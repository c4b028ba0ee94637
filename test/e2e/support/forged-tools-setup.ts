import { agentObject, NamespaceAgents, namespaceObject, policyObject } from './fixture.ts';
import { type ClusterUser, createClusterUser } from './cluster-user.ts';
import { NESTED, RISING } from './forging-script.ts';
import type { InstalledCluster } from './installed-cluster.ts';
import { buildLyingImage, withMovedTag } from './lying-image.ts';
import type { NamedSession } from './user-session.ts';
import { buildTrustPolicy } from '../../support/builders.ts';

export const FORGING_NAMESPACE = 'forging';
const DOMAIN = 'status.example.com';
const LIMITS = { duration: '5s', memory: '128Mi', sessionTools: 40, agentTools: 50, minTestCases: 1 };
const POLICY = {
  level: { initial: 'standard', ceiling: 'standard' },
  // The tool that fetches asks no approver.
  autonomy: 'Full',
  decay: { maxErrorPercent: 15 },
  models: { judge: 'default/judge', reviewers: ['default/safety', 'default/correctness'] },
  forge: { apis: ['fetch'], domains: [DOMAIN], limits: LIMITS },
  egress: { allow: [DOMAIN] },
};
const GUARDED = {
  level: { initial: 'standard', ceiling: 'standard' },
  models: { judge: 'default/judge' },
  rules: { requireApproval: ['code:read'] },
};
const MEMORY = { read: ['**'], write: ['**'] };
const BUILT_IN = ['memory_get', 'memory_search', 'generate_text'];

/** The agents of one namespace, and the user who approves what they ask for. */
export interface ForgedTools {
  readonly cluster: InstalledCluster;
  readonly agents: NamespaceAgents;
  readonly approver: ClusterUser;
  readonly sessionOf: (agent: string, session: string) => NamedSession;
}

/** Starts an agent that forges, one that calls what it shares, a guarded one, and one with the lying image. */
export async function openForgedTools(cluster: InstalledCluster): Promise<ForgedTools> {
  const agents = new NamespaceAgents(cluster, FORGING_NAMESPACE);
  await cluster.apply(namespaceObject(FORGING_NAMESPACE));
  await cluster.apply(policyObject(FORGING_NAMESPACE, POLICY), buildTrustPolicy(FORGING_NAMESPACE, GUARDED, 'guarded'));
  const forge = { enabled: true, modes: ['Compose', 'Sandbox'] };
  const chain = { tools: BUILT_IN, memory: MEMORY };
  const lying = agentObject(FORGING_NAMESPACE, 'liar', { grants: chain, forge });
  const building = buildLyingImage(cluster.node);
  await cluster.apply(
    agentObject(FORGING_NAMESPACE, 'smith', {
      grants: { ...chain, network: [DOMAIN] },
      forge: { ...forge, apis: ['fetch'] },
    }),
    agentObject(FORGING_NAMESPACE, 'caller', { grants: { ...chain, tools: [...BUILT_IN, ...RISING, NESTED] } }),
    agentObject(FORGING_NAMESPACE, 'guarded', {
      trustPolicyRef: { name: 'guarded' },
      grants: { tools: ['file_list'] },
      forge,
    }),
  );
  const approver = await createClusterUser(cluster, 'ada', {
    namespace: FORGING_NAMESPACE,
    roles: ['temper-approver', 'temper-user'],
  });
  await building;
  for (const name of ['smith', 'caller', 'guarded']) await agents.waitForReason(name, 'Running');
  await withMovedTag(cluster.node, async () => {
    await cluster.apply(lying);
    await agents.waitForReason('liar', 'Running');
  });
  const { kubeconfig } = cluster.node;
  const sessionOf = (agent: string, session: string) => ({ kubeconfig, namespace: FORGING_NAMESPACE, agent, session });
  return { cluster, agents, approver, sessionOf };
}
