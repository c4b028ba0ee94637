import { TemperError } from '../../../lib/errors.ts';
import { type ClusterOptions, isPlugin, selectsCluster } from '../../cluster/options.ts';
import type { CliIo } from '../../io.ts';
import type { ToolAuditOptions } from './local-audit.ts';

export type AuditToolOptions = Omit<ToolAuditOptions, 'filename'> & ClusterOptions & { filename?: string[] };

/** With manifests in this process, and without them on a cluster. */
export async function auditToolAnywhere(options: AuditToolOptions, io: CliIo): Promise<number> {
  const { filename } = options;
  if (filename === undefined || isPlugin(io)) {
    if (!selectsCluster(options, io)) throw missing();
    assertNoLocalOption(options);
    const { clusterToolAudit } = await import('./cluster-audit.ts');
    return clusterToolAudit(options, io);
  }
  const { toolAudit } = await import('./local-audit.ts');
  const { readingState } = await import('../../state/state-folder.ts');
  return readingState(options.state, () => toolAudit({ ...options, filename }, io));
}

function missing(): TemperError {
  return new TemperError(
    'TEMPER_USAGE',
    'name the manifests of the agent with -f, or a cluster with --context, --kubeconfig or -n',
  );
}

/** The fresh agents of a cluster have the models of their gateway, and no files. */
function assertNoLocalOption({ filename, providers, modelScript }: AuditToolOptions): void {
  const given = Object.entries({ filename, providers, 'model-script': modelScript }).find(
    ([, value]) => value !== undefined,
  );
  if (given !== undefined) throw new TemperError('TEMPER_USAGE', `--${given[0]} is only for an audit in this process`);
}
