import type { PackageSource } from '../../tempering/packages/packages.ts';
import { type ClusterOptions, selectsCluster } from '../cluster/options.ts';
import type { CliIo } from '../io.ts';
import { signAttestation } from './attestation.ts';
import { openStateTool, type StateToolOptions } from './state-tool.ts';

/** A tool to export or to push, of a state folder or of a cluster. */
export interface PortableTool {
  readonly tool: PackageSource;
  /** Why no agent can call it now; undefined when one can. */
  readonly inactiveReason: string | undefined;
  /** The signed attestation: of this user, or of the operator of the cluster. */
  attestation(): Promise<string>;
}

export async function openPortableTool(options: StateToolOptions & ClusterOptions, io: CliIo): Promise<PortableTool> {
  if (selectsCluster(options, io)) {
    const { clusterPortableTool } = await import('../cluster/verbs/portable-tool.ts');
    return clusterPortableTool(options, io);
  }
  const { tool, records } = await openStateTool(options, io);
  const { active, inactiveReason = 'no reason is recorded' } = tool;
  const attestation = () => signAttestation(tool, records, io);
  return { tool, inactiveReason: active ? undefined : inactiveReason, attestation };
}
