import { httpTransport } from '../../../git/http-transport.ts';
import { GitRemote } from '../../../git/remote.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { Json } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { type TargetRules, validateTarget } from '../../../net/targets.ts';
import type { CallContext, CallerContext, ToolDescriptor, ToolFailureCase } from '../../../tools/contract.ts';
import type { RemoteWorkspace } from '../../../tools/host/remote-workspace.ts';
import type { ToolboxDeps } from '../../deps.ts';
import { requiredText } from '../../input.ts';
import type { Terminal } from '../../terminal/port.ts';
import type { Web } from '../../web/deps.ts';
import { hostRules } from '../../web/host-rules.ts';
import { type CloneLocation, localCloneLocation } from '../clone/clone-location.ts';
import type {
  ConnectedRepository,
  GatewayRepositories,
  HostDenial,
  NamedRepositories,
  Repositories,
  RepositoryReader,
} from './port.ts';

export const REMOTE_FAILURES: readonly ToolFailureCase[] = [
  { code: 'TEMPER_CONNECTION_DENIED', when: 'no connection has this repository, or its rules refuse the branch' },
  { code: 'TEMPER_CONNECTION_FAILED', when: 'the server does not answer, or refuses' },
  { code: 'TEMPER_NOT_FOUND', when: 'the repository has no such branch or commit' },
];

/** What the tools for repositories elsewhere work with. */
export interface RemoteGitDeps extends Pick<ToolboxDeps, 'workspace' | 'decide' | 'clock'> {
  protectedFolders?: readonly string[] | undefined;
  web?: Web | undefined;
  terminal?: Terminal | undefined;
  /** The workspace is on another machine. */
  remote?: RemoteWorkspace | undefined;
  /** Where clones are checked and written when the workspace is on another machine; absent: nowhere. */
  cloneLocation?: CloneLocation | undefined;
  /** Absent: this process has no credential. */
  repositories?: Repositories | undefined;
  /** Absent: no gateway has a credential. */
  gatewayRepositories?: GatewayRepositories | undefined;
  /** Stands for both in an explanation, which makes no call. */
  named?: NamedRepositories | undefined;
}

export const URL_SCHEMA = {
  type: 'string',
  description: 'The absolute https URL of the repository, as git clone takes it',
  minLength: 1,
  maxLength: 2048,
} as const;

/** Throws TEMPER_FETCH_DENIED for a URL that the policy or the rules for addresses refuse. */
export function assertReachable(input: Json, caller: CallerContext, deps: RemoteGitDeps): void {
  const url = requiredText(input, 'url');
  validateTarget(url, remoteRules(url, caller, deps));
}

function remoteRules(url: string, caller: CallerContext, deps: RemoteGitDeps): TargetRules {
  const rules = hostRules(url, deps.decide, caller);
  const host = URL.parse(url)?.hostname ?? '';
  return connectionFor(url, deps)?.isPrivate === true ? { ...rules, privateHosts: new Set([host]) } : rules;
}

function connectionFor(url: string, { named, gatewayRepositories, repositories }: RemoteGitDeps) {
  return named?.find(url) ?? gatewayRepositories?.find(url) ?? repositories?.find(url);
}

/** Throws TEMPER_CONNECTION_DENIED for a repository without a connection. */
export function assertConnected(input: Json, deps: RemoteGitDeps): void {
  const url = requiredText(input, 'url');
  if (connectionFor(url, deps) === undefined) throw noConnection(url, nextStepOf(deps));
}

/** Reads the repository of a call: with the credential of its connection, or else without one. Throws TEMPER_EGRESS_UNAVAILABLE. */
export function readableRemote(
  tool: ToolDescriptor,
  input: Json,
  context: CallContext,
  deps: RemoteGitDeps & { answerBytes: number },
): { remote: RepositoryReader; repository: ConnectedRepository | undefined } {
  const { web, clock, repositories, gatewayRepositories } = deps;
  const url = requiredText(input, 'url');
  const there = gatewayRepositories?.find(url);
  if (there !== undefined) return { remote: there.reader({ tool, input, op: context.op }), repository: undefined };
  const repository = repositories?.find(url);
  if (repository !== undefined) {
    const transport = repository.transport(denialOf(url, context, deps));
    return { remote: new GitRemote(transport, clock), repository };
  }
  if (web === undefined)
    throw new TemperError('TEMPER_EGRESS_UNAVAILABLE', 'this run has no way to the internet; work without the remote');
  const fetch: typeof web.fetch = (request, ...rest) =>
    web.fetch({ ...request, maxResponseBytes: deps.answerBytes }, ...rest);
  const transport = httpTransport(fetch, url, remoteRules(url, context, deps));
  return { remote: new GitRemote(transport, clock), repository: undefined };
}

/** Throws TEMPER_CONNECTION_DENIED for a repository without a connection. */
export function connectedRepository(url: string, deps: RemoteGitDeps): ConnectedRepository {
  const found = deps.repositories?.find(url);
  if (found !== undefined) return found;
  throw noConnection(url, nextStepOf(deps));
}

function nextStepOf({ remote, named }: RemoteGitDeps): string {
  const owner = named?.owner ?? (remote === undefined ? 'User' : 'Platform');
  return owner === 'User' ? 'a user names it in connections.yaml' : PLATFORM_NAMES_IT;
}

const PLATFORM_NAMES_IT = 'the platform team names it in gateway.connections, for the namespace of the agent';

/** The same for a repository without a connection, and for one that the namespace may not use. */
export function noConnection(url: string, nextStep = PLATFORM_NAMES_IT): TemperError {
  const message = `no connection is for ${printable(url, 300)}; ${nextStep}, with its whole URL`;
  return new TemperError('TEMPER_CONNECTION_DENIED', message);
}

export function denialOf(url: string, context: CallContext, { decide }: RemoteGitDeps): HostDenial {
  return (host, port) => hostRules(url, decide, context).hostDenialReason(host, port);
}

/** Throws TEMPER_PROGRAM_UNAVAILABLE where no repository can be written. */
export function cloneLocationOf(tool: string, deps: RemoteGitDeps): CloneLocation {
  const { workspace, protectedFolders = [], remote, cloneLocation } = deps;
  if (cloneLocation !== undefined) return cloneLocation;
  if (remote !== undefined) throw unavailable(tool, 'has no place for repositories here');
  return localCloneLocation({ workspace, protectedFolders, terminal: terminalOf(tool, deps) });
}

/** Where Git runs. Throws TEMPER_PROGRAM_UNAVAILABLE. */
export function terminalOf(tool: string, { terminal }: RemoteGitDeps): Terminal {
  if (terminal !== undefined) return terminal;
  throw unavailable(tool, 'needs a place to run git');
}

function unavailable(tool: string, problem: string): TemperError {
  return new TemperError('TEMPER_PROGRAM_UNAVAILABLE', `${tool} ${problem}; ask a user`);
}

/** Throws TEMPER_TOOL_OUTPUT_INVALID for what a server sent with the credential, which no agent may read. */
export function assertNoCredential(repository: ConnectedRepository | undefined, parts: readonly Buffer[]): void {
  if (repository?.hasCredential(parts) !== true) return;
  throw new TemperError(
    'TEMPER_TOOL_OUTPUT_INVALID',
    `the server sent the credential of connection "${repository.connection}", so no agent gets it; rotate the credential, because the server hands it on`,
  );
}
