import { parentUidOf } from '../children/child-object.ts';
import { IN_SERVICE, type ObservedObject } from '../../events/platform/object-events.ts';
import type { ObjectFact } from '../../events/platform/observed-object.ts';
import { PLATFORM_SUBJECTS, type PlatformSubject } from '../../events/platform/subjects.ts';
import type { Condition } from '../../api/v1alpha1/common.ts';
import type { StoredRequest } from '../approval/stored-decision.ts';
import type { Stored, StoredAgent } from '../kube/types.ts';
import type { StoredTool } from '../tool/stored-tool.ts';

/** What events can say about an agent: its state and its quotas. `parent`: the agent that started it. Pure. */
export function agentFacts(agent: StoredAgent, parent: StoredAgent | undefined): ObservedObject {
  const { name, uid } = agent.metadata;
  const parentName = parentUidOf(agent) === undefined ? undefined : (parent?.metadata.name ?? '');
  return {
    object: {
      ...identityOf('Agent', agent),
      agent: name,
      ownerUid: uid,
      ...(parentName === undefined ? {} : { parent: parentName }),
    },
    createdAt: Date.parse(agent.metadata.creationTimestamp),
    facts: [...stateOf(agent), ...budgetOf(agent)],
  };
}

/** Reasons of Ready that say nothing about the agent itself. */
const PASSING: ReadonlySet<string> = new Set(['Pending', 'Starting', 'BusUnavailable']);

/** An idle agent is running: its next message starts a pod. */
function stateOf({ metadata: { name: agent }, status }: StoredAgent): ObjectFact[] {
  const active = conditionOf(status?.conditions, 'Active');
  const ready = conditionOf(status?.conditions, 'Ready');
  const fact = (value: string, subject: PlatformSubject, reason: string): ObjectFact[] => [
    { name: 'state', value, event: { subject, data: { agent, reason } } },
  ];
  if (active?.status === 'False') return fact('Suspended', PLATFORM_SUBJECTS.agentSuspended, active.reason);
  if (ready === undefined || PASSING.has(ready.reason)) return [];
  if (ready.status === 'True') return fact('Running', PLATFORM_SUBJECTS.agentRunning, 'Running');
  return fact(`NotReady/${ready.reason}`, PLATFORM_SUBJECTS.agentNotReady, ready.reason);
}

function budgetOf({ metadata: { name: agent }, status }: StoredAgent): ObjectFact[] {
  const budget = conditionOf(status?.conditions, 'BudgetAvailable');
  if (budget === undefined) return [];
  const { reason } = budget;
  if (reason === 'WithinBudget') return [{ name: 'budget', value: reason }];
  const subject = budget.status === 'False' ? PLATFORM_SUBJECTS.quotaExhausted : PLATFORM_SUBJECTS.quotaNearlyUsed;
  return [{ name: 'budget', value: reason, event: { subject, data: { agent, reason } } }];
}

/** What events can say about a tool: whether it is in service. `owner`: its agent, of a tool at tier Agent. Pure. */
export function toolFacts(tool: StoredTool, owner: StoredAgent | undefined): ObservedObject {
  const { metadata, facts } = tool;
  const agent = facts.agent ?? '';
  return {
    object: {
      ...identityOf('EmergentTool', tool),
      agent,
      ownerUid: owner?.metadata.uid ?? metadata.uid,
      tool: facts.tool,
    },
    createdAt: Date.parse(metadata.creationTimestamp),
    facts: serviceOf(tool, agent),
  };
}

/** Reasons of Active with which a tool that was in service has left it; with others it waits for its first day. */
const LEFT: ReadonlySet<string> = new Set(['VerificationFailed', 'Deactivated', 'Inactive', 'Demoted']);

function serviceOf({ metadata, facts, status }: StoredTool, agent: string): ObjectFact[] {
  const active = conditionOf(status?.conditions, 'Active');
  if (active === undefined) return [];
  const { reason } = active;
  const data = { agent, tool: facts.tool, object: metadata.name, digest: facts.digest, tier: facts.tier, reason };
  const fact = (value: string, subject: PlatformSubject, after?: string): ObjectFact[] => [
    { name: 'service', value, event: { subject, data, ...(after === undefined ? {} : { after }) } },
  ];
  if (active.status === 'True') {
    const subject = facts.tier === 'Shared' ? PLATFORM_SUBJECTS.toolShared : PLATFORM_SUBJECTS.toolPromoted;
    return fact(IN_SERVICE, subject);
  }
  if (reason === 'Revoked') return fact(reason, PLATFORM_SUBJECTS.toolRevoked);
  return LEFT.has(reason) ? fact(reason, PLATFORM_SUBJECTS.toolDemoted, IN_SERVICE) : [];
}

/** What events can say about a request for an approval. Pure. */
export function requestFacts(request: StoredRequest): ObservedObject {
  const { metadata, spec, status } = request;
  const { name: agent, uid: ownerUid } = spec.agent;
  const decision = status?.decision;
  const data = { agent, request: metadata.name, type: spec.type };
  const event =
    decision === undefined
      ? { subject: PLATFORM_SUBJECTS.approvalRequested, data }
      : { subject: PLATFORM_SUBJECTS.approvalDecided, data: { ...data, decision } };
  return {
    object: { ...identityOf('ApprovalRequest', request), agent, ownerUid },
    createdAt: Date.parse(metadata.creationTimestamp),
    facts: [{ name: 'decision', value: decision ?? 'Pending', event }],
  };
}

function identityOf<Kind extends string>(kind: Kind, { metadata }: Stored<{ metadata: object }>) {
  const { uid, namespace, name } = metadata;
  return { kind, uid, namespace, name };
}

function conditionOf(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}
