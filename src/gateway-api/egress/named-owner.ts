import { type Json, parseUntrustedJson, textAt } from '../../lib/json.ts';

/** The agent that a delivery token names. */
export interface NamedOwner {
  namespace: string;
  agentUid: string;
}

/**
 * Reads whom a delivery token names, without its key: the claims are readable in the token. Only a gateway verifies the signature, so use the
 * result only for a caller that does not write tokens of others, and never to allow anything. Undefined for a text of another form.
 */
export function namedOwner(deliveryToken: string): NamedOwner | undefined {
  const claims = claimsIn(deliveryToken);
  const [namespace, agentUid] = [textAt(claims, ['namespace']), textAt(claims, ['agentUid'])];
  return namespace === '' || agentUid === '' ? undefined : { namespace, agentUid };
}

function claimsIn(deliveryToken: string): Json | undefined {
  try {
    return parseUntrustedJson(Buffer.from(deliveryToken.split('.')[1] ?? '', 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}
