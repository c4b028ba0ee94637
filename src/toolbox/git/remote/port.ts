import type { GitRemote } from '../../../git/remote.ts';
import type { GitTransport } from '../../../git/transport.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import type { Json } from '../../../lib/json.ts';
import type { ToolDescriptor } from '../../../tools/contract.ts';

export interface OpenedPullRequest {
  readonly number: number;
  /** The page for users. */
  readonly page: string;
  readonly state: 'Open' | 'Merged' | 'Closed';
}

/** A pull request from one branch of a repository into another one. */
export interface PullRequestOrder {
  readonly branch: string;
  readonly base: string;
  readonly title: string;
  /** Markdown. */
  readonly body: string;
}

/** The pull requests of one repository. Methods throw TEMPER_CONNECTION_FAILED and TEMPER_CONNECTION_UNAUTHORIZED. */
export interface PullRequests {
  /** The last one from the branch, in any state. */
  find(order: Pick<PullRequestOrder, 'branch' | 'base'>, op: CallOptions): Promise<OpenedPullRequest | undefined>;
  /** Undefined when the server refuses to create one, such as for a branch that has one. */
  create(order: PullRequestOrder, op: CallOptions): Promise<OpenedPullRequest | undefined>;
}

/** Why the agent may not connect to a host; undefined when it may. Asked for each request and each redirect. */
export type HostDenial = (host: string, port: number) => string | undefined;

/** A repository elsewhere for which a user gave a credential. */
export interface ConnectedRepository {
  /** The name of the connection. */
  readonly connection: string;
  /** Branches that agents may push begin with it; undefined: none. */
  readonly branchPrefix: string | undefined;
  readonly mayPushDefaultBranch: boolean;
  /** Its hosts may be names in a private network. */
  readonly isPrivate: boolean;
  /** Requests with the credential. */
  transport(denial: HostDenial): GitTransport;
  /** Undefined where the user named no server with pull requests. */
  pullRequests(denial: HostDenial): PullRequests | undefined;
  /** Whether one of the parts contains the credential, in one of its usual forms. Throws TEMPER_CONNECTION_UNAUTHORIZED without one. */
  hasCredential(parts: readonly Buffer[]): boolean;
}

/** The repositories of connections whose credentials this process has. */
export interface Repositories {
  /** By its URL, as `git clone` takes it. */
  find(url: string): ConnectedRepository | undefined;
}

/** What the arguments of a call alone need of repositories: which have a connection, and whether it leads to a private network. */
export interface NamedRepositories {
  /** Who names them. */
  readonly owner: 'User' | 'Platform';
  find(url: string): Pick<ConnectedRepository, 'isPrivate'> | undefined;
}

/** What a clone or a fetch reads. */
export type RepositoryReader = Pick<GitRemote, 'resolve' | 'clone' | 'since'>;

/** What a server has, for a push to one of its branches. */
export interface BranchState {
  /** The commit of the branch; absent for a new one. */
  readonly before?: string | undefined;
  /** The commits of all branches. */
  readonly heads: readonly string[];
}

/** The call in which a gateway is asked. It decides about the call with these arguments, for each request. */
export interface GatewayCall {
  readonly tool: ToolDescriptor;
  readonly input: Json;
  readonly op: CallOptions;
}

/** A repository for which the gateway of a pod has a credential. Methods throw what the gateway reports. */
export interface GatewayRepository {
  /** Its hosts may be names in a private network, which the gateway reaches. */
  readonly isPrivate: boolean;
  reader(call: GatewayCall): RepositoryReader;
  /** What a push to the branch begins with. */
  branch(branch: string, call: GatewayCall): Promise<BranchState>;
  /** The gateway executes the tool. A push has a pack, unless the branch has the commit. */
  call(call: GatewayCall, pack?: Buffer): Promise<Json>;
}

/** The repositories of connections whose credentials the gateway of a pod has. */
export interface GatewayRepositories {
  /** By its URL, as `git clone` takes it. */
  find(url: string): GatewayRepository | undefined;
}

/** One text for all ways to write the URL of a repository. */
export function repositoryAddress(url: string): string {
  return (URL.parse(url)?.href ?? url).replace(/\/+$/, '');
}
