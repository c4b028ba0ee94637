import { API_VERSION } from '../api/names.ts';
import { sha256 } from '../lib/canonical.ts';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { IdGenerator } from '../lib/ids.ts';
import { isJsonObject, type Json, type JsonObject, member, textAt } from '../lib/json.ts';
import { type ApprovalRules, requestTimes } from '../policy/approval-rules.ts';
import type { ApprovalDecision, ApprovalInput } from '../tools/approvals.ts';
import { shownArguments } from '../tools/shown-arguments.ts';
import type { UserDecision } from './decision-files.ts';

/** The ApprovalRequest and Approval objects of a state folder. */

export interface StoredRequestContext {
  clock: Clock;
  ids: IdGenerator;
  /** Namespace of the agent. */
  namespace: string;
  rules: ApprovalRules;
  /** Removes secrets from the arguments that an approver reads. */
  redact: (text: string) => string;
}

/** Equal asks have equal names, so a repeated request is idempotent. */
export function requestName(ask: ApprovalInput, namespace: string): string {
  const subject = `${ask.type}\n${namespace}\n${ask.agent}\n${ask.subject}`;
  const short = sha256(subject).slice('sha256:'.length, 'sha256:'.length + 12);
  return `${ask.tool.toLowerCase().replaceAll(/[^a-z0-9]/g, '-')}-${short}`;
}

export function requestObject(name: string, ask: ApprovalInput, context: StoredRequestContext): JsonObject {
  const { clock, ids, namespace, rules, redact } = context;
  const created = clock.now();
  return {
    apiVersion: API_VERSION,
    kind: 'ApprovalRequest',
    metadata: { name, namespace, creationTimestamp: created.toISOString() },
    spec: {
      type: ask.type,
      agent: { name: ask.agent, uid: uidOf(ask.agent) },
      nonce: ids.next('nonce'),
      summary: ask.reason.slice(0, 1_024),
      risk: ask.risk,
      tool: ask.tool,
      ...(ask.arguments === undefined ? {} : { arguments: shownArguments(ask.arguments, redact) }),
      ...(ask.session === undefined ? {} : { session: ask.session }),
      ...requestTimes(rules, created),
      subject: subjectOf(ask),
    },
    status: {},
  };
}

/** Derives the uid from the agent's name, because no API server assigns one. */
function uidOf(agent: string): string {
  return `local-${sha256(agent).slice('sha256:'.length, 'sha256:'.length + 32)}`;
}

function subjectOf({ agent, binding }: ApprovalInput): JsonObject {
  if ('promotion' in binding) return { promotion: { ...binding.promotion } };
  return { call: { agent, agentUid: uidOf(agent), ...binding.call } };
}

export function approvalObject(decision: UserDecision, request: Json): JsonObject {
  const spec = member(request, 'spec');
  return {
    apiVersion: API_VERSION,
    kind: 'Approval',
    metadata: { name: decision.target, creationTimestamp: decision.time },
    spec: {
      decision: decision.verb,
      nonce: member(spec, 'nonce') ?? null,
      request: decision.target,
      reason: decision.reason,
      approvedBy: { username: decision.by },
      subject: member(spec, 'subject') ?? null,
    },
  };
}

/** The request with these members of its status. Throws TEMPER_STATE_CORRUPT for a record that is no object. */
export function withStatus(request: Json | undefined, name: string, status: JsonObject): JsonObject {
  if (!isJsonObject(request))
    throw new TemperError('TEMPER_STATE_CORRUPT', `approvalrequests/${name}.json is not an object`);
  const before = member(request, 'status');
  return { ...request, status: { ...(isJsonObject(before) ? before : {}), ...status } };
}

/** Empty while the request is pending. */
export function statusOf(request: Json | undefined): string {
  return textAt(request, ['status', 'decision']);
}

export function decisionIn(approval: Json | undefined): ApprovalDecision | undefined {
  const spec = member(approval, 'spec');
  const decision = member(spec, 'decision');
  if (decision !== 'Approve' && decision !== 'Deny') return undefined;
  return { decision, by: textAt(spec, ['approvedBy', 'username'], 'unknown'), reason: textAt(spec, ['reason']) };
}

/** The timeout of a stored request. */
export function timesOf(request: Json | undefined): { expiresAt?: string; onTimeout?: string } {
  const [expiresAt, onTimeout] = [textAt(request, ['spec', 'expiresAt']), textAt(request, ['spec', 'onTimeout'])];
  return { ...(expiresAt === '' ? {} : { expiresAt }), ...(onTimeout === '' ? {} : { onTimeout }) };
}

/** Who decides after a timeout. */
export function policyActor(policy: string): string {
  return `policy/${policy}`;
}

/** Whether a policy denied the request after its timeout. Other requests expire because nothing waits for them. */
export function isTimedOut(request: Json | undefined): boolean {
  return statusOf(request) === 'Expired' && textAt(request, ['status', 'decidedBy']) !== '';
}
