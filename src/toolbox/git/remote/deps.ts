import { httpTransport } from '../../../git/http-transport.ts';
import { GitRemote } from '../../../git/remote.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { Json } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { type TargetRules, validateTarget } from '../../../net/targets.ts';
import type { CallContext, CallerContext } from '../../../tools/contract.ts';
import type { RemoteWorkspace } from '../../../tools/host/remote-workspace.ts';
import type { ToolboxDeps } from '../../deps.ts';
import { requiredText } from '../../input.ts';
import type { Terminal } from '../../terminal/port.ts';
import type { Web } from '../../web/deps.ts';
import { hostRules } from '../../web/host-rules.ts';
import { type ClonePlace, localClonePlace } from '../clone/clone-place.ts';
import type { ConnectedRepository, HostDenial, Repositories } from './port.ts';

/** What the tools for repositories elsewhere work with. */
export interface RemoteGitDeps extends Pick<ToolboxDeps, 'workspace' | 'decide' | 'clock'> {
  protectedFolders?: readonly string[] | undefined;
  web?: Web | undefined;
  terminal?: Terminal | undefined;
  /** The workspace is on another machine. */
  remote?: RemoteWorkspace | undefined;
  /** Where clones are checked and written when the workspace is on another machine; absent: nowhere. */
  clonePlace?: ClonePlace | undefined;
  /** Absent: none has a credential. */
  repositories?: Repositories | undefined;
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

function remoteRules(url: string, caller: CallerContext, { decide, repositories }: RemoteGitDeps): TargetRules {
  const rules = hostRules(url, decide, caller);
  const host = URL.parse(url)?.hostname ?? '';
  return repositories?.find(url)?.isPrivate === true ? { ...rules, privateHosts: new Set([host]) } : rules;
}

/** Reads a repository: with the credential of its connection, or else without one. Throws TEMPER_EGRESS_UNAVAILABLE. */
export function readableRemote(
  url: string,
  context: CallContext,
  deps: RemoteGitDeps & { answerBytes: number },
): { remote: GitRemote; repository: ConnectedRepository | undefined } {
  const { web, clock, repositories } = deps;
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
export function connectedRepository(url: string, { repositories }: RemoteGitDeps): ConnectedRepository {
  const found = repositories?.find(url);
  if (found !== undefined) return found;
  throw new TemperError(
    'TEMPER_CONNECTION_DENIED',
    `no connection is for ${printable(url, 300)}; a user names the repository in connections.yaml, with its whole URL`,
  );
}

export function denialOf(url: string, context: CallContext, { decide }: RemoteGitDeps): HostDenial {
  return (host, port) => hostRules(url, decide, context).hostDenialReason(host, port);
}

/** Throws TEMPER_PROGRAM_UNAVAILABLE where no repository can be written. */
export function placeOfClones(tool: string, deps: RemoteGitDeps): ClonePlace {
  const { workspace, protectedFolders = [], remote, clonePlace } = deps;
  if (remote !== undefined && clonePlace !== undefined) return clonePlace;
  return localClonePlace({ workspace, protectedFolders, terminal: localGit(tool, deps) });
}

/** Where Git runs. Throws TEMPER_PROGRAM_UNAVAILABLE. */
export function terminalOf(tool: string, { terminal }: RemoteGitDeps): Terminal {
  if (terminal !== undefined) return terminal;
  throw unavailable(tool, 'needs a place to run git');
}

/** Throws TEMPER_PROGRAM_UNAVAILABLE where no Git runs beside this process. */
export function localGit(tool: string, deps: RemoteGitDeps): Terminal {
  if (deps.remote === undefined) return terminalOf(tool, deps);
  throw unavailable(tool, 'works with temper run only, and needs its launcher');
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
