import { resourceType } from '../../kube/client/resource-path.ts';
import { randomUUID } from 'node:crypto';
import { API_VERSION } from '../../api/names.ts';
import type { Approval } from '../../api/v1alpha1/approval.ts';
import type { ApprovalRequest } from '../../api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import type { Connection, GitConnection } from '../../connections/connection.ts';
import type { KubeReader } from '../../kube/client/kube-client.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import { canonicalJson, isDigest } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { createNatsAudit } from '../../nats/audit.ts';
import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import { createPromotionStates } from '../../nats/promotion/promotion-states.ts';
import { createPullRequestStore } from '../../nats/pull-requests.ts';
import { repositoryOf } from '../../review/pull-requests/servers.ts';
import type { Repository } from '../../review/pull-requests/port.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { GatewayInformers } from '../cluster/informers.ts';
import type { AgentDirectory } from '../deps.ts';
import type { GitOpsLocation, GitTask } from './follow.ts';
import { newestHead } from './audit-head.ts';
import { recordedFacts } from './recorded-facts.ts';
import { type PromotionMaterial, requestTask } from './request-task.ts';
import { revocationTask } from './revocation-task.ts';
import { revokedPromotions } from './revoked-promotions.ts';
import { followPullRequests } from './rounds.ts';

export interface PullRequestOptions {
  readonly connections: readonly Connection[];
  /** Where the operator stores the signed heads; undefined outside of a release. */
  readonly releaseNamespace: string | undefined;
  readonly client: KubeReader;
  readonly bus: JetStreamConnection;
  readonly directory: Pick<AgentDirectory, 'agent'>;
  readonly watches: Pick<GatewayInformers, 'approvals' | 'policies' | 'tools'>;
  readonly clock: Clock;
  readonly log: Logger;
}

const APPROVAL_REQUESTS = resourceType(API_VERSION, 'approvalrequests', 'ApprovalRequest');
const APPROVALS = resourceType(API_VERSION, 'approvals', 'Approval');
const TOOLS = resourceType(API_VERSION, 'emergenttools', 'EmergentTool');

/** Opens and follows pull requests in the background until it is disposed. Without a connection for Git it does nothing. */
export function startPullRequests(options: PullRequestOptions): AsyncDisposable {
  const { connections, bus, clock, log } = options;
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
            repositoryOf: repositories(clock),
            tasks: async (aborted) =>
              inTurns(await Promise.all(namespaces.map((one) => tasksIn(options, one, aborted)))),
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

/** One repository per connection, so that what it read last serves all tasks. */
function repositories(clock: Clock): (connection: GitConnection) => Repository {
  const known = new Map<string, Repository>();
  return (connection) => {
    const repository = known.get(connection.name) ?? repositoryOf(connection, { clock });
    known.set(connection.name, repository);
    return repository;
  };
}

/** The first of each list, then the second of each: no namespace with many tasks keeps those of another out. */
function inTurns<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, index) => lists.flatMap((list) => list.slice(index, index + 1))).flat();
}

async function tasksIn(options: PullRequestOptions, namespace: string, signal: AbortSignal): Promise<GitTask[]> {
  return [...(await requestTasks(options, namespace, signal)), ...revocationTasks(options, namespace, signal)];
}

/** Requests for tier Shared that no approver decided yet, of agents whose policy names a connection. */
async function requestTasks(options: PullRequestOptions, namespace: string, signal: AbortSignal): Promise<GitTask[]> {
  const { client, directory } = options;
  const requests = await client.list<ApprovalRequest & KubeObject>(APPROVAL_REQUESTS, { namespace }, signal);
  return requests.flatMap((request): GitTask[] => {
    const { agent, subject } = request.spec;
    if (request.status?.decision !== undefined || subject.promotion?.tier !== 'Shared') return [];
    const gitOps = directory.agent(namespace, agent.name)?.policy?.spec.promotion?.toShared?.gitOps;
    if (gitOps === undefined) return [];
    const { tool, digest } = subject.promotion;
    if (!isDigest(digest)) return [];
    const pending = { request, namespace, promotion: { tool, digest }, gitOps };
    return [requestTask(pending, () => materialOf(options, { namespace, digest }, signal))];
  });
}

/** Revocations of every user, for every location that a policy of the namespace names: the agent of the tool may be gone. */
function revocationTasks(options: PullRequestOptions, namespace: string, signal: AbortSignal): GitTask[] {
  const { watches } = options;
  const isOwn = ({ metadata }: KubeObject) => metadata.namespace === namespace;
  const locations = locationsOf(watches.policies.store.list().filter(isOwn));
  if (locations.length === 0) return [];
  const approvals = watches.approvals.store.list().filter(isOwn);
  const revoked = revokedPromotions(namespace, approvals, watches.tools.store.list().filter(isOwn));
  return revoked.flatMap((one) =>
    locations.map((gitOps) => revocationTask(one, gitOps, () => materialOf(options, one, signal))),
  );
}

function locationsOf(
  policies: ReturnType<PullRequestOptions['watches']['policies']['store']['list']>,
): GitOpsLocation[] {
  const locations = policies.flatMap(({ spec }) => spec.promotion?.toShared?.gitOps ?? []);
  return [...new Map(locations.map((location) => [canonicalJson({ ...location }), location])).values()];
}

/** The objects of the tool with the digest, and what is recorded about it. Undefined when it has no object. */
async function materialOf(
  { client, bus, releaseNamespace }: PullRequestOptions,
  { namespace, digest }: { namespace: string; digest: string },
  signal: AbortSignal,
): Promise<PromotionMaterial | undefined> {
  const [tools, approvals] = await Promise.all([
    client.list<EmergentTool & KubeObject>(TOOLS, { namespace }, signal),
    client.list<Approval & KubeObject>(APPROVALS, { namespace }, signal),
  ]);
  const own = tools.filter(({ spec }) => spec.digest === digest);
  const tool = own.find(({ spec }) => spec.tier === 'Agent') ?? own[0];
  if (tool === undefined || !isDigest(digest)) return undefined;
  const agentUid = tool.metadata.ownerReferences?.find(({ kind }) => kind === 'Agent')?.uid;
  const sources = { states: createPromotionStates(bus), audit: createNatsAudit(bus) };
  const facts = await recordedFacts(sources, { namespace, digest, agentUid });
  // After the facts, so that the head covers them unless they are of the last minute.
  const auditHead = await newestHead(client, releaseNamespace, signal);
  return {
    objects: { tool, tools, approvals },
    facts: { ...facts, ...(auditHead === undefined ? {} : { auditHead }) },
  };
}
