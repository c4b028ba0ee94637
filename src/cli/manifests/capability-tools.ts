import { brokeredDescriptor } from '../../capabilities/assess-namespace.ts';
import { brokeredCapability } from '../../capabilities/capability-object.ts';
import type { LoadedManifests } from '../../api/manifests.ts';
import type { ExternalTool } from '../../engine/explain/explain-call.ts';
import { namespaceOf } from './policy-snapshot.ts';

/** The tools of the Capabilities that manifests contain in a namespace, as a gateway executes them. */
export function capabilityTools(
  objects: readonly LoadedManifests['objects'][number]['object'][],
  namespace: string,
): ExternalTool[] {
  return objects.flatMap((object): ExternalTool[] => {
    if (object.kind !== 'Capability' || namespaceOf(object) !== namespace) return [];
    const { name } = object.metadata;
    const capability = brokeredCapability({ spec: object.spec, metadata: { name, namespace, uid: name } });
    if (capability === undefined) return [];
    const { http, mcp, a2a } = capability.backend;
    const { url = '', connection } = http ?? mcp ?? a2a ?? {};
    const target = URL.parse(url);
    // A connection ties the host to the namespace; without one, the agent itself must be allowed to reach it.
    const isOwn = connection !== undefined || target === null;
    const port = Number(target?.port ?? '') || 443;
    return [
      {
        descriptor: brokeredDescriptor(capability),
        requests: isOwn ? [] : [{ kind: 'Network', host: target.hostname, port }],
      },
    ];
  });
}
