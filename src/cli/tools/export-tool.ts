import { TemperError } from '../../lib/errors.ts';
import { type ClusterOptions, selectsCluster } from '../cluster/options.ts';
import type { CliIo } from '../io.ts';
import type { ToolExportOptions } from './tool-export.ts';

export interface ExportToolOptions extends ToolExportOptions, ClusterOptions {
  gitops?: string;
  approver?: string;
  output: 'text' | 'json';
}

/** Exports a tool of the state folder or of a cluster, as a package or as files for Git. */
export async function exportTool(options: ExportToolOptions, io: CliIo): Promise<number> {
  const { gitops, approver } = options;
  if (gitops === undefined && approver !== undefined) throw usage('--approver is only for --gitops FOLDER');
  if (selectsCluster(options, io)) {
    if (gitops === undefined)
      throw usage('a tool of a cluster is exported with --gitops FOLDER; packages are of a state folder');
    const { clusterToolExport } = await import('../cluster/verbs/tool-export.ts');
    return clusterToolExport({ ...options, gitops }, io);
  }
  const { readingState } = await import('../state/state-folder.ts');
  const { toolExport, toolExportForGitOps } = await import('./tool-export.ts');
  return readingState(options.state, () =>
    gitops === undefined ? toolExport(options, io) : toolExportForGitOps({ ...options, gitops }, io),
  );
}

function usage(message: string): TemperError {
  return new TemperError('TEMPER_USAGE', message);
}
