/** Decides about connections that agents open through the egress proxy, and charges what they move. */
import type {
  EgressAuthorization,
  EgressAuthorizationRequest,
  EgressReport,
  EgressReportResult,
} from '../../gateway-api/egress/egress-api.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { PRIVATE_NETWORK_RULE } from '../../policy/private-data/sources.ts';
import { hostTarget } from '../../policy/rules/rule-inputs.ts';
import type { GatewayDeps } from '../deps.ts';
import { assertActive, type AuthorizedDelivery, boundDelivery, claimsFor } from '../delivery/authorize.ts';
import { decideFor } from '../delivery/brokered-call.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';
import { chargeNetwork, type NetworkQuotaDeps } from './network-quota.ts';

export type EgressDeps = Pick<GatewayDeps, 'clock' | 'identity' | 'directory' | 'deliveryTokens' | 'recorder'> &
  Pick<NetworkQuotaDeps, 'ledger'> & {
    sessions: Pick<GatewayDeps['sessions'], 'marks'>;
    approvals: Pick<GatewayDeps['approvals'], 'permitsHost'>;
  };

type Reported = EgressReport['connections'][number];

/**
 * Allows one connection: the pod is bound to the agent of the message, the message is in work, the policy allows the host, and the quota is
 * not used up. The answer says what the token of the caller proves. Throws the errors of `Authenticator.pod`, of the delivery token, TEMPER_POLICY_DENIED, TEMPER_QUOTA_EXCEEDED and
 * TEMPER_LEDGER_UNAVAILABLE.
 */
export async function authorizeConnection(
  { token, deliveryToken, address, host, port }: EgressAuthorizationRequest,
  deps: EgressDeps,
  op: CallOptions,
): Promise<EgressAuthorization> {
  const caller = await deps.identity.egressClient(token, address);
  const claims =
    caller.kind === 'pod'
      ? claimsFor(caller, deliveryToken, deps)
      : brokeredClaims(deliveryToken, { host, port }, deps);
  const delivery = boundDelivery(claims, deps);
  await assertAllowed(delivery, { host, port }, deps);
  await chargeNetwork(delivery.state, 0, deps, op);
  const { agent, agentUid, namespace, session, message, deadline } = delivery.claims;
  const remainingMs = Math.max(0, Date.parse(deadline) - deps.clock.now().getTime());
  const kind = caller.kind === 'pod' ? 'Pod' : 'Gateway';
  return { caller: kind, agent, agentUid, namespace, session, message, remainingMs };
}

/**
 * Charges the bytes of all connections, and names those that may not stay open: for the same reasons for which they would not be allowed
 * now. Throws TEMPER_LEDGER_UNAVAILABLE; some bytes are charged twice when the report is sent again then.
 */
export async function reviewConnections(
  { connections }: EgressReport,
  deps: EgressDeps,
  op: CallOptions,
): Promise<EgressReportResult> {
  const known = connections.map((connection) => ({ connection, claims: claimsIn(connection, deps) }));
  const refusals = await chargeAll(known, deps, op);
  for (const one of known) recordUse(one, deps);
  const once = { ...deps, sessions: readOnce(deps.sessions) };
  const results = await Promise.all(
    known.map(async ({ connection, claims }) => {
      const error = refusals.get(claims?.agentUid) ?? (await refusalOf(connection, claims, once));
      return error === undefined ? [] : [{ id: connection.id, code: error.code, message: error.message }];
    }),
  );
  return { ended: results.flat() };
}

/**
 * A connection of a pod that moved bytes is a use of the web. The tool of a gateway that opened one is recorded by the gateway. The answer does
 * not wait: without one in time the proxy ends every connection.
 */
function recordUse({ connection, claims }: KnownConnection, { recorder }: Pick<EgressDeps, 'recorder'>): void {
  if (claims === undefined || claims.connects !== undefined || connection.bytes === 0) return;
  void recorder.used(claims, 'web');
}

/** The connections of a session share one read of its marks. */
function readOnce({ marks }: EgressDeps['sessions']): EgressDeps['sessions'] {
  const read = new Map<string, ReturnType<typeof marks>>();
  return {
    marks(agentUid, session) {
      const key = `${agentUid}/${session}`;
      const found = read.get(key) ?? marks(agentUid, session);
      read.set(key, found);
      return found;
    },
  };
}

interface KnownConnection {
  connection: Reported;
  /** Undefined for a token that no gateway of this installation signed. */
  claims: DeliveryTokenClaims | undefined;
}

/** Charges each agent once. Returns why an agent may move no more bytes. */
async function chargeAll(
  known: readonly KnownConnection[],
  deps: EgressDeps,
  op: CallOptions,
): Promise<Map<string | undefined, TemperError>> {
  const bytes = new Map<string, number>();
  for (const { connection, claims } of known) {
    if (claims !== undefined) bytes.set(claims.agentUid, (bytes.get(claims.agentUid) ?? 0) + connection.bytes);
  }
  const refusals = new Map<string | undefined, TemperError>();
  const charges = Array.from(bytes, async ([agentUid, moved]) => {
    const state = deps.directory.byUid(agentUid);
    // An agent that does not exist any more has no account; its connections end.
    if (state === undefined) return;
    try {
      await chargeNetwork(state, moved, deps, { ...op, key: `${op.key}/${agentUid}` });
    } catch (error) {
      if (!isTemperError(error) || error.code === 'TEMPER_LEDGER_UNAVAILABLE') throw error;
      refusals.set(agentUid, error);
    }
  });
  await Promise.all(charges);
  return refusals;
}

async function refusalOf(
  connection: Reported,
  claims: DeliveryTokenClaims | undefined,
  deps: EgressDeps,
): Promise<TemperError | undefined> {
  if (claims === undefined) return new TemperError('TEMPER_DELIVERY_TOKEN_INVALID', 'the delivery token is not valid');
  const { agent, agentUid } = claims;
  // The operator takes the pod from a suspended agent; the reason is still the suspension.
  if (deps.directory.byUid(agentUid)?.suspended === true)
    return new TemperError('TEMPER_AGENT_SUSPENDED', `agent "${agent}" is suspended`);
  try {
    await assertAllowed(boundDelivery(claims, deps), connection, deps);
    return undefined;
  } catch (error) {
    if (isTemperError(error)) return error;
    throw error;
  }
}

function claimsIn({ deliveryToken }: Reported, { deliveryTokens }: EgressDeps): DeliveryTokenClaims | undefined {
  try {
    return deliveryTokens.verify(deliveryToken);
  } catch (error) {
    if (isTemperError(error, 'TEMPER_DELIVERY_TOKEN_INVALID')) return undefined;
    throw error;
  }
}

/** The claims of a token that a gateway made for a connection to this host. */
function brokeredClaims(
  deliveryToken: string,
  { host, port }: { host: string; port: number },
  { deliveryTokens }: Pick<EgressDeps, 'deliveryTokens'>,
): DeliveryTokenClaims {
  const claims = deliveryTokens.verify(deliveryToken);
  if (claims.connects?.host === host && claims.connects.port === port) return claims;
  throw new TemperError('TEMPER_DELIVERY_TOKEN_INVALID', 'the delivery token is not for a connection to this host');
}

/**
 * A connection that the policy escalates is not allowed, unless it is of a call that an approver permitted: an approval is of a call,
 * never of a connection.
 */
async function assertAllowed(
  delivery: AuthorizedDelivery,
  { host, port }: { host: string; port: number },
  deps: EgressDeps,
): Promise<void> {
  assertActive(delivery, deps);
  // The platform tied the host to the namespace of the agent.
  if (delivery.claims.connects?.by === 'Connection') return;
  const decision = await decideFor(delivery, [{ kind: 'Network', host, port }], deps);
  if (decision.effect === 'Allow') return;
  const isOfCall = decision.effect === 'Escalate' && decision.rule === PRIVATE_NETWORK_RULE;
  const approved = { rule: decision.rule, target: hostTarget(host, port) };
  if (isOfCall && (await deps.approvals.permitsHost(delivery.claims, approved))) return;
  throw new TemperError('TEMPER_POLICY_DENIED', decision.reason, { details: { rule: decision.rule } });
}
