import { digestOf } from '../lib/canonical.ts';
import type { Json } from '../lib/json.ts';
import { TemperError } from '../lib/errors.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { Ledger } from '../ledger/port.ts';
import { quotaExceeded } from '../ledger/quota-exceeded.ts';
import type { Decision, PolicyRequest } from '../policy/types.ts';
import type { Approvals, ApprovalInput } from './approvals.ts';
import type { EventSink } from './events.ts';
import type { ToolDescriptor } from './contract.ts';

export interface AuthorizeDeps {
  /** Asks the current policy. */
  decide(request: PolicyRequest): Decision;
  /** Throws when the tool is no longer available to the caller. Called after a wait for an approval. */
  assertAvailable(): void;
  /** Where the call is charged; absent for a call that no quota counts. */
  ledger: Ledger | undefined;
  approvals: Approvals;
  events: EventSink;
  agent: string;
}

/** A permitted call. `commit` settles its reservation in the ledger and must be called once, also after a failure. */
export interface AuthorizedCall {
  decision: Decision;
  commit(): Promise<void>;
}

/** The policy request for a tool. Without arguments it asks whether the tool may be listed. */
export function toolRequest(tool: ToolDescriptor, input?: Json): PolicyRequest {
  return {
    kind: 'Tool',
    name: tool.name,
    category: tool.category,
    action: tool.action,
    forged: tool.forged !== undefined,
    ...(input === undefined ? {} : { arguments: input }),
  };
}

/**
 * Asks the policy, reserves the call in the ledger and waits for an approval where the policy escalates. Throws
 * TEMPER_POLICY_DENIED, TEMPER_QUOTA_EXCEEDED, TEMPER_APPROVAL_DENIED or TEMPER_APPROVAL_TIMEOUT. An approval is bound to
 * this tool, these arguments and this call. It does not outlive the policy: after the wait the tool must still be available,
 * its arguments the same, and the policy must still permit the call, or escalate it by the same rule with the same risk.
 */
export async function authorize(
  tool: ToolDescriptor,
  input: Json,
  deps: AuthorizeDeps,
  op: CallOptions,
): Promise<AuthorizedCall> {
  const request = toolRequest(tool, input);
  const decision = decideOrThrow(deps, request);
  const commit = await reserveCall(deps.ledger, op);
  if (decision.effect !== 'Escalate') return { decision, commit };
  const approved = digestOf(input);
  try {
    await waitForApproval(tool, input, decision, deps, op);
    deps.assertAvailable();
    const current = decideOrThrow(deps, request);
    assertCovered(tool, decision, current, approved === digestOf(input));
    return { decision: current, commit };
  } catch (error) {
    await commit();
    throw error;
  }
}

/** An approval is for the rule, the risk and the arguments that the approver saw. Another escalation needs another approval. */
function assertCovered(tool: ToolDescriptor, asked: Decision, current: Decision, hasSameArguments: boolean): void {
  const isSameQuestion = current.effect !== 'Escalate' || (current.rule === asked.rule && current.risk === asked.risk);
  if (isSameQuestion && hasSameArguments) return;
  const change = hasSameArguments
    ? `the policy changed (${current.rule}, risk ${current.risk})`
    : 'its arguments changed';
  throw new TemperError(
    'TEMPER_APPROVAL_DENIED',
    `${change} while "${tool.name}" waited for approval, so the approval does not cover the call; call it again`,
    { details: { rule: current.rule } },
  );
}

function decideOrThrow(deps: AuthorizeDeps, request: PolicyRequest): Decision {
  const decision = deps.decide(request);
  if (decision.effect === 'Deny') throw policyDenied(decision);
  return decision;
}

async function reserveCall(ledger: Ledger | undefined, op: CallOptions): Promise<AuthorizedCall['commit']> {
  if (ledger === undefined) return async () => undefined;
  const maximum = { toolCalls: 1 };
  const reservation = await ledger.reserve(maximum, op);
  if (!reservation.granted) throw quotaExceeded(reservation, maximum);
  return () => ledger.commit(reservation.id, maximum);
}

async function waitForApproval(
  tool: ToolDescriptor,
  input: Json,
  decision: Decision,
  deps: AuthorizeDeps,
  op: CallOptions,
): Promise<void> {
  const subject = digestOf({ tool: tool.forged?.digest ?? tool.name, input, call: op.key });
  const question: ApprovalInput = {
    type: 'ToolCall',
    agent: deps.agent,
    tool: tool.name,
    subject,
    binding: { call: { tool: tool.name, argumentsDigest: digestOf(input), callId: op.key.slice(0, 128) } },
    risk: decision.risk,
    reason: decision.reason,
    arguments: input,
  };
  const request = await deps.approvals.request(question);
  deps.events({ type: 'approval-requested', request, tool: tool.name, risk: decision.risk, reason: decision.reason });
  const answer = await deps.approvals.waitForDecision(request, op);
  deps.events({ type: 'approval-decided', request, decision: answer.decision, by: answer.by });
  if (answer.decision === 'Deny') {
    throw new TemperError('TEMPER_APPROVAL_DENIED', `${answer.by} denied "${tool.name}": ${answer.reason}`, {
      details: { rule: decision.rule, request },
    });
  }
}

export function policyDenied(decision: Decision): TemperError {
  return new TemperError('TEMPER_POLICY_DENIED', decision.reason, { details: { rule: decision.rule } });
}
