import { API_VERSION } from '../../api/names.ts';
import type { ApprovalRequestSpec, ApprovalRequestStatus } from '../../api/v1alpha1/approvalrequest.ts';
import { printable } from '../../lib/printable.ts';
import type { CallDecision, PendingCall } from '../../nats/pending-calls.ts';
import { POLICY_ACTOR } from '../approval/timed-out.ts';
import { MANAGED_LABEL } from '../kube/types.ts';

/** Label of the ApprovalRequests of calls; the operator deletes those that were decided long ago. */
export const CALL_REQUEST_LABEL = { 'temper.dev/approval-type': 'ToolCall' } as const;

/** Who ends a request that nothing can decide any more. */
const SYSTEM = 'system';
const MESSAGE_ENDED = 'the message of the call has ended';

/** How long a decided request stays for users to see. */
const KEPT_MS = 24 * 3_600_000;

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

/** What the status says; undefined while the request is pending. */
export function requestStatus({ decision, used }: PendingCall): ApprovalRequestStatus | undefined {
  if (decision === undefined) return undefined;
  return {
    decision: decision.decision,
    decidedBy: decision.by,
    ...(used === undefined ? {} : { usedAt: used.at }),
  };
}

/** Who decided, for the audit chain. */
export function actorOf({ decision, by, timedOut }: CallDecision): string {
  if (timedOut === true) return POLICY_ACTOR;
  return decision === 'Expired' ? SYSTEM : `user/${printable(by, 120)}`;
}

/** A call whose message has ended cannot be resumed. */
export function endedCall(call: PendingCall): PendingCall {
  if (call.decision !== undefined) return call;
  return { ...call, decision: { decision: 'Expired', by: SYSTEM, reason: MESSAGE_ENDED } };
}

/** Whether a request of a call was decided so long ago that it is deleted. */
export function isOutdated(
  { metadata, status }: { metadata: { creationTimestamp?: string }; status?: ApprovalRequestStatus },
  now: number,
): boolean {
  return status?.decision !== undefined && Date.parse(metadata.creationTimestamp ?? '') + KEPT_MS < now;
}
