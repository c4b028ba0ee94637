import { isSafeBranchName } from '../../git/branch-name.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import {
  APPROVAL_FILE,
  AUDIT_HEAD_FILE,
  type GitOpsFile,
  gitOpsFiles,
  gitOpsFolder,
  type PromotionFacts,
  revocationFile,
  REVIEW_FILES,
  TOOL_FILE,
} from '../gitops/gitops-files.ts';
import { foreign, heading, paragraph, type ReviewDocument } from '../page/document.ts';
import { renderMarkdown } from '../render/markdown.ts';
import { evidenceSections } from '../sections/evidence.ts';
import { summarySections } from '../sections/summary.ts';
import type { ToolReview } from '../tool-review.ts';
import type { Proposal, PullRequestDraft } from './port.ts';

/** The location in a repository that a policy names. */
export interface RepositoryLocation {
  readonly branch: string;
  /** The folder of all exports. */
  readonly path: string;
}

const SEGMENT = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/;
const NONCE = /^[A-Za-z0-9_-]{16,64}$/;
/** GitHub permits 65,536 characters. */
const MAX_CHARACTERS = 60_000;

/** The branch of a promotion, or of its revocation. Throws TEMPER_MANIFEST_INVALID for a nonce that is none. */
export function branchOf(nonce: string, purpose: 'share' | 'revoke'): string {
  if (!NONCE.test(nonce)) throw invalid('the nonce of the request', nonce);
  return `temper/${purpose}-${nonce}`;
}

/** The folder of a promotion in a repository. Throws TEMPER_MANIFEST_INVALID as `pullRequestDraft` does. */
export function folderIn(location: RepositoryLocation, facts: Pick<PromotionFacts, 'namespace' | 'object'>): string {
  const path = checkedLocation(location);
  return `${path === '' ? '' : `${path}/`}${gitOpsFolder(facts)}`;
}

/**
 * The pull request of a promotion. A revocation leaves the tool and its Approval as they are: Approvals are immutable, so a controller could
 * not apply another text. Its branch is named after the nonce, so that equal requests give the same branch; a revocation has one of its
 * own. Throws TEMPER_MANIFEST_INVALID for a branch or path that Git or a shell could read as something else.
 */
export function pullRequestDraft(review: ToolReview, location: RepositoryLocation): PullRequestDraft {
  const frame = frameOf(review, location);
  const page = `${frame.folder}/review.md`;
  return {
    ...frame,
    body: bounded([...summarySections(review), paragraph('The whole page is in ', foreign(page), '.')], page),
    comment: bounded([heading(2, 'Evidence and verdicts'), ...evidenceSections(review)], page),
    files: gitOpsFiles(review).map((file) => below(location, file)),
    kept: pathsIn(frame.folder, [
      ...(review.promotion.revoked === undefined ? [] : [TOOL_FILE, APPROVAL_FILE]),
      ...(review.auditHead === undefined ? [AUDIT_HEAD_FILE] : []),
    ]),
  };
}

/** The revocation of a tool whose object is gone: one file, and the others stay. */
export function revocationDraft(facts: PromotionFacts, location: RepositoryLocation): PullRequestDraft {
  const frame = frameOf(facts, location);
  const { by = '', reason = '' } = facts.promotion.revoked ?? {};
  return {
    ...frame,
    body: renderMarkdown([
      paragraph('Digest: ', foreign(facts.digest)),
      paragraph('Revoked by: ', foreign(by)),
      paragraph('Reason: ', foreign(reason === '' ? 'none given' : reason)),
    ]),
    comment: renderMarkdown([paragraph('The cluster has no object of this tool any more.')]),
    files: [below(location, revocationFile(facts))],
    kept: pathsIn(frame.folder, [TOOL_FILE, APPROVAL_FILE, AUDIT_HEAD_FILE, ...REVIEW_FILES]),
  };
}

function frameOf(
  facts: PromotionFacts,
  location: RepositoryLocation,
): Pick<PullRequestDraft, 'branch' | 'base' | 'title' | 'folder'> {
  const { promotion, namespace, artifact } = facts;
  const folder = folderIn(location, facts);
  const isRevocation = promotion.revoked !== undefined;
  const title = `${isRevocation ? 'Revoke' : 'Share'} tool ${artifact.name} in namespace ${namespace}`;
  return {
    branch: branchOf(promotion.nonce, isRevocation ? 'revoke' : 'share'),
    base: location.branch,
    title: printable(title, 200),
    folder,
  };
}

function below(location: RepositoryLocation, file: GitOpsFile): GitOpsFile {
  const path = checkedLocation(location);
  return { ...file, path: path === '' ? file.path : `${path}/${file.path}` };
}

function pathsIn(folder: string, names: readonly string[]): string[] {
  return names.map((name) => `${folder}/${name}`);
}

/** Servers refuse longer texts, and a cut text could end inside of a box. */
function bounded(document: ReviewDocument, page: string): string {
  const text = renderMarkdown(document);
  if (text.length <= MAX_CHARACTERS) return text;
  return renderMarkdown([paragraph('The text is too long for this place. Read it in ', foreign(page), '.')]);
}

function checkedLocation({ branch, path }: RepositoryLocation): string {
  if (!isSafeBranchName(branch)) throw invalid('promotion.toShared.gitOps.branch', branch);
  const segments = path.split('/').filter((segment) => segment !== '');
  if (!segments.every((segment) => SEGMENT.test(segment))) throw invalid('promotion.toShared.gitOps.path', path);
  return segments.join('/');
}

function invalid(field: string, value: string): TemperError {
  return new TemperError(
    'TEMPER_MANIFEST_INVALID',
    `${field} "${printable(value, 300)}" contains what Git or a server could misread; use letters, digits, dots, dashes and slashes`,
  );
}

/** The proposal of a draft that exists already. */
export function proposalOf(draft: PullRequestDraft): Proposal {
  const { branch, base, folder } = draft;
  return { branch, base, folder, draft: async () => draft };
}
