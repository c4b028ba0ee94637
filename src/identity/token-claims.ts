import { AUDIENCES, NAMESPACE_OBJECTS, RELEASE_OBJECTS } from '../api/cluster.ts';
import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, textAt } from '../lib/json.ts';
import type {
  EgressClientToken,
  EgressGatewayIdentity,
  EgressIdentity,
  PeerIdentity,
  PodToken,
  UserIdentity,
  VerifierIdentity,
} from './types.ts';

/** The subject of a verified token. */
export type TokenSubject =
  | PodToken
  | UserIdentity
  | VerifierIdentity
  | PeerIdentity
  | EgressIdentity
  | EgressClientToken
  | EgressGatewayIdentity;

/** The maximum lifetime of a token, from `iat` to `exp`. */
const MAX_LIFETIME_SECONDS = 3_600;

/** The same text for every cause, so that a client cannot probe the checks. */
export function invalidToken(cause?: unknown): TemperError {
  return new TemperError('TEMPER_TOKEN_INVALID', 'the token was rejected', { cause });
}

export function wrongAudience(): TemperError {
  return new TemperError('TEMPER_TOKEN_AUDIENCE', 'the token was issued for another audience');
}

/** The audiences of all tokens that a gateway verifies. */
const KNOWN_AUDIENCES: ReadonlySet<unknown> = new Set([AUDIENCES.gateway, AUDIENCES.a2a, AUDIENCES.egress]);

/**
 * Reads the claims of a token whose signature, issuer and times are verified. Throws TEMPER_TOKEN_INVALID, or TEMPER_TOKEN_AUDIENCE when
 * it has another audience, or more than one: one service could replay a token with two audiences to the other.
 */
export function subjectOf(claims: JsonObject): TokenSubject {
  const { aud, iat, exp } = claims;
  const audiences = Array.isArray(aud) ? aud : [aud];
  const [audience] = audiences;
  if (audiences.length !== 1 || !KNOWN_AUDIENCES.has(audience)) throw wrongAudience();
  if (typeof iat !== 'number' || typeof exp !== 'number' || exp - iat > MAX_LIFETIME_SECONDS) throw invalidToken();
  const cluster = claims['kubernetes.io'];
  const namespace = textAt(cluster, ['namespace']);
  const account = textAt(cluster, ['serviceaccount', 'name']);
  if (namespace === '' || textAt(claims, ['sub']) !== `system:serviceaccount:${namespace}:${account}`) {
    throw invalidToken();
  }
  if (audience === AUDIENCES.a2a) return peerOf(namespace, account);
  if (audience === AUDIENCES.egress) return egressClientOf(account, cluster, namespace);
  if (account === NAMESPACE_OBJECTS.usersServiceAccount) return userOf(claims, cluster, namespace);
  return gatewayPodOf(account, cluster, namespace);
}

/** A pod that calls the gateway: of an agent, a verifier or the egress proxy. */
function gatewayPodOf(
  account: string,
  cluster: Json | undefined,
  namespace: string,
): PodToken | VerifierIdentity | EgressIdentity {
  if (account === NAMESPACE_OBJECTS.agentServiceAccount) return { kind: 'pod', ...podOf(cluster, namespace) };
  if (account === RELEASE_OBJECTS.verifierServiceAccount) return { kind: 'verifier', ...podOf(cluster, namespace) };
  if (account === RELEASE_OBJECTS.egress) return { kind: 'egress', ...podOf(cluster, namespace) };
  throw invalidToken();
}

function egressClientOf(
  account: string,
  cluster: Json | undefined,
  namespace: string,
): EgressClientToken | EgressGatewayIdentity {
  if (account === RELEASE_OBJECTS.gateway) return { kind: 'egress-gateway', ...podOf(cluster, namespace) };
  if (account !== NAMESPACE_OBJECTS.agentServiceAccount) throw invalidToken();
  return { kind: 'egress-client', ...podOf(cluster, namespace) };
}

/** A token of the ServiceAccount of agents, verifiers or the egress proxy must be bound to a pod; any other has no identity. */
function podOf(cluster: Json | undefined, namespace: string): Omit<PodToken, 'kind'> {
  const podName = textAt(cluster, ['pod', 'name']);
  const podUid = textAt(cluster, ['pod', 'uid']);
  if (podName === '' || podUid === '') throw invalidToken();
  return { namespace, podName, podUid };
}

/** Users request their tokens themselves. A token that is bound to a pod was mounted into it and is not a user's. */
function userOf(claims: JsonObject, cluster: Json | undefined, namespace: string): UserIdentity {
  if (isJsonObject(cluster) && cluster['pod'] !== undefined) throw invalidToken();
  return { kind: 'user', namespace, tokenId: textAt(claims, ['jti']) };
}

/** The accounts of agents, verifiers, users and the egress proxy have an audience of their own: an agent reaches other agents by its grants only. */
const NO_PEERS: readonly string[] = [
  NAMESPACE_OBJECTS.agentServiceAccount,
  NAMESPACE_OBJECTS.usersServiceAccount,
  RELEASE_OBJECTS.verifierServiceAccount,
  RELEASE_OBJECTS.egress,
];

function peerOf(namespace: string, account: string): PeerIdentity {
  if (account === '' || NO_PEERS.includes(account)) throw invalidToken();
  return { kind: 'peer', namespace, account };
}
