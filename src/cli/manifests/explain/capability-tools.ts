import type { LoadedManifests } from '../../../api/manifests.ts';
import { connectedHost } from '../../../capabilities/assess.ts';
import { brokeredDescriptor } from '../../../capabilities/assess-namespace.ts';
import { type BrokeredCapability, brokeredCapability } from '../../../capabilities/capability-object.ts';
import type { Connection } from '../../../connections/connection.ts';
import type { ExternalTool } from '../../../engine/explain/types.ts';
import { namespaceOf } from '../policy-snapshot.ts';

type Objects = readonly LoadedManifests['objects'][number]['object'][];

/**
 * The tools of the Capabilities that manifests contain in a namespace, as a gateway executes them. `connections` are those of the release;
 * absent: not known.
 */
export function capabilityTools(
  objects: Objects,
  namespace: string,
  connections: readonly Connection[] | undefined,
): ExternalTool[] {
  return objects.flatMap((object): ExternalTool[] => {
    if (object.kind !== 'Capability' || namespaceOf(object) !== namespace) return [];
    const { name } = object.metadata;
    const capability = brokeredCapability({ spec: object.spec, metadata: { name, namespace, uid: name } });
    return capability === undefined ? [] : [externalTool(capability, connections)];
  });
}

function externalTool(capability: BrokeredCapability, connections: readonly Connection[] | undefined): ExternalTool {
  const { backend, namespace } = capability;
  const descriptor = brokeredDescriptor(capability);
  const { url = '', connection } = backend.http ?? backend.mcp ?? backend.a2a ?? {};
  const target = URL.parse(url);
  // Nothing leaves through a server of the platform, which has no network.
  if (target === null || backend.mcp?.server !== undefined) return { descriptor, requests: [] };
  const sending = { descriptor: { ...descriptor, hosts: [target.host] } };
  // A connection ties the host to the namespace; without one, the agent itself must be allowed to reach it.
  if (connection === undefined)
    return { ...sending, requests: [{ kind: 'Network', host: target.hostname, port: Number(target.port) || 443 }] };
  if (connections === undefined) {
    const unknown = `whether gateway.connections of the release has "${connection}" for namespace "${namespace}" is not known; --values names them`;
    return { ...sending, requests: [], unknown };
  }
  const found = connectedHost(capability, { connections });
  return { ...sending, requests: [], unavailable: 'reason' in found ? found.message : undefined };
}
