import { TemperError } from '../../lib/errors.ts';
import { type ClusterOptions, selectsCluster } from '../cluster/options.ts';
import type { CliIo } from '../io.ts';
import type { GitOpsExportOptions } from './gitops/gitops-export.ts';
import type { ToolExportOptions } from './tool-export.ts';

export interface ExportToolOptions extends ToolExportOptions, ClusterOptions, GitOpsExportOptions {
  output: 'text' | 'json';
}

/** Exports a tool of the state folder or of a cluster: as a package, as files for Git, or as a pull request. */
export async function exportTool(options: ExportToolOptions, io: CliIo): Promise<number> {
  const isForGit = options.gitops !== undefined || options.connection !== undefined;
  if (!isForGit) assertNoGitOption(options);
  if (selectsCluster(options, io)) {
    if (!isForGit) {
      const { toolExport } = await import('./tool-export.ts');
      return toolExport(options, io);
    }
    const { clusterToolExport } = await import('../cluster/verbs/tool-export.ts');
    return clusterToolExport(options, io);
  }
  const { readingState } = await import('../state/state-folder.ts');
  const { toolExport, toolExportForGitOps } = await import('./tool-export.ts');
  const verb = isForGit ? toolExportForGitOps : toolExport;
  return readingState(options.state, () => verb(options, io));
}

function assertNoGitOption({ approver, connections, branch, path }: ExportToolOptions): void {
  const given = Object.entries({ approver, connections, branch, path }).find(([, value]) => value !== undefined);
  if (given !== undefined) throw usage(`--${given[0]} is only for --gitops FOLDER or --connection NAME`);
}

function usage(message: string): TemperError {
  return new TemperError('TEMPER_USAGE', message);
}
