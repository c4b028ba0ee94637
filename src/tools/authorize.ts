import { digestOf } from '../lib/canonical.ts';
import type { Json } from '../lib/json.ts';
import { TemperError } from '../lib/errors.ts';
import type { Op } from '../lib/operation.ts';
import type { Ledger } from '../ledger/port.ts';
import type { Decider, Decision, PolicyRequest } from '../policy/types.ts';
import type { Approvals, Ask } from './approvals.ts';
import type { EventSink } from './events.ts';
import type { ToolDescriptor } from './contract.ts';

export interface AuthorizeDeps {
  decider: Decider;
  ledger: Ledger;
  approvals: Approvals;
  events: EventSink;
  agent: string;
}

/** A call that may go ahead. `settle` tells the ledger it is over. */
export interface Authorized {
  decision: Decision;
  settle(): Promise<void>;
}

/** What the policy is asked about a tool; without arguments it is the question "may it be listed?". */
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
 * Decide, reserve, wait for a person where the decision says so. Throws TEMPER_POLICY_DENIED, TEMPER_QUOTA_EXCEEDED,
 * TEMPER_APPROVAL_DENIED or TEMPER_APPROVAL_TIMEOUT. Approval is bound to this tool, these arguments and this call.
 */
export async function authorize(tool: ToolDescriptor, input: Json, deps: AuthorizeDeps, op: Op): Promise<Authorized> {
  const decision = deps.decider.decide(toolRequest(tool, input));
  if (decision.effect === 'Deny') throw denied(decision);
  const reservation = await deps.ledger.reserve({ toolCalls: 1 }, op);
  if (!reservation.granted) {
    throw new TemperError(
      'TEMPER_QUOTA_EXCEEDED',
      `${reservation.used} of ${reservation.limit} allowed by ${reservation.quota} are used; resumes ${reservation.resumesAt}`,
      { details: { quota: reservation.quota, resumesAt: reservation.resumesAt } },
    );
  }
  const settle = (): Promise<void> => deps.ledger.settle(reservation.id, { toolCalls: 1 });
  if (decision.effect === 'Escalate') {
    try {
      await waitForPerson(tool, input, decision, deps, op);
    } catch (error) {
      await settle();
      throw error;
    }
  }
  return { decision, settle };
}

async function waitForPerson(
  tool: ToolDescriptor,
  input: Json,
  decision: Decision,
  deps: AuthorizeDeps,
  op: Op,
): Promise<void> {
  const subject = digestOf({ tool: tool.forged?.digest ?? tool.name, input, call: op.key });
  const ask: Ask = {
    type: 'ToolCall',
    agent: deps.agent,
    tool: tool.name,
    subject,
    binding: { call: { tool: tool.name, argumentsDigest: digestOf(input), callId: op.key.slice(0, 128) } },
    risk: decision.risk,
    reason: decision.reason,
  };
  const request = await deps.approvals.request(ask);
  deps.events({ type: 'approval-requested', request, tool: tool.name, risk: decision.risk, reason: decision.reason });
  const answer = await deps.approvals.decided(request, op);
  deps.events({ type: 'approval-decided', request, decision: answer.decision, by: answer.by });
  if (answer.decision === 'Deny') {
    throw new TemperError('TEMPER_APPROVAL_DENIED', `${answer.by} denied "${tool.name}": ${answer.reason}`, {
      details: { rule: decision.rule, request },
    });
  }
}

export function denied(decision: Decision): TemperError {
  return new TemperError('TEMPER_POLICY_DENIED', decision.reason, { details: { rule: decision.rule } });
}
