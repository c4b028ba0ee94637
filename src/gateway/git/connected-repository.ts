import type { ConnectionOptions } from '../../connections/connection-transport.ts';
import type { Connection, ReachedConnection } from '../../connections/connection.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { SafeBytesFetch } from '../../net/fetch.ts';
import { connectionTransport } from '../../review/pull-requests/git-transport.ts';
import type { PullRequestServer } from '../../review/pull-requests/port.ts';
import { pullRequestServer } from '../../review/pull-requests/servers.ts';
import { secretForms } from '../../telemetry/secret-redactor.ts';
import type {
  ConnectedRepository,
  HostDenial,
  OpenedPullRequest,
  PullRequests,
} from '../../toolbox/git/remote/port.ts';

type Repository = NonNullable<Connection['repository']>;

export interface ConnectedRepositoryDeps {
  clock: Clock;
  /** Throws TEMPER_CONNECTION_UNAUTHORIZED. */
  secret: () => string;
  /** A fetch that another one pays for and checks. */
  fetchWith: NonNullable<ConnectionOptions['fetchWith']>;
}

/** The repository of a connection, with its credential. */
export function repositoryOfConnection(
  connection: ReachedConnection,
  { url, username, branchPrefix, pushDefaultBranch = false, pullRequests }: Repository,
  deps: ConnectedRepositoryDeps,
): ConnectedRepository {
  const { name, hosts, private: isPrivate = false, caFile } = connection;
  const reached = { name, hosts, private: isPrivate, ...(caFile === undefined ? {} : { caFile }) };
  const options = (denial: HostDenial): ConnectionOptions => optionsOf(name, denial, deps);
  return {
    connection: name,
    branchPrefix,
    mayPushDefaultBranch: pushDefaultBranch,
    isPrivate,
    transport: (denial) =>
      connectionTransport(
        { ...reached, git: { url, ...(username === undefined ? {} : { username }) } },
        options(denial),
      ),
    pullRequests: (denial) =>
      pullRequests === undefined
        ? undefined
        : openedBy(pullRequestServer({ ...reached, git: pullRequests }, options(denial))),
    hasCredential: (parts) => hasSecret(deps.secret(), parts),
  };
}

function hasSecret(secret: string, parts: readonly Buffer[]): boolean {
  const forms = secretForms(secret).map((form) => Buffer.from(form));
  return parts.some((bytes) => forms.some((form) => bytes.includes(form)));
}

function openedBy(server: PullRequestServer): PullRequests {
  return {
    find: async ({ branch, base }, op) => opened(await server.find(branch, base, op)),
    create: async (order, op) => opened(await server.create(order, op)),
  };
}

function opened(found: Awaited<ReturnType<PullRequestServer['find']>>): OpenedPullRequest | undefined {
  return found === undefined ? undefined : { number: found.number, page: found.url, state: found.state };
}

/** Each request and each redirect meets the policy of the agent too, and an answer with the credential goes nowhere. */
function optionsOf(
  name: string,
  denial: HostDenial,
  { clock, fetchWith, secret }: ConnectedRepositoryDeps,
): ConnectionOptions {
  return {
    clock,
    credential: secret,
    fetchWith: (limits): SafeBytesFetch => {
      const fetch = fetchWith(limits);
      return async (request, rules, op) => {
        const guarded = {
          ...rules,
          hostDenialReason: (host: string, port: number) => rules.hostDenialReason(host, port) ?? denial(host, port),
        };
        const response = await fetch(request, guarded, op);
        if (!hasSecret(secret(), [response.bytes])) return response;
        const message = `connection "${name}": the server answered with the credential, so no agent gets the answer; rotate it`;
        throw new TemperError('TEMPER_TOOL_OUTPUT_INVALID', message);
      };
    },
  };
}
