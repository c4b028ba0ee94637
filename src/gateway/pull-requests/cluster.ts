import { randomUUID } from 'node:crypto';
import { GROUP, VERSION } from '../../api/names.ts';
import type { Approval } from '../../api/v1alpha1/approval.ts';
import type { ApprovalRequest } from '../../api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import type { Connection } from '../../connections/connection.ts';
import type { KubeReader, ResourceType } from '../../kube/client/kube-client.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import type { Clock } from '../../lib/clock.ts';
import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import { createPullRequestStore } from '../../nats/pull-requests.ts';
import { pullRequestServer } from '../../review/pull-requests/servers.ts';
import type { PromotionObjects } from '../../review/gitops/review-of-objects.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { AgentDirectory } from '../deps.ts';
import type { PendingRequest } from './follow.ts';
import { followPullRequests } from './rounds.ts';

export interface PullRequestOptions {
  readonly connections: readonly Connection[];
  readonly client: KubeReader;
  readonly bus: JetStreamConnection;
  readonly directory: Pick<AgentDirectory, 'agent'>;
  readonly clock: Clock;
  readonly log: Logger;
}

const typeOf = (kind: string, plural: string): ResourceType => ({
  group: GROUP,
  version: VERSION,
  plural,
  kind,
  namespaced: true,
});
const APPROVAL_REQUESTS = typeOf('ApprovalRequest', 'approvalrequests');
const APPROVALS = typeOf('Approval', 'approvals');
const TOOLS = typeOf('EmergentTool', 'emergenttools');

/** Opens and follows pull requests in the background until it is disposed. Without a connection for Git it does nothing. */
export function startPullRequests(options: PullRequestOptions): AsyncDisposable {
  const { connections, client, bus, directory, clock, log } = options;
  const namespaces = [...new Set(connections.filter(({ git }) => git !== undefined).flatMap((one) => one.namespaces))];
  const stopping = new AbortController();
  const { signal } = stopping;
  const running =
    namespaces.length === 0
      ? Promise.resolve()
      : followPullRequests(
          {
            holder: randomUUID(),
            store: createPullRequestStore(bus),
            connections,
            clock,
            log,
            serverOf: (connection) => pullRequestServer(connection, { clock }),
            pending: async (aborted) =>
              (await Promise.all(namespaces.map((one) => pendingIn(client, directory, one, aborted)))).flat(),
            objectsOf: (pending, aborted) => objectsOf(client, pending, aborted),
          },
          signal,
        );
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await running;
    },
  };
}

/** Requests for tier Shared that no approver decided yet, of agents whose policy names a connection. */
async function pendingIn(
  client: KubeReader,
  directory: Pick<AgentDirectory, 'agent'>,
  namespace: string,
  signal: AbortSignal,
): Promise<PendingRequest[]> {
  const requests = await client.list<ApprovalRequest & KubeObject>(APPROVAL_REQUESTS, { namespace }, signal);
  return requests.flatMap((request): PendingRequest[] => {
    const { agent, subject } = request.spec;
    if (request.status?.decision !== undefined || subject.promotion?.tier !== 'Shared') return [];
    const gitOps = directory.agent(namespace, agent.name)?.policy?.spec.promotion?.toShared?.gitOps;
    return gitOps === undefined ? [] : [{ request, namespace, gitOps }];
  });
}

async function objectsOf(
  client: KubeReader,
  { request, namespace }: PendingRequest,
  signal: AbortSignal,
): Promise<PromotionObjects | undefined> {
  const [tools, approvals] = await Promise.all([
    client.list<EmergentTool & KubeObject>(TOOLS, { namespace }, signal),
    client.list<Approval & KubeObject>(APPROVALS, { namespace }, signal),
  ]);
  const own = tools.filter(({ spec }) => spec.digest === request.spec.subject.promotion?.digest);
  const tool = own.find(({ spec }) => spec.tier === 'Agent') ?? own[0];
  return tool === undefined ? undefined : { tool, tools, approvals, request };
}
