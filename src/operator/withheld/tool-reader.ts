import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import type { KubeReader } from '../../kube/client/kube-client.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import { artifactWithSource, type WithheldSourceReader } from '../../tempering/withheld/artifact-with-source.ts';
import { TYPES } from '../kube/types.ts';

/**
 * Reads EmergentTools with the sources that their agents withhold. An object whose source is lost stays without one, so it differs from its
 * digest. Throws as the client does, and TEMPER_BUS_* and TEMPER_SOURCE_UNAVAILABLE for an object with a withheld source.
 */
export function readerWithSources(
  client: Pick<KubeReader, 'get'>,
  sources: WithheldSourceReader | undefined,
): Pick<KubeReader, 'get'> {
  return {
    async get<T extends KubeObject>(...[type, ref, signal]: Parameters<KubeReader['get']>): Promise<T | undefined> {
      const object = await client.get<T>(type, ref, signal);
      if (object === undefined || type !== TYPES.emergentTools || sources === undefined) return object;
      const tool = object as unknown as EmergentTool;
      const artifact = await artifactWithSource(tool, sources);
      return artifact === undefined ? object : ({ ...tool, spec: { ...tool.spec, artifact } } as unknown as T);
    },
  };
}
