import type { ConnectionOptions } from '../../connections/connection-transport.ts';
import type { ReachedConnection } from '../../connections/connection.ts';
import { containing } from '../../gateway/capabilities/credentials.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { SafeBytesFetch } from '../../net/fetch.ts';
import { connectionTransport } from '../../review/pull-requests/git-transport.ts';
import type { PullRequestServer } from '../../review/pull-requests/port.ts';
import { pullRequestServer } from '../../review/pull-requests/servers.ts';
import type { HostToolDeps, RepositoriesOf } from '../../standalone/team/host-tools.ts';
import { secretForms } from '../../telemetry/secret-redactor.ts';
import { MAX_CLONE_BYTES } from '../../toolbox/git/clone/checked-clone.ts';
import type {
  ConnectedRepository,
  HostDenial,
  OpenedPullRequest,
  PullRequests,
} from '../../toolbox/git/remote/port.ts';
import { secretOf, type TokenOf } from './reach-host.ts';
import type { UserConnection, UserRepository } from './read-connections.ts';

/** The repositories that connections of the user name. Undefined when none does. */
export function gitRepositories(connections: readonly UserConnection[], token: TokenOf): RepositoriesOf | undefined {
  const named = connections.flatMap((own) => (own.git === undefined ? [] : [{ own, git: own.git }]));
  if (named.length === 0) return undefined;
  return ({ fetchWith }) => {
    const repositories = new Map(
      named.map(({ own, git }) => [addressOf(git.url), connected(own, git, { fetchWith, token })]),
    );
    return { find: (url) => repositories.get(addressOf(url)) };
  };
}

/** One text for all ways to write the URL of a repository. */
function addressOf(url: string): string {
  return (URL.parse(url)?.href ?? url).replace(/\/+$/, '');
}

interface RepositoryDeps extends Pick<HostToolDeps, 'fetchWith'> {
  token: TokenOf;
}

function connected(own: UserConnection, git: UserRepository, deps: RepositoryDeps): ConnectedRepository {
  const { name, hosts, isPrivate, caFile } = own;
  const { url, username, branchPrefix, mayPushDefaultBranch, pullRequests } = git;
  const connection: ReachedConnection = {
    name,
    hosts,
    private: isPrivate,
    ...(caFile === undefined ? {} : { caFile }),
  };
  const options = (denial: HostDenial): ConnectionOptions => optionsOf(own, denial, deps);
  return {
    connection: name,
    branchPrefix,
    mayPushDefaultBranch,
    isPrivate,
    transport: (denial) =>
      connectionTransport(
        { ...connection, git: { url, ...(username === undefined ? {} : { username }) } },
        options(denial),
      ),
    pullRequests: (denial) =>
      pullRequests === undefined
        ? undefined
        : openedBy(pullRequestServer({ ...connection, git: pullRequests }, options(denial))),
    hasCredential(parts) {
      const forms = secretForms(secretOf(own, deps.token)).map((form) => Buffer.from(form));
      return parts.some((bytes) => forms.some((form) => bytes.includes(form)));
    },
  };
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
function optionsOf(own: UserConnection, denial: HostDenial, { fetchWith, token }: RepositoryDeps): ConnectionOptions {
  const credential = (): string => secretOf(own, token);
  return {
    clock: systemClock,
    credential,
    fetchWith: (limits): SafeBytesFetch => {
      const fetch = fetchWith({ ...limits, maxBodyBytes: MAX_CLONE_BYTES });
      return async (request, rules, op) => {
        const guarded = {
          ...rules,
          hostDenialReason: (host: string, port: number) => rules.hostDenialReason(host, port) ?? denial(host, port),
        };
        const response = await fetch(request, guarded, op);
        const isEcho = containing([credential()]);
        if (!isEcho(response.bytes.toString('latin1'))) return response;
        const message = `connection "${own.name}": the server answered with the credential, so no agent gets the answer; rotate it`;
        throw new TemperError('TEMPER_TOOL_OUTPUT_INVALID', message);
      };
    },
  };
}
