import type { ToolArtifact } from '../../../src/api/v1alpha1/emergenttool.ts';
import { artifactDigest } from '../../../src/tempering/registry/serialization.ts';
import type { GatewayFixture } from '../../support/gateway/gateway-fixture.ts';

const API_VERSION = 'temper.dev/v1alpha1';

/** An agent with a tool of tier Agent and a pending request for tier Shared, under a policy that names the place. Returns the UID of the agent. */
export async function pendingRequest(
  cluster: GatewayFixture,
  order: { namespace: string; artifact: ToolArtifact; nonce: string; gitOps: object },
): Promise<string> {
  const { namespace, artifact, nonce, gitOps } = order;
  const digest = artifactDigest(artifact);
  const objects = `/apis/temper.dev/v1alpha1/namespaces/${namespace}`;
  await cluster.createPolicy(namespace, 'shared', { promotion: { toShared: { gitOps } } });
  const agentUid = await cluster.createAgent(namespace, 'analyst', { trustPolicyRef: { name: 'shared' } });
  await cluster.create(`${objects}/emergenttools`, {
    apiVersion: API_VERSION,
    kind: 'EmergentTool',
    metadata: {
      name: 'revenue-of-analyst',
      namespace,
      ownerReferences: [{ apiVersion: API_VERSION, kind: 'Agent', name: 'analyst', uid: agentUid }],
    },
    spec: { artifact, digest, tier: 'Agent', contributors: ['agent/analyst'] },
  });
  const subject = { promotion: { tool: artifact.name, digest, tier: 'Shared' } };
  const agent = { name: 'analyst', uid: 'u-1' };
  await cluster.create(`${objects}/approvalrequests`, {
    apiVersion: API_VERSION,
    kind: 'ApprovalRequest',
    metadata: { name: 'revenue-request', namespace },
    spec: { type: 'PromoteTool', agent, nonce, summary: 'Share it.', risk: 'low', subject },
  });
  return agentUid;
}
