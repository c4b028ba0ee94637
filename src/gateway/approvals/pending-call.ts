import type { ApprovalSubject } from '../../api/v1alpha1/common.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { ApprovalRecord } from '../../approvals/approval-record.ts';
import { verdictOn } from '../../approvals/verdict.ts';
import { digestOf, sha256 } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { type Json, textAt } from '../../lib/json.ts';
import type { CallDecision, PendingCall } from '../../nats/pending-calls.ts';
import { approvalRules, decidedByTimeout, requestTimes } from '../../policy/approval-rules.ts';
import { patternSet } from '../../policy/patterns/pattern-set.ts';
import { parseSubject } from '../../policy/patterns/pattern-subjects.ts';
import type { Decision } from '../../policy/types.ts';
import { callIdOf } from '../../tools/approvals.ts';
import { hostsOf } from '../../tools/authorize.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { FORGE_TOOL_NAME } from '../../tools/forge-test-call.ts';
import { shownArguments } from '../../tools/shown-arguments.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';

/** The pure rules for calls that need an approval. */

const MAX_PENDING = 5;
/** Requests of one agent that are stored, those that were decided included. */
const MAX_STORED = 20;
/** Arguments that are stored for approvers; longer ones are cut and state their length. */
const MAX_ARGUMENTS = 4_000;

export interface CallQuestion {
  claims: DeliveryTokenClaims;
  policy: TrustPolicy | undefined;
  descriptor: ToolDescriptor;
  input: Json;
  callKey: string;
  decision: Decision;
  /** Whether the agent withholds the sources of its tools: the arguments of a forge then have a marker. */
  withholds: boolean;
  nonce: string;
  now: Date;
}

export function newPendingCall({
  claims,
  policy,
  descriptor,
  input,
  callKey,
  decision,
  withholds,
  nonce,
  now,
}: CallQuestion): PendingCall {
  const { agent, agentUid, namespace, session, message, at } = claims;
  const argumentsDigest = digestOf(input);
  const hosts = hostsOf(descriptor, input);
  const callId = callIdOf(callKey);
  const { rule, risk, reason } = decision;
  const identity = { agentUid, session, message, argumentsDigest, callId, rule, risk, ...identityOf(descriptor) };
  return {
    request: requestName(descriptor.name, digestOf(identity)),
    nonce,
    agent,
    agentUid,
    namespace,
    tool: descriptor.name,
    argumentsDigest,
    callId,
    session,
    message,
    sequence: at.streamSequence,
    risk,
    rule,
    ...(hosts.length === 0 ? {} : { hosts: [...hosts] }),
    summary: reason.slice(0, 1_024),
    arguments:
      descriptor.name === FORGE_TOOL_NAME && withholds
        ? withheldArguments(input)
        : cutJson(shownArguments(input, (text) => text)),
    createdAt: now.toISOString(),
    ...requestTimes(approvalRules(policy?.spec.approvals, risk), now),
  };
}

/** What an approver of a forge sees of it: not the source that is withheld. */
function withheldArguments(input: Json): string {
  const [name, description] = [textAt(input, ['name']), textAt(input, ['description'])];
  const marker = { withheld: digestOf(input), bytes: Buffer.byteLength(JSON.stringify(input)) };
  return cutJson(shownArguments({ name, description, ...marker }, (text) => text));
}

function identityOf({ name, forged }: ToolDescriptor): { tool: string } {
  return { tool: forged?.digest ?? name };
}

function requestName(tool: string, digest: string): string {
  const slug = tool.toLowerCase().replaceAll(/[^a-z0-9]/g, '-');
  return `call-${slug}-${sha256(digest).slice('sha256:'.length, 'sha256:'.length + 16)}`;
}

/** The field of an ApprovalRequest is JSON, so cut arguments become one JSON text. */
function cutJson(shown: string): string {
  if (shown.length <= MAX_ARGUMENTS) return shown;
  const kept = shown.slice(0, MAX_ARGUMENTS / 2).toWellFormed();
  return JSON.stringify(`${kept}… (${shown.length} characters)`);
}

/** Adds the call unless its request exists. Throws TEMPER_QUOTA_EXCEEDED when the agent has too many requests. */
export function addCall(calls: readonly PendingCall[], call: PendingCall, now: Date): readonly PendingCall[] {
  if (calls.some(({ request }) => request === call.request)) return calls;
  const pending = calls.filter((one) => decisionOf(one, now) === undefined);
  if (pending.length < MAX_PENDING && calls.length < MAX_STORED) return [...calls, call];
  throw new TemperError(
    'TEMPER_QUOTA_EXCEEDED',
    `${pending.length} requests of agent "${call.agent}" await a decision; decide those first (kubectl get approvalrequests)`,
  );
}

export function subjectOf({ agent, agentUid, tool, argumentsDigest, callId }: PendingCall): ApprovalSubject {
  return { call: { agent, agentUid, tool, argumentsDigest, callId } };
}

/** The decision of an approver, by the Approvals of the namespace; undefined while there is none. */
export function approverDecision(call: PendingCall, approvals: readonly ApprovalRecord[]): CallDecision | undefined {
  const verdict = verdictOn({ subject: subjectOf(call), nonce: call.nonce }, approvals);
  if (verdict.decision === 'Pending') return undefined;
  const { by, reason = '' } = verdict.approval;
  return { decision: verdict.decision === 'Approve' ? 'Approve' : 'Deny', by: by.slice(0, 253), reason };
}

/** The pod has this decision, and ends the call with it: a later Approval changes nothing. */
function hasExpired({ decision }: PendingCall): boolean {
  return decision?.decision === 'Expired';
}

/** What is decided about a call now: by an approver, or by the policy after the timeout. */
export function decisionOf(call: PendingCall, now: Date): CallDecision | undefined {
  if (call.decision !== undefined) return call.decision;
  const outcome = decidedByTimeout(call, now);
  if (outcome === 'Pending') return undefined;
  const byPolicy = { by: 'policy', timedOut: true } as const;
  if (outcome === 'Deny') return { decision: 'Expired', ...byPolicy, reason: 'no approver decided in time' };
  return { decision: 'Approve', ...byPolicy, reason: 'no approver decided before the timeout' };
}

/** Instead of an approval by timeout that the policy does not have any more. */
export const WITHDRAWN: CallDecision = {
  decision: 'Expired',
  by: 'policy',
  timedOut: true,
  reason: 'no approver decided in time, and the policy does not approve such calls any more',
};

/**
 * The call with this decision. The first one stays, but that a denial withdraws an approval until the call has used it: a denial of an
 * approver each approval, one of the policy only its own.
 */
export function withDecision(call: PendingCall, decision: CallDecision): PendingCall {
  const { decision: before, used } = call;
  if (before === undefined) return { ...call, decision };
  const isOverruled = decision.timedOut === true && before.timedOut !== true;
  const isFinal = hasExpired(call) || isOverruled || used !== undefined;
  return isFinal || before.decision === decision.decision ? call : { ...call, decision };
}

/**
 * Whether the call may run now, by the Approvals and the policy of this moment and not by what was stored: a revoked approval, and an
 * automatic one that the policy has withdrawn, permit nothing.
 */
export function isApproved(
  call: PendingCall,
  approvals: readonly ApprovalRecord[],
  policy: TrustPolicy | undefined,
  now: Date,
): boolean {
  if (hasExpired(call)) return false;
  const decided = approverDecision(call, approvals);
  if (decided !== undefined) return decided.decision === 'Approve';
  const { onTimeout } = approvalRules(policy?.spec.approvals, call.risk);
  return onTimeout === 'Approve' && decidedByTimeout(call, now) === 'Approve';
}

/** Whether the used approval of a call is about this rule, and its tool declares the host. */
export function coversHost(
  { message, rule, used, hosts }: PendingCall,
  asked: { message: string; rule: string; target: string },
): boolean {
  if (message !== asked.message || rule !== asked.rule || used === undefined) return false;
  return patternSet(hosts, 'host').covers(parseSubject('host', asked.target));
}

/** A message waits as long as NATS keeps it. */
const MAX_PARKED_MS = 7 * 24 * 3_600_000;

/** When a parked message is delivered again without a decision: at the first timeout that decides. */
export function parkedUntil(calls: readonly PendingCall[], now: Date): number {
  const times = calls.flatMap(({ expiresAt, onTimeout }) =>
    expiresAt === undefined || onTimeout === 'Wait' ? [] : [Date.parse(expiresAt)],
  );
  return Math.min(...times, now.getTime() + MAX_PARKED_MS);
}
