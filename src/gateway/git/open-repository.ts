import type { RepositoryConnection } from '../../connections/connection.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Network } from '../../net/dialer.ts';
import { createSafeBytesFetch, type SafeFetchOptions } from '../../net/fetch.ts';
import type { ConnectedRepository } from '../../toolbox/git/remote/port.ts';
import type { CallingMessage } from '../brokered/port.ts';
import { secretOf } from '../capabilities/credentials.ts';
import { type EgressHostsDeps, reachableHosts } from '../capabilities/egress-hosts.ts';
import { repositoryOfConnection } from './connected-repository.ts';

export interface OpenRepositoryDeps {
  /** Absent: only hosts in a private network are reached. */
  egress: EgressHostsDeps | undefined;
  clock: Clock;
  /** Resolves private hosts. Default: the name server of the system. */
  network?: Network | undefined;
}

/** A push has the names of branches before its pack. */
const OVERHEAD_BYTES = 65_536;

/**
 * The repository with the present credential, for the calls of one message. The egress proxy charges the agent; it reaches no private host,
 * so the gateway connects to those itself. Throws TEMPER_CONNECTION_UNAUTHORIZED.
 */
export async function openRepository(
  connection: RepositoryConnection,
  message: CallingMessage,
  bodyBytes: number,
  deps: OpenRepositoryDeps,
): Promise<ConnectedRepository> {
  const secret = await secretOf(connection);
  const { clock } = deps;
  return repositoryOfConnection(connection, connection.repository, {
    clock,
    secret: () => secret,
    fetchWith: (limits) =>
      createSafeBytesFetch({
        ...limits,
        ...connecting(connection, message, limits.certificateAuthorities, deps),
        clock,
        maxBodyBytes: bodyBytes + OVERHEAD_BYTES,
        // The credential would go with them.
        redirects: 'refused',
      }),
  });
}

function connecting(
  connection: RepositoryConnection,
  message: CallingMessage,
  authorities: readonly string[] | undefined,
  { egress, network }: OpenRepositoryDeps,
): Pick<SafeFetchOptions, 'connect' | 'network'> {
  if (connection.private === true) return network === undefined ? {} : { network };
  if (egress === undefined)
    throw new TemperError(
      'TEMPER_EGRESS_UNAVAILABLE',
      `connection "${connection.name}" leads through the egress proxy, and there is none; ask the platform team`,
    );
  const hosts = reachableHosts(new URL(connection.repository.url), connection, egress);
  return { connect: hosts.connect(message, authorities) };
}
