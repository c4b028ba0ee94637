import type { Digest } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { Decider, Decision, PolicyRequest } from '../../policy/types.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { SessionMarks } from '../../nats/sessions/session-head.ts';
import type { GatewayDeps } from '../deps.ts';
import type { AuthorizedDelivery } from './authorize.ts';

/** A call of a built-in tool that the gateway performs. */
export interface BrokeredCall {
  tool: Pick<ToolDescriptor, 'name' | 'category' | 'action' | 'hosts'>;
  input: Json;
  /** What the tool does, beyond being called. */
  requests: readonly PolicyRequest[];
  /** The arguments that an approval may name: those of the call, with and without defaults. */
  digests: readonly Digest[];
  /** The idempotency key of the call. */
  key: string;
}

/**
 * Checks the policy for a tool and for what it does, so that a pod that skips its own checks has no further rights. A call that the
 * policy escalates needs a used approval of exactly these arguments, for one call. Throws TEMPER_POLICY_DENIED.
 */
export async function assertBrokeredCall(
  delivery: AuthorizedDelivery,
  { tool: { name, category, action, hosts }, input, requests, digests, key }: BrokeredCall,
  deps: Pick<GatewayDeps, 'directory' | 'sessions' | 'approvals'>,
): Promise<void> {
  const sent = hosts === undefined ? {} : { hosts };
  const tool: PolicyRequest = { kind: 'Tool', name, category, action, forged: false, arguments: input, ...sent };
  const all: PolicyRequest[] = [tool, ...requests];
  const decision = await decideFor(delivery, all, deps);
  if (decision.effect === 'Allow') return;
  const question = { tool: name, digests, key };
  if (decision.effect === 'Escalate' && (await deps.approvals.permits(delivery.claims, question))) return;
  throw new TemperError('TEMPER_POLICY_DENIED', decision.reason, { details: { rule: decision.rule } });
}

/** What a decision about a session needs. */
export interface DecisionDeps {
  directory: Pick<GatewayDeps['directory'], 'decider'>;
  sessions: Pick<GatewayDeps['sessions'], 'marks'>;
}

/** The strictest decision about what a session asks. Reads the marks of the session only when the decision depends on them. */
export async function decideFor(
  { claims, state }: AuthorizedDelivery,
  requests: readonly PolicyRequest[],
  deps: DecisionDeps,
): Promise<Decision> {
  const decide = ({ tainted, hasPrivateData }: SessionMarks): Decision =>
    firstDenial(deps.directory.decider(state, tainted, { hasPrivateData }), requests);
  const guarded = decide({ tainted: true, hasPrivateData: true });
  if (guarded.effect === 'Allow') return guarded;
  const clean = decide({ tainted: false, hasPrivateData: false });
  // A denial that also a clean session gets has its reason in something else.
  if (clean.effect === 'Deny' || clean.rule === guarded.rule) return clean;
  return decide(await deps.sessions.marks(claims.agentUid, claims.session));
}

/** A denial before an escalation: what is denied is not a question for an approver. */
function firstDenial(decider: Decider, requests: readonly PolicyRequest[]): Decision {
  const decisions = requests.map((request) => decider.decide(request));
  const result =
    decisions.find(({ effect }) => effect === 'Deny') ??
    decisions.find(({ effect }) => effect === 'Escalate') ??
    decisions.at(-1);
  if (result === undefined) throw new TypeError('no policy request was given');
  return result;
}
