import type { CallOptions } from '../../lib/call-options.ts';
import type { GitOpsFile } from '../gitops/gitops-files.ts';

export interface PullRequest {
  /** Undefined for a branch of a plain Git repository, which has no pull requests. */
  readonly number?: number;
  /** The page for users; of a branch, the URL of its repository and its name, `URL#BRANCH`. */
  readonly url: string;
  readonly state: 'Open' | 'Merged' | 'Closed';
}

/** A pull request of a server that has them. */
export type NumberedPullRequest = PullRequest & { readonly number: number };

/** A pull request to open. The branch identifies it: the server never has two of one branch. */
export interface PullRequestDraft {
  readonly branch: string;
  /** The branch to merge into. */
  readonly base: string;
  readonly title: string;
  /** Markdown, at most 60,000 characters each. */
  readonly body: string;
  readonly comment: string;
  /** The folder of the promotion in the repository; what else it contains is removed. */
  readonly folder: string;
  readonly files: readonly GitOpsFile[];
  /** Paths of the folder that stay as the base branch has them. Those of `files` are written where it has none. */
  readonly kept: readonly string[];
}

/** The files of a commit, compared with the base branch. */
export interface FileChange {
  readonly path: string;
  /** Undefined: the file is removed. */
  readonly text: string | undefined;
  /** The version on the base branch; undefined: the file is new. */
  readonly previous: string | undefined;
}

/**
 * The branches of one repository. Every method throws TEMPER_CONNECTION_FAILED and TEMPER_CONNECTION_UNAUTHORIZED. The first may be retried;
 * each method can be repeated after a failure without another effect, except `createComment`.
 */
export interface RepositoryBranches {
  hasBranch(branch: string, op: CallOptions): Promise<boolean>;
  /** The files directly in a folder of a branch, with their versions; empty when there is none. */
  filesIn(folder: string, branch: string, op: CallOptions): Promise<ReadonlyMap<string, string>>;
  /** Creates the branch with one commit on top of the base, or neither. Does nothing when the branch exists. */
  createBranch(
    draft: Pick<PullRequestDraft, 'branch' | 'base' | 'title'>,
    changes: readonly FileChange[],
    op: CallOptions,
  ): Promise<void>;
  /** Adds one commit to the base branch, or nothing: also when the branch has moved or the account may not write to it. */
  commit(
    draft: Pick<PullRequestDraft, 'base' | 'title'>,
    changes: readonly FileChange[],
    op: CallOptions,
  ): Promise<void>;
}

/** What is proposed. The draft is made only when it is needed: its page reads many records. */
export interface Proposal {
  readonly branch: string;
  readonly base: string;
  readonly folder: string;
  /** What an earlier look found. */
  readonly known?: Pick<Partial<PullRequest>, 'number' | 'url'>;
  readonly draft: () => Promise<PullRequestDraft>;
}

/** A repository in which promotions and revocations are proposed to its users. */
export interface Repository extends RepositoryBranches {
  /** Proposes the draft, or finds what was proposed and returns its state. Can be repeated after a crash at any step. */
  propose(proposal: Proposal, op: CallOptions): Promise<PullRequest>;
}

/** The interface of one repository on a server with pull requests. Methods throw as those of the branches. */
export interface PullRequestServer extends RepositoryBranches {
  /** The last pull request from the branch, in any state. */
  find(branch: string, base: string, op: CallOptions): Promise<NumberedPullRequest | undefined>;
  get(number: number, op: CallOptions): Promise<NumberedPullRequest>;
  /** Undefined when a pull request from the branch exists already. */
  create(
    draft: Pick<PullRequestDraft, 'branch' | 'base' | 'title' | 'body'>,
    op: CallOptions,
  ): Promise<NumberedPullRequest | undefined>;
  /** The texts of the first comments. */
  comments(number: number, op: CallOptions): Promise<string[]>;
  createComment(number: number, text: string, op: CallOptions): Promise<void>;
}
