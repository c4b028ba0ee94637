import type { GitTransport } from '../../../git/transport.ts';
import type { CallOptions } from '../../../lib/call-options.ts';

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

/** The repositories of the connections of a user. */
export interface Repositories {
  /** By its URL, as `git clone` takes it. */
  find(url: string): ConnectedRepository | undefined;
}
