import { AUDIENCES, NAMESPACE_OBJECTS } from '../api/cluster.ts';
import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, textAt } from '../lib/json.ts';
import type { PersonIdentity, PodToken } from './types.ts';

/** What a token is good for. */
export type TokenSubject = PodToken | PersonIdentity;

/** Seconds a token may live, from the moment it was made. */
const LONGEST_LIFE = 3_600;

/** One text for whatever is wrong: who probes learns nothing from it. */
export function invalidToken(cause?: unknown): TemperError {
  return new TemperError('TEMPER_TOKEN_INVALID', 'the token is none that this gateway takes', { cause });
}

/**
 * Reads the claims of a token whose signature, issuer and time are good. Throws TEMPER_TOKEN_AUDIENCE when it is for another door,
 * or for another one beside ours: a token that opens two doors can be carried from one to the other.
 */
export function subjectOf(claims: JsonObject): TokenSubject {
  const { aud, iat, exp } = claims;
  const audiences = Array.isArray(aud) ? aud : [aud];
  if (audiences.length !== 1 || audiences[0] !== AUDIENCES.gateway) {
    throw new TemperError('TEMPER_TOKEN_AUDIENCE', 'the token was made for another door');
  }
  if (typeof iat !== 'number' || typeof exp !== 'number' || exp - iat > LONGEST_LIFE) throw invalidToken();
  const cluster = claims['kubernetes.io'];
  const namespace = textAt(cluster, ['namespace']);
  const account = textAt(cluster, ['serviceaccount', 'name']);
  if (namespace === '' || textAt(claims, ['sub']) !== `system:serviceaccount:${namespace}:${account}`) {
    throw invalidToken();
  }
  if (account === NAMESPACE_OBJECTS.agentServiceAccount) return podOf(cluster, namespace);
  if (account === NAMESPACE_OBJECTS.peopleServiceAccount) return personOf(claims, cluster, namespace);
  throw invalidToken();
}

/** A token of an agent that is bound to no pod belongs to nobody. */
function podOf(cluster: Json | undefined, namespace: string): PodToken {
  const podName = textAt(cluster, ['pod', 'name']);
  const podUid = textAt(cluster, ['pod', 'uid']);
  if (podName === '' || podUid === '') throw invalidToken();
  return { kind: 'pod', namespace, podName, podUid };
}

/** People ask for their tokens themselves; one that was mounted into a pod is a pod's. */
function personOf(claims: JsonObject, cluster: Json | undefined, namespace: string): PersonIdentity {
  if (isJsonObject(cluster) && cluster['pod'] !== undefined) throw invalidToken();
  return { kind: 'person', namespace, tokenId: textAt(claims, ['jti']) };
}
