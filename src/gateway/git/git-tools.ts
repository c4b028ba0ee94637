import type { RepositoryConnection } from '../../connections/connection.ts';
import { GitRemote } from '../../git/remote.ts';
import type { FairQueue } from '../../lib/async/fair-queue.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import type { PolicyRequest } from '../../policy/types.ts';
import { POD_FETCH_LIMITS, POD_LIMITS } from '../../toolbox/git/clone/clone-location.ts';
import { GIT_CLONE } from '../../toolbox/git/clone/git-clone.ts';
import { noConnection } from '../../toolbox/git/remote/deps.ts';
import { gatewayDefinition } from '../../toolbox/git/remote/gateway-definition.ts';
import { GIT_FETCH } from '../../toolbox/git/remote/git-fetch.ts';
import { commitArgument, GIT_PUSH } from '../../toolbox/git/remote/git-push.ts';
import { openPullRequest, PULL_REQUEST } from '../../toolbox/git/remote/pull-request.ts';
import { pushableBranch, pushOutput, pushPack } from '../../toolbox/git/remote/push-pack.ts';
import { branchArgument } from '../../toolbox/git/remote/pushable.ts';
import { requiredText } from '../../toolbox/input.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { CallingMessage } from '../brokered/port.ts';
import { portOf } from '../capabilities/egress-hosts.ts';
import type { HostCircuits } from '../capabilities/host-circuits.ts';
import type { GitTool } from './port.ts';
import { openRepository, type OpenRepositoryDeps } from './open-repository.ts';
import { answerOf } from './repository-reads.ts';

export interface GitToolDeps extends OpenRepositoryDeps {
  circuits: HostCircuits;
  /** One pack has its objects in memory at a time. Namespaces take turns. */
  packs: FairQueue;
}

type FindConnection = (url: string) => RepositoryConnection | undefined;

/** The git tools of the pods of a namespace, as far as they need its repositories. The policy decides about each host that they reach. */
export function gitTools(find: FindConnection, deps: GitToolDeps): GitTool[] {
  const reads = (limits: typeof POD_LIMITS) => reader(limits, find, deps);
  return [
    { ...described(GIT_CLONE, find), read: reads(POD_LIMITS) },
    { ...described(GIT_FETCH, find), read: reads(POD_FETCH_LIMITS) },
    { ...described(GIT_PUSH, find), read: reads(POD_LIMITS), execute: pusher(find, deps) },
    { ...described(PULL_REQUEST, find, apiHost), execute: pullRequester(find, deps) },
  ];
}

function described(
  descriptor: ToolDescriptor,
  find: FindConnection,
  further: (connection: RepositoryConnection) => PolicyRequest[] = () => [],
): Pick<GitTool, 'descriptor' | 'definition' | 'requests'> {
  return {
    descriptor,
    definition: gatewayDefinition(descriptor),
    requests: (input) => {
      const connection = connectionOf(input, find);
      return [hostOf(connection.repository.url), ...further(connection)];
    },
  };
}

/** Throws TEMPER_CONNECTION_DENIED: the same for a repository that no connection names, and for one of another namespace. */
function connectionOf(input: JsonObject, find: FindConnection): RepositoryConnection {
  const url = requiredText(input, 'url');
  const found = find(url);
  if (found === undefined) throw noConnection(url);
  return found;
}

function apiHost({ repository: { pullRequests } }: RepositoryConnection): PolicyRequest[] {
  return pullRequests === undefined ? [] : [hostOf(pullRequests.apiUrl)];
}

function hostOf(text: string): PolicyRequest {
  const url = new URL(text);
  return { kind: 'Network', host: url.hostname, port: portOf(url) };
}

function reader(
  { answerBytes, pack: limits }: typeof POD_LIMITS,
  find: FindConnection,
  deps: GitToolDeps,
): NonNullable<GitTool['read']> {
  return (question, input, message, op) => {
    const connection = connectionOf(input, find);
    return during(connection, message, deps, async () => {
      const repository = await openRepository(connection, message, answerBytes, deps);
      const remote = new GitRemote(repository.transport(permitted), deps.clock);
      const branch = question.kind === 'Branch' ? branchArgument(input, 'branch') : '';
      return answerOf(question, { repository, remote, branch, limits, inTurn: inTurn(message, deps) }, op);
    });
  };
}

function pusher(find: FindConnection, deps: GitToolDeps): NonNullable<GitTool['execute']> {
  return (input, message, op, pack) => {
    const connection = connectionOf(input, find);
    const [branch, commit] = [branchArgument(input, 'branch'), commitArgument(input)];
    return during(connection, message, deps, async () => {
      const repository = await openRepository(connection, message, POD_LIMITS.answerBytes, deps);
      const target = { repository, remote: new GitRemote(repository.transport(permitted), deps.clock) };
      const state = await pushableBranch(target, branch, op);
      if (state.before === commit) return pushOutput(branch, commit, state, 0);
      if (pack === undefined) throw moved(branch);
      const check = { limits: POD_LIMITS.pack, inTurn: inTurn(message, deps) };
      const objects = await pushPack(target, { branch, commit, pack }, state, check, op);
      return pushOutput(branch, commit, state, objects);
    });
  };
}

function moved(branch: string): TemperError {
  return new TemperError('TEMPER_TOOL_FAILED', `nothing is pushed: ${branch} has changed meanwhile; push again`);
}

function pullRequester(find: FindConnection, deps: GitToolDeps): NonNullable<GitTool['execute']> {
  return (input, message, op) => {
    const connection = connectionOf(input, find);
    return during(connection, message, deps, async (): Promise<Json> => {
      const repository = await openRepository(connection, message, POD_LIMITS.answerBytes, deps);
      return openPullRequest(input, { repository, denial: permitted, clock: deps.clock }, op);
    });
  };
}

/** The policy decided about the hosts of the call before it. */
function permitted(): undefined {
  return undefined;
}

function inTurn({ claims }: CallingMessage, { packs }: GitToolDeps): <T>(work: () => Promise<T>) => Promise<T> {
  return (work) => packs.run(claims.namespace, work);
}

function during<T>(
  { repository: { url } }: RepositoryConnection,
  { claims }: CallingMessage,
  { circuits }: GitToolDeps,
  work: () => Promise<T>,
): Promise<T> {
  return circuits.during(claims.agentUid, new URL(url).host, work);
}
