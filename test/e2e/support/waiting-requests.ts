import type { InstalledCluster } from './installed-cluster.ts';

interface CallRequest {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly agent: { readonly name: string }; readonly subject: { readonly call?: { tool: string } } };
  readonly status?: { readonly decision?: string };
}

/** The names of the ApprovalRequests of the agent without a decision, for calls of the tool or for all. */
export async function waitingRequests(
  { node }: InstalledCluster,
  { namespace, agent, tool }: { namespace: string; agent: string; tool?: string },
): Promise<string[]> {
  const path = `/apis/temper.dev/v1alpha1/namespaces/${namespace}/approvalrequests`;
  const { items } = (await node.admin.call('GET', path)).body as unknown as { items: CallRequest[] };
  return items
    .filter(({ spec, status }) => spec.agent.name === agent && status?.decision === undefined)
    .filter(({ spec }) => tool === undefined || spec.subject.call?.tool === tool)
    .map(({ metadata }) => metadata.name);
}
