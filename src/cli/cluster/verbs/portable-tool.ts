import { resourceType } from '../../../kube/client/resource-path.ts';
import { attestationName } from '../../../api/cluster.ts';
import type { EmergentTool } from '../../../api/v1alpha1/emergenttool.ts';
import type { KubeObject } from '../../../kube/informer/store.ts';
import type { Digest } from '../../../lib/canonical.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { PackageSource } from '../../../tempering/packages/packages.ts';
import type { CliIo } from '../../io.ts';
import type { PortableTool } from '../../tools/portable-tool.ts';
import { type Cluster, openCluster, toTemperError } from '../cluster.ts';
import type { ClusterOptions } from '../options.ts';
import { clusterTools, selectTool } from './tool-export.ts';

type ToolObject = EmergentTool & KubeObject;

const CONFIG_MAPS = resourceType('v1', 'configmaps', 'ConfigMap');
const MEMBER = 'attestation.json';

/** A tool of the cluster and the attestation of the operator. Reads everything at once, so that no connection stays open. */
export async function clusterPortableTool(
  options: ClusterOptions & { readonly tool: string },
  io: CliIo,
): Promise<PortableTool> {
  await using cluster = await openCluster(options, io);
  const tools = await clusterTools(cluster, io);
  const { spec } = selectTool(tools, options.tool, cluster);
  const twins = tools.filter((other) => other.spec.digest === spec.digest);
  const tool = twins.find((other) => other.spec.tier === 'Shared') ?? twins[0];
  if (tool === undefined)
    throw new TemperError('TEMPER_NOT_FOUND', 'the tool was deleted meanwhile; list the tools again');
  const envelope = tool.spec.tier === 'Shared' ? await readAttestation(cluster, tool, io) : undefined;
  return {
    tool: exportable(tool),
    inactiveReason: tool.status?.active === true ? undefined : reasonOf(tool),
    async attestation() {
      if (envelope !== undefined) return envelope;
      throw new TemperError(
        'TEMPER_NOT_FOUND',
        `${tool.spec.artifact.name} has no attestation in ${cluster.location}; the operator attests tools in service at tier Shared, within two minutes. Leave --attestation out, or push with --no-attestation`,
      );
    },
  };
}

async function readAttestation(cluster: Cluster, { metadata }: ToolObject, io: CliIo): Promise<string | undefined> {
  const { kube, namespace } = cluster;
  const name = attestationName({ name: metadata.name, uid: metadata.uid ?? '' });
  const found = await kube
    .get<KubeObject & { data?: Record<string, string> }>(CONFIG_MAPS, { namespace, name }, io.signal)
    .catch((error: unknown) => {
      throw toTemperError(error, `reading the ConfigMap ${name}`, cluster);
    });
  return found?.data?.[MEMBER];
}

function exportable({ metadata, spec }: ToolObject): PackageSource {
  const { artifact, digest, tier, contributors = [] } = spec;
  const agent = contributors.find((name) => name.startsWith('agent/'))?.slice('agent/'.length) ?? '';
  const { creationTimestamp = '' } = metadata as { creationTimestamp?: string };
  return {
    object: metadata.name,
    artifact,
    digest: digest as Digest,
    tier,
    owner: { agent },
    verdicts: [],
    acceptedAt: creationTimestamp,
    sourceWithheld: artifact.implementation.mode === 'Sandbox' && artifact.implementation.source === undefined,
  };
}

function reasonOf({ status }: ToolObject): string {
  const message = status?.conditions?.find(({ type }) => type === 'Active')?.message;
  return message === undefined || message === '' ? 'the operator has not decided yet' : message;
}
