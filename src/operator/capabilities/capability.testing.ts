import type { Capability } from '../../api/v1alpha1/capability.ts';
import type { Stored } from '../kube/types.ts';

const HTTP = { url: 'https://api.example.com/find' };

/** Changes of a Capability of a test. `second` is its age. */
export interface CapabilityChanges {
  readonly spec?: object;
  readonly tool?: object;
  readonly second?: number;
  readonly version?: number;
  readonly status?: object;
}

/** A Capability of the namespace `team-a` with an HTTP backend. */
export function aCapability(name: string, changes: CapabilityChanges = {}): Stored<Capability> {
  const { spec = {}, tool = {}, second = 0, version = 1, status } = changes;
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'Capability',
    metadata: {
      name,
      namespace: 'team-a',
      uid: `uid-${name}`,
      resourceVersion: `${version}`,
      generation: 1,
      creationTimestamp: new Date(Date.UTC(2031, 0, 1, 0, 0, second)).toISOString(),
    },
    spec: {
      type: 'Tool',
      description: 'Finds.',
      tool: { name: name.replaceAll('-', '_'), category: 'web', inputSchema: { type: 'object' }, ...tool },
      backend: { http: HTTP },
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  } as Stored<Capability>;
}
