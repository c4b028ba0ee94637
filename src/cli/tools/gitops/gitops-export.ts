import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { gitOpsFiles } from '../../../review/gitops/gitops-files.ts';
import type { ToolReview } from '../../../review/tool-review.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { earlierExport, writeExport } from './export-folder.ts';

export interface GitOpsExportOptions {
  /** The folder to write to, usually in a checkout. */
  gitops: string;
  /** The account that applies the files; default: that of an earlier export. */
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

/** Writes the files of a promotion. A second export of the same tool gives the same bytes. */
export async function exportForGitOps(
  tool: ExportableTool,
  options: GitOpsExportOptions,
  location: string,
  io: CliIo,
): Promise<number> {
  const folder = resolve(io.cwd, options.gitops);
  const earlier = await earlierExport(folder, tool);
  const approvedBy = options.approver ?? earlier.approvedBy;
  if (approvedBy === undefined) {
    throw usage(
      'name the account that applies the files with --approver, such as --approver system:serviceaccount:flux-system:kustomize-controller; the Approval is valid for this account only',
    );
  }
  assertMayApprove(approvedBy, tool);
  const nonce = tool.nonce ?? earlier.nonce ?? randomBytes(15).toString('base64url');
  const review = tool.review({ nonce, approvedBy });
  const files = gitOpsFiles(review);
  await writeExport(folder, files);
  const paths = files.map(({ path }) => path);
  const revoked = review.promotion.revoked !== undefined;
  if (options.output === 'json')
    writeJsonLine(io, {
      tool: review.artifact.name,
      digest: review.digest,
      namespace: tool.namespace,
      revoked,
      files: paths,
    });
  else {
    const state = revoked ? 'revoked, it stays inactive' : 'merging the files approves it';
    io.out(`${review.artifact.name} (${review.digest}) of ${location}: ${state}\n`);
    for (const path of paths) io.out(`  ${printable(path, 400)}\n`);
  }
  return EXIT.ok;
}

/** The rules of the API server that would refuse the Approval later. */
function assertMayApprove(approver: string, { namespace, contributors }: ExportableTool): void {
  const shown = printable(approver, 253);
  if (approver.length > 253 || approver.trim() === '') throw usage('--approver must have 1 to 253 characters');
  if (approver.startsWith(`system:serviceaccount:${namespace}:`)) {
    throw usage(
      `--approver ${shown} belongs to namespace "${namespace}", and only accounts of other namespaces may approve its tools; name the account of the GitOps controller`,
    );
  }
  if (contributors.includes(approver)) {
    throw usage(`--approver ${shown} contributed to the tool and may not approve it; name another account`);
  }
}

function usage(message: string): TemperError {
  return new TemperError('TEMPER_USAGE', message);
}
