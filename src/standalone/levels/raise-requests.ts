import { isDeepStrictEqual } from 'node:util';
import { API_VERSION } from '../../api/names.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { Audit } from '../../audit/port.ts';
import { digestOf, sha256 } from '../../lib/canonical.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import { type Json, type JsonObject, member, textAt } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { approvalRules, decidedByTimeout, requestTimes } from '../../policy/approval-rules.ts';
import type { TrustBinding } from '../../policy/trust/effective.ts';
import type { TrustRequest } from '../../policy/trust/evaluate.ts';
import { decisionIn, isTimedOut, policyActor, statusOf, timesOf, withStatus } from '../approval-objects.ts';
import { APPROVALS, REQUESTS, timeOutRequest } from '../stored-decision.ts';

const MAX_NAME_PART = 40;

/** The versions of the specs of one agent, since its level was last lowered. */
export interface RaisedAgent {
  readonly agent: Agent;
  readonly policy: TrustPolicy;
  readonly namespace: string;
  readonly binding: TrustBinding;
  readonly loweredAt: string | undefined;
}

/**
 * The same rise of the same versions has the same request, so a rise that an approver or the timeout of the policy denied is not requested
 * again before a spec changes.
 */
export function raiseRequestName(raised: RaisedAgent, { category, level }: TrustRequest): string {
  const { agent, namespace, binding, loweredAt = '' } = raised;
  const { agentGeneration, policyUid, policyGeneration } = binding;
  const { name } = agent.metadata;
  const parts = [namespace, name, agentGeneration, policyUid, policyGeneration, loweredAt, category ?? '', level];
  const hash = sha256(JSON.stringify(parts)).slice('sha256:'.length, 'sha256:'.length + 26);
  return `trust-${name.slice(0, MAX_NAME_PART).replace(/[^a-z0-9]+$/, '')}-${hash}`;
}

/** The rises that were approved and not applied yet, by the name of their request and approval. */
export async function approvedRaises(
  records: RecordStore,
  raised: RaisedAgent,
  requests: readonly TrustRequest[],
): Promise<Map<string, TrustRequest>> {
  const approved = new Map<string, TrustRequest>();
  for (const request of requests) {
    const name = raiseRequestName(raised, request);
    const stored = await records.get(REQUESTS, name);
    if (isAsk(stored, raised, request) && isApproved(stored, await records.get(APPROVALS, name)))
      approved.set(name, request);
  }
  return approved;
}

/** An approval raises a level once; the rise is asked for again when the level was withdrawn. */
export async function useApproval(records: RecordStore, name: string, now: Date): Promise<void> {
  const stored = await records.get(REQUESTS, name);
  await records.put(REQUESTS, name, withStatus(stored, name, { usedAt: now.toISOString() }));
}

/** Asks for each of these rises once, and ends the requests of the agent for others and those whose timeout denies them. */
export async function requestRaises(
  records: RecordStore,
  raised: RaisedAgent,
  requests: readonly TrustRequest[],
  { audit, ids, now }: { audit: Pick<Audit, 'append'>; ids: IdGenerator; now: Date },
): Promise<void> {
  const wanted = new Map(requests.map((request) => [raiseRequestName(raised, request), request]));
  for (const { name, value } of await records.list(REQUESTS)) {
    const isStale = isRaiseOf(value, raised) && statusOf(value) === '' && !wanted.has(name);
    if (isStale) await records.put(REQUESTS, name, withStatus(value, name, { decision: 'Expired' }));
    else if (isRaiseOf(value, raised) && isOverdue(value, now)) await timeOut(records, raised, { name, audit });
  }
  for (const [name, request] of wanted) {
    const stored = await records.get(REQUESTS, name);
    if (stored !== undefined && !isEnded(stored) && isAsk(stored, raised, request)) continue;
    // An approval of the earlier request has its nonce, so it counts for this one no more; without it, users can decide again.
    await records.delete(APPROVALS, name);
    await records.put(REQUESTS, name, raiseRequest(name, raised, request, { nonce: ids.next('nonce'), now }));
  }
}

/** No timeout approves a rise. */
function isOverdue(request: Json, now: Date): boolean {
  return statusOf(request) === '' && decidedByTimeout(timesOf(request), now) === 'Deny';
}

async function timeOut(
  records: RecordStore,
  { agent, policy }: RaisedAgent,
  { name, audit }: { name: string; audit: Pick<Audit, 'append'> },
): Promise<void> {
  const actor = policyActor(policy.metadata.name);
  const subject = `agent/${agent.metadata.name}`;
  const facts = { request: name, decision: 'Expired', reason: 'no approver decided before the timeout' };
  await audit.append({ action: 'approval.decided', actor, evidence: 'observed', subject, facts });
  await timeOutRequest(records, name, actor);
}

function isApproved(request: Json | undefined, approval: Json | undefined): boolean {
  const spec = member(approval, 'spec');
  return (
    !isEnded(request) &&
    !isTimedOut(request) &&
    decisionIn(approval)?.decision === 'Approve' &&
    textAt(spec, ['nonce']) !== '' &&
    textAt(spec, ['nonce']) === textAt(request, ['spec', 'nonce']) &&
    isDeepStrictEqual(member(spec, 'subject'), member(member(request, 'spec'), 'subject'))
  );
}

/** It was applied, or its requirements were not met any more. */
function isEnded(request: Json | undefined): boolean {
  return (statusOf(request) === 'Expired' && !isTimedOut(request)) || textAt(request, ['status', 'usedAt']) !== '';
}

function isAsk(stored: Json | undefined, raised: RaisedAgent, request: TrustRequest): boolean {
  return (
    stored !== undefined && isDeepStrictEqual(member(member(stored, 'spec'), 'subject'), subjectOf(raised, request))
  );
}

function isRaiseOf(request: Json, { agent, namespace }: RaisedAgent): boolean {
  return (
    textAt(request, ['spec', 'type']) === 'RaiseTrust' &&
    textAt(request, ['spec', 'agent', 'name']) === agent.metadata.name &&
    textAt(request, ['metadata', 'namespace']) === namespace
  );
}

function subjectOf({ agent, policy, binding }: RaisedAgent, { category, level }: TrustRequest): JsonObject {
  return {
    trust: {
      agent: agent.metadata.name,
      agentUid: binding.agentUid,
      level,
      ...(category === undefined ? {} : { category }),
      agentSpecDigest: digestOf(agent.spec as unknown as Json),
      policy: policy.metadata.name,
      policyGeneration: binding.policyGeneration,
    },
  };
}

function raiseRequest(
  name: string,
  raised: RaisedAgent,
  request: TrustRequest,
  { nonce, now }: { nonce: string; now: Date },
): JsonObject {
  const { agent, policy, namespace, binding } = raised;
  const { name: agentName } = agent.metadata;
  const { category, from, level } = request;
  const where = category === undefined ? '' : ` for tools of category ${category}`;
  return {
    apiVersion: API_VERSION,
    kind: 'ApprovalRequest',
    metadata: { name, namespace, creationTimestamp: now.toISOString() },
    spec: {
      type: 'RaiseTrust',
      agent: { name: agentName, uid: binding.agentUid },
      nonce,
      summary: `Agent "${agentName}" meets the requirements of TrustPolicy "${policy.metadata.name}" for level ${level}${where}; see temper trust explain ${agentName}`,
      risk: level === 'elevated' ? 'critical' : 'high',
      from,
      to: level,
      ...requestTimes(approvalRules(policy.spec.approvals), now),
      subject: subjectOf(raised, request),
    },
    status: {},
  };
}
