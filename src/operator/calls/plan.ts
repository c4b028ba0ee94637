import { API_VERSION } from '../../api/names.ts';
import type { ApprovalRequestSpec, ApprovalRequestStatus } from '../../api/v1alpha1/approvalrequest.ts';
import { printable } from '../../lib/printable.ts';
import type { CallDecision, PendingCall } from '../../nats/pending-calls.ts';
import { POLICY_ACTOR, SYSTEM_ACTOR } from '../approval/timed-out.ts';
import { type ConditionUpdate, updateConditions } from '../conditions.ts';
import { MANAGED_LABEL } from '../kube/types.ts';

/** Label of the ApprovalRequests of calls; the operator deletes those that were decided long ago. */
export const CALL_REQUEST_LABEL = { 'temper.dev/approval-type': 'ToolCall' } as const;

const MESSAGE_ENDED = 'the message of the call has ended';

const DECIDED = 'Decided';

/** How long a request stays for users to see, after its decision and after its use. */
const MAX_AGE_MS = 24 * 3_600_000;

/** The ApprovalRequest of a call. Its Agent owns it, so it goes with the agent. */
export function requestObject(call: PendingCall): object {
  const { request, nonce, agent, agentUid, namespace, tool, session, risk, summary, subject } = partsOf(call);
  const { expiresAt, onTimeout, escalation } = call;
  const spec: ApprovalRequestSpec = {
    type: 'ToolCall',
    agent: { name: agent, uid: agentUid },
    nonce,
    summary,
    risk,
    tool,
    ...(call.arguments === '' ? {} : { arguments: call.arguments }),
    session,
    ...(expiresAt === undefined ? {} : { expiresAt }),
    ...(onTimeout === undefined ? {} : { onTimeout }),
    ...(escalation === undefined ? {} : { escalation }),
    subject,
  };
  const owner = { apiVersion: API_VERSION, kind: 'Agent', name: agent, uid: agentUid };
  return {
    apiVersion: API_VERSION,
    kind: 'ApprovalRequest',
    metadata: {
      name: request,
      namespace,
      labels: { ...MANAGED_LABEL, ...CALL_REQUEST_LABEL },
      ownerReferences: [owner],
    },
    spec,
  };
}

function partsOf(call: PendingCall) {
  const { agent, agentUid, tool, argumentsDigest, callId } = call;
  return { ...call, subject: { call: { agent, agentUid, tool, argumentsDigest, callId } } };
}

/** The request as the API server has it. */
export interface ShownRequest {
  readonly metadata?: { readonly generation?: number };
  readonly status?: ApprovalRequestStatus;
}

/** What the status says about a decided call. The time of its condition is that of the decision. */
export function requestStatus(
  { decision, used }: Pick<PendingCall, 'used'> & { decision: CallDecision },
  shown: ShownRequest | undefined,
  now: Date,
): ApprovalRequestStatus {
  const { generation = 1 } = shown?.metadata ?? {};
  const { conditions = [], decision: before } = shown?.status ?? {};
  // A denial that withdraws an approval is another decision, with its own time.
  const kept = before === decision.decision ? conditions : conditions.filter(({ type }) => type !== DECIDED);
  return {
    observedGeneration: generation,
    decision: decision.decision,
    decidedBy: decision.by,
    ...(used === undefined ? {} : { usedAt: used.at }),
    conditions: updateConditions(kept, [], [decidedCondition(decision)], generation, now),
  };
}

function decidedCondition(decided: CallDecision): ConditionUpdate<'Decided'> {
  const reason = printable(decided.reason, 300);
  const message = `${actorOf(decided)}${reason === '' ? '' : `: ${reason}`}`;
  return { type: DECIDED, status: 'True', reason: reasonFor(decided), message };
}

function reasonFor({ decision, timedOut }: CallDecision): string {
  if (decision === 'Expired') return timedOut === true ? 'TimedOut' : 'Expired';
  return decision === 'Approve' ? 'Approved' : 'Denied';
}

/** Who decided, for the audit chain. */
export function actorOf({ decision, by, timedOut }: CallDecision): string {
  if (timedOut === true) return POLICY_ACTOR;
  return decision === 'Expired' ? SYSTEM_ACTOR : `user/${printable(by, 120)}`;
}

/** A call whose message has ended cannot be resumed. */
export function endedCall(call: PendingCall): PendingCall {
  if (call.decision !== undefined) return call;
  return { ...call, decision: { decision: 'Expired', by: SYSTEM_ACTOR, reason: MESSAGE_ENDED } };
}

/** Whether a request of a call was decided, and its approval used, so long ago that it is deleted. */
export function isOutdated(
  { metadata, status }: { metadata: { creationTimestamp?: string }; status?: ApprovalRequestStatus },
  now: number,
): boolean {
  if (status?.decision === undefined) return false;
  const decidedAt = status.conditions?.find(({ type }) => type === DECIDED)?.lastTransitionTime;
  // A request that an earlier version of the operator decided has no condition.
  const times = [
    decidedAt ?? metadata.creationTimestamp ?? '',
    ...(status.usedAt === undefined ? [] : [status.usedAt]),
  ];
  return Math.max(...times.map((time) => Date.parse(time))) + MAX_AGE_MS < now;
}
