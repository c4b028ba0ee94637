import type { ApprovalRecord } from '../../approvals/approval-record.ts';
import { printable } from '../../lib/printable.ts';
import type { StoredRequest } from '../approval/stored-decision.ts';
import { isTimedOut } from '../approval/timed-out.ts';
import type { ConditionUpdate } from '../conditions.ts';
import type { StoredTool } from '../tool/stored-tool.ts';

/** Everything that decides whether a tool of tier Agent that is in service asks for tier Shared. */
export interface ObservedSharing {
  readonly tool: StoredTool;
  readonly now: Date;
  /** The Shared object with the same digest, in service or not. */
  readonly shared: StoredTool | undefined;
  /** Agents that have the digest in service at tier Agent. */
  readonly agents: readonly string[];
  /** Of several objects with the digest only the oldest asks. */
  readonly isOldest: boolean;
  readonly rules: { readonly minAgents: number; readonly coolDownMs: number };
  /** Requests for the same digest at tier Shared, decided or not. */
  readonly requests: readonly StoredRequest[];
  readonly approvals: readonly ApprovalRecord[];
  /** Undecided requests of the agent, of every type. */
  readonly pendingOfAgent: number;
  readonly nameHolder: string | undefined;
  readonly inactiveStep: string | undefined;
  /** Why the policy does not permit the promotion. */
  readonly denial: string | undefined;
}

export type SharingStep =
  | {
      readonly step: 'request' /** The nonce of the last request that was denied or timed out: a new one differs from it. */;
      readonly after: string;
    }
  | { readonly step: 'stay'; readonly condition: ConditionUpdate<'Shared'>; readonly retryMs?: number };

/** As many requests of one agent wait for approvers at once. */
const MAX_PENDING_REQUESTS = 5;
const RETRY_MS = 60_000;

/** Decides whether to request an approval. Requests none for a tool that could not be shared once it is approved. Pure. */
export function planSharing(observed: ObservedSharing): SharingStep {
  const { shared, requests } = observed;
  if (shared !== undefined) return stay(...sharedState(shared));
  const open = requests.find(({ status }) => status?.decision === undefined);
  if (open !== undefined) return { step: 'stay', condition: requested(open.metadata.name) };
  const denied = latestDenial(observed);
  return afterDenial(observed, denied) ?? obstacle(observed) ?? { step: 'request', after: denied?.nonce ?? '' };
}

/** The end of a request that shared no tool. */
interface Denial {
  readonly nonce: string;
  /** In milliseconds. */
  readonly at: number;
  readonly message: string;
}

/** The cool-down after the last denial. */
function afterDenial({ rules, now }: ObservedSharing, denied: Denial | undefined): SharingStep | undefined {
  if (denied === undefined) return undefined;
  const waitMs = denied.at + rules.coolDownMs - now.getTime();
  if (waitMs <= 0) return undefined;
  const next = new Date(now.getTime() + waitMs).toISOString();
  return stay('ApprovalDenied', `${denied.message}; the next request follows after ${next}`, waitMs);
}

/** What has to change before the tool could be shared. */
function obstacle(observed: ObservedSharing): SharingStep | undefined {
  const { tool, agents, rules, inactiveStep, nameHolder, denial, pendingOfAgent } = observed;
  if (denial !== undefined) return stay('PolicyDenied', printable(denial, 500));
  const withheld = tool.status?.conditions?.find(({ type, status }) => type === 'Shareable' && status === 'False');
  if (withheld !== undefined) return stay('NotShareable', withheld.message);
  if (inactiveStep !== undefined) {
    const step = printable(inactiveStep, 200);
    return stay(
      'DependencyNotShared',
      `it calls "${step}", which is not in service at tier Shared; share that tool first`,
    );
  }
  if (nameHolder !== undefined) {
    const next = 'demote that tool, or forge this one under another name';
    return stay('NameTaken', `"${tool.facts.tool}" is the name of ${nameHolder}; ${next}`);
  }
  if (agents.length < rules.minAgents) {
    const have = `${agents.length} of ${rules.minAgents} agents have it in service at tier Agent`;
    return stay('AgentsMissing', `${have} (promotion.toShared.minAgents)`);
  }
  if (!observed.isOldest) return stay('AwaitingApproval', 'another agent with the same tool requests the approval');
  if (pendingOfAgent < MAX_PENDING_REQUESTS) return undefined;
  const message = `${pendingOfAgent} requests of the agent wait for approvers; decide one of them`;
  return stay('TooManyRequests', message, RETRY_MS);
}

/** Also right after the creation of the request, before the cache has it. */
export function requested(name: string): ConditionUpdate<'Shared'> {
  const message = `ApprovalRequest "${name}" waits for an approver: kubectl temper approve ${name} --reason …`;
  return condition('AwaitingApproval', message);
}

function sharedState({ metadata, status }: StoredTool): [reason: string, message: string] {
  if (status?.active === true) return ['Promoted', `in service as EmergentTool "${metadata.name}"`];
  const active = status?.conditions?.find(({ type }) => type === 'Active');
  return [
    'AwaitingApproval',
    `EmergentTool "${metadata.name}" is not in service: ${active?.message ?? 'it waits for the operator'}`,
  ];
}

/** By an approver, or by the policy after a timeout. */
function latestDenial({ tool, approvals, requests }: ObservedSharing): Denial | undefined {
  const { digest } = tool.facts;
  const byApprovers = approvals
    .filter(
      ({ decision, subject }) =>
        decision === 'Deny' && subject.promotion?.digest === digest && subject.promotion.tier === 'Shared',
    )
    .map(denialOf);
  const byTimeout = requests.filter(isTimedOut).map(({ spec, status }): Denial => {
    const decided = status?.conditions?.find(({ type }) => type === 'Decided');
    return {
      nonce: spec.nonce,
      at: Date.parse(decided?.lastTransitionTime ?? ''),
      message: 'the policy denied it, because no approver decided in time',
    };
  });
  return [...byApprovers, ...byTimeout].sort((one, other) => other.at - one.at)[0];
}

function denialOf({ nonce, createdAt, by, reason }: ApprovalRecord): Denial {
  const why = reason === undefined ? '' : `: ${printable(reason, 300)}`;
  return { nonce, at: Date.parse(createdAt), message: `${printable(by, 120)} denied it${why}` };
}

function stay(reason: string, message: string, retryMs?: number): SharingStep {
  return { step: 'stay', condition: condition(reason, message), ...(retryMs === undefined ? {} : { retryMs }) };
}

function condition(reason: string, message: string): ConditionUpdate<'Shared'> {
  return { type: 'Shared', status: reason === 'Promoted' ? 'True' : 'False', reason, message };
}
