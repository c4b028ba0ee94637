import { digestOf } from '../lib/canonical.ts';
import { type Json, textAt } from '../lib/json.ts';
import { TemperError } from '../lib/errors.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { Ledger } from '../ledger/port.ts';
import { quotaExceeded } from '../ledger/quota-exceeded.ts';
import type { Decision, PolicyRequest } from '../policy/types.ts';
import {
  type ApprovalDecision,
  type ApprovalInput,
  type Approvals,
  callIdOf,
  type ParkedDecision,
} from './approvals.ts';
import type { EventSink } from './events.ts';
import type { ToolDescriptor } from './contract.ts';

export interface AuthorizeDeps {
  /** Asks the current policy. */
  decide(request: PolicyRequest): Decision;
  /** Throws when the tool is no longer available to the caller. Called after a wait for an approval. */
  assertAvailable(): void;
  /** Throws when the loop guard refuses the call. Called before anything is reserved and before an approver is asked. */
  assertProgress(): void;
  /** Asks the hooks of the agent; throws when one of them refuses the call. */
  askHooks(): Promise<void>;
  /** The session whose turn the call may park; absent when the call must wait for its approval. */
  parkableIn: string | undefined;
  /** Where the call is charged; absent for a call that no quota counts. */
  ledger: Ledger | undefined;
  approvals: Approvals;
  events: EventSink;
  agent: string;
}

/** A permitted call. `commit` settles its reservation in the ledger and must be called once, also after a failure. */
export interface AuthorizedCall {
  decision: Decision;
  /** The request whose approval permits the call. */
  approval?: string;
  commit(): Promise<void>;
}

/** A call that waits for the decision about this request, without a reservation. */
export interface ParkedRequest {
  parked: string;
}

/** Patterns for the hosts that a call may send to: those that a forged tool declares, those of a brokered tool, and the host of the URL of a tool for the web or for Git. */
export function hostsOf({ forged, hosts, category }: ToolDescriptor, input: Json | undefined): readonly string[] {
  if (hosts !== undefined) return hosts;
  if (forged?.hosts !== undefined) return forged.hosts;
  const hasUrl = category === 'web' || category === 'version_control';
  const url = hasUrl && forged === undefined ? URL.parse(textAt(input, ['url'])) : null;
  return url === null || url.host === '' ? [] : [url.host];
}

/** The policy request for a tool. Without arguments it asks whether the tool may be listed. */
export function toolRequest(tool: ToolDescriptor, input?: Json): PolicyRequest {
  const hosts = hostsOf(tool, input);
  return {
    kind: 'Tool',
    name: tool.name,
    category: tool.category,
    action: tool.action,
    forged: tool.forged !== undefined,
    ...(hosts.length === 0 ? {} : { hosts }),
    ...(input === undefined ? {} : { arguments: input }),
  };
}

/**
 * Asks the policy, the loop guard and the hooks, reserves the call in the ledger, and waits for an approval where the policy escalates, or
 * parks the call. Throws TEMPER_POLICY_DENIED, TEMPER_LOOP_DETECTED, TEMPER_HOOK_DENIED, TEMPER_QUOTA_EXCEEDED, TEMPER_APPROVAL_DENIED, TEMPER_APPROVAL_TIMEOUT or
 * TEMPER_APPROVAL_USED. An approval is bound to this tool, these arguments and this call, and is used once. It does not outlive the
 * policy: after the wait the tool must still be available, its arguments the same, and the policy must still permit the call, or
 * escalate it by the same rule with the same risk. For a call that was parked, the rule and the risk are part of the request.
 */
export async function authorize(
  tool: ToolDescriptor,
  input: Json,
  deps: AuthorizeDeps,
  op: CallOptions,
): Promise<AuthorizedCall | ParkedRequest> {
  const request = toolRequest(tool, input);
  const decision = decideOrThrow(deps, request);
  deps.assertProgress();
  await deps.askHooks();
  const reserved = await reserveCall(deps.ledger, op);
  const commit = (): Promise<void> => reserved.commit();
  if (decision.effect !== 'Escalate') return { decision, commit };
  const asked = digestOf(input);
  try {
    const { approval, isParked } = await requestApproval(tool, input, decision, deps, op);
    if (isParked) {
      await reserved.release();
      return { parked: approval };
    }
    deps.assertAvailable();
    const current = decideOrThrow(deps, request);
    assertCovered(tool, decision, current, asked === digestOf(input));
    await deps.approvals.use(approval, op);
    return { decision: current, approval, commit };
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

/** The decision about a call, when it is no denial. Throws TEMPER_POLICY_DENIED. */
export function decideOrThrow({ decide }: Pick<AuthorizeDeps, 'decide'>, request: PolicyRequest): Decision {
  const decision = decide(request);
  if (decision.effect === 'Deny') throw policyDenied(decision);
  return decision;
}

interface ReservedCall {
  commit(): Promise<void>;
  /** Gives the reservation back: the call is reserved again when its turn resumes. */
  release(): Promise<void>;
}

async function reserveCall(ledger: Ledger | undefined, op: CallOptions): Promise<ReservedCall> {
  if (ledger === undefined) return { commit: async () => undefined, release: async () => undefined };
  const maximum = { toolCalls: 1 };
  const reservation = await ledger.reserve(maximum, op);
  if (!reservation.granted) throw quotaExceeded(reservation, maximum);
  const { id } = reservation;
  return { commit: () => ledger.commit(id, maximum), release: () => ledger.commit(id, { toolCalls: 0 }) };
}

/** The request, once it is approved or the call is parked. Throws TEMPER_APPROVAL_DENIED or TEMPER_APPROVAL_TIMEOUT. */
async function requestApproval(
  tool: ToolDescriptor,
  input: Json,
  decision: Decision,
  deps: AuthorizeDeps,
  op: CallOptions,
): Promise<{ approval: string; isParked: boolean }> {
  const { rule, risk } = decision;
  const subject = digestOf({ tool: tool.forged?.digest ?? tool.name, input, call: op.key, rule, risk });
  const question: ApprovalInput = {
    type: 'ToolCall',
    agent: deps.agent,
    tool: tool.name,
    subject,
    binding: { call: { tool: tool.name, argumentsDigest: digestOf(input), callId: callIdOf(op.key) } },
    risk,
    reason: decision.reason,
    arguments: input,
    ...(deps.parkableIn === undefined ? {} : { session: deps.parkableIn }),
  };
  const request = await deps.approvals.request(question);
  const known = await deps.approvals.decisionNow(request);
  if (known === undefined)
    deps.events({ type: 'approval-requested', request, tool: tool.name, risk, reason: decision.reason });
  const answer = known ?? (await decisionAbout(request, deps, op));
  if (answer.decision === 'Parked') return { approval: request, isParked: true };
  deps.events({ type: 'approval-decided', request, decision: answer.decision, by: answer.by });
  if (answer.decision === 'Deny') {
    throw new TemperError('TEMPER_APPROVAL_DENIED', `${answer.by} denied "${tool.name}": ${answer.reason}`, {
      details: { rule, request },
    });
  }
  return { approval: request, isParked: false };
}

function decisionAbout(
  request: string,
  { approvals, parkableIn }: AuthorizeDeps,
  op: CallOptions,
): Promise<ApprovalDecision | ParkedDecision> {
  return parkableIn === undefined ? approvals.waitForDecision(request, op) : approvals.decisionOrPark(request, op);
}

export function policyDenied(decision: Decision): TemperError {
  return new TemperError('TEMPER_POLICY_DENIED', decision.reason, { details: { rule: decision.rule } });
}
