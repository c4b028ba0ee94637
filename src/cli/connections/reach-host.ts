import { type Credential, containing } from '../../gateway/capabilities/credentials.ts';
import { TemperError } from '../../lib/errors.ts';
import { headerSecret } from '../../net/secret-file.ts';
import type { TargetRules } from '../../net/targets.ts';
import type { HostToolDeps } from '../../standalone/team/host-tools.ts';
import { policyDenied } from '../../tools/authorize.ts';
import type { CallContext } from '../../tools/contract.ts';
import type { UserConnection } from './read-connections.ts';

/** The value of an environment variable with a token. */
export type TokenOf = (variable: string) => string | undefined;

/**
 * Only the host of the tool. With a connection the user permitted it; without one the policy of the agent decides, as for `web_fetch`. Throws
 * TEMPER_POLICY_DENIED.
 */
export function rulesOf(
  { hostname, port: text }: URL,
  connection: UserConnection | undefined,
  decide: HostToolDeps['decide'],
  caller: CallContext,
): TargetRules {
  const port = text === '' ? 443 : Number(text);
  if (connection === undefined) {
    const decision = decide(caller, { kind: 'Network', host: hostname, port });
    if (decision.effect !== 'Allow') throw policyDenied(decision);
  }
  return {
    ports: [port],
    hostDenialReason: (host, hostPort) =>
      host === hostname && hostPort === port ? undefined : 'it is not the host of the capability',
    ...(connection?.isPrivate === true ? { privateHosts: new Set([hostname]) } : {}),
  };
}

/** What the connection adds to a request. Throws TEMPER_CONNECTION_UNAUTHORIZED. */
export function credentialOf(
  connection: UserConnection | undefined,
  token: TokenOf,
): Pick<Credential, 'headers' | 'isIn'> {
  if (connection === undefined) return { headers: {}, isIn: () => false };
  const secret = secretOf(connection, token);
  const { header } = connection;
  const headers: Record<string, string> =
    header === undefined ? { authorization: `Bearer ${secret}` } : { [header.toLowerCase()]: secret };
  return { headers, isIn: containing([secret]) };
}

/** Throws TEMPER_CONNECTION_UNAUTHORIZED. */
export function secretOf({ name, tokenEnvironment }: UserConnection, token: TokenOf): string {
  const found = headerSecret(token(tokenEnvironment) ?? '');
  if ('secret' in found) return found.secret;
  const message = `connection "${name}" has no credential: ${tokenEnvironment} ${found.problem}`;
  throw new TemperError('TEMPER_CONNECTION_UNAUTHORIZED', message);
}
