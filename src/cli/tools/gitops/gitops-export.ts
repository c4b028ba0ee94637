import { resolve } from 'node:path';
import { sha256 } from '../../../lib/canonical.ts';
import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { gitOpsFiles } from '../../../review/gitops/gitops-files.ts';
import { withJudged } from '../../../review/judged.ts';
import type { ToolReview } from '../../../review/tool-review.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { type EarlierExport, earlierExport, writeExport } from './export-folder.ts';
import { openConnection, proposeInRepository } from './propose.ts';

export interface GitOpsExportOptions {
  /** The folder to write to, usually in a checkout. */
  gitops?: string;
  /** The connection over which a pull request is opened instead. */
  connection?: string;
  connections?: string;
  branch?: string;
  path?: string;
  /** The account that applies the files; default: that of an earlier export, or of the connection. */
  approver?: string;
  output?: 'text' | 'json';
}

/** A promotion of which only the approver and perhaps the nonce are not decided yet. */
export interface ExportableTool {
  readonly namespace: string;
  readonly object: string;
  readonly digest: string;
  readonly contributors: readonly string[];
  /** The nonce of its request or of its Shared object. */
  readonly nonce: string | undefined;
  review(decided: { nonce: string; approvedBy: string }): ToolReview;
}

/** Writes the files of a promotion, or opens a pull request with them. A second export of the same tool gives the same bytes. */
export async function exportForGitOps(
  tool: ExportableTool,
  options: GitOpsExportOptions,
  location: string,
  io: CliIo,
): Promise<number> {
  const { gitops } = options;
  if (gitops === undefined) {
    const connection = await openConnection(options, tool.namespace, io);
    const review = decidedReview(tool, { approvedBy: connection.git.approver }, options);
    return proposeInRepository(review, connection, options, io);
  }
  const folder = resolve(io.cwd, gitops);
  const review = decidedReview(tool, await earlierExport(folder, tool), options);
  const files = gitOpsFiles(review);
  await writeExport(folder, files);
  const paths = files.map(({ path }) => path);
  const { artifact, digest, namespace, promotion } = review;
  const revoked = promotion.revoked !== undefined;
  if (options.output === 'json') {
    writeJsonLine(io, { tool: artifact.name, digest, namespace, revoked, files: paths });
    return EXIT.ok;
  }
  const state = revoked ? 'revoked, it stays inactive' : 'merging the files approves it';
  io.out(`${artifact.name} (${digest}) of ${location}: ${state}\n`);
  for (const path of paths) io.out(`  ${printable(path, 400)}\n`);
  return EXIT.ok;
}

function decidedReview(tool: ExportableTool, earlier: EarlierExport, options: GitOpsExportOptions): ToolReview {
  const approvedBy = options.approver ?? earlier.approvedBy;
  if (approvedBy === undefined) {
    throw usage(
      'name the account that applies the files with --approver, such as --approver system:serviceaccount:flux-system:kustomize-controller; the Approval is valid for this account only',
    );
  }
  assertMayApprove(approvedBy, tool);
  return withJudged(tool.review({ nonce: tool.nonce ?? earlier.nonce ?? derivedNonce(tool), approvedBy }));
}

/** An export is no new request: a tool that was revoked keeps its nonce, and stays revoked. */
function derivedNonce({ namespace, digest }: ExportableTool): string {
  return sha256(`share ${namespace} ${digest}`).slice('sha256:'.length, 'sha256:'.length + 32);
}

/** The rules of the API server that would refuse the Approval later. */
function assertMayApprove(approver: string, { namespace, contributors }: ExportableTool): void {
  const shown = printable(approver, 253);
  if (approver.length > 253) throw usage('--approver must have at most 253 characters');
  if (approver.startsWith(`system:serviceaccount:${namespace}:`)) {
    throw usage(
      `--approver ${shown} belongs to namespace "${namespace}", and only accounts of other namespaces may approve its tools; name the account of the GitOps controller`,
    );
  }
  if (contributors.includes(approver) || contributors.includes(`user/${approver}`)) {
    throw usage(`--approver ${shown} contributed to the tool and may not approve it; name another account`);
  }
}

function usage(message: string): TemperError {
  return new TemperError('TEMPER_USAGE', message);
}
