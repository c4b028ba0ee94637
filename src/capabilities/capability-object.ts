import type { Capability, CapabilitySpec } from '../api/v1alpha1/capability.ts';

/** The cached members of a Capability whose tool the gateway executes. */
export interface BrokeredCapability {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly spec: CapabilitySpec;
  readonly tool: NonNullable<CapabilitySpec['tool']>;
  readonly backend: NonNullable<CapabilitySpec['backend']>;
}

type ReadMetadata = Pick<Capability['metadata'], 'name' | 'namespace' | 'uid' | 'generation' | 'creationTimestamp'>;
type ReadCapability = Pick<Capability, 'spec'> & { readonly metadata: ReadMetadata };

/** Undefined for a catalogue entry, and for an object that an older schema accepted. */
export function brokeredCapability({ metadata, spec }: ReadCapability): BrokeredCapability | undefined {
  const { namespace, name, uid, generation = 0, creationTimestamp = '' } = metadata;
  const { tool, backend } = spec;
  if (namespace === undefined || uid === undefined || tool === undefined || backend === undefined) return undefined;
  if ([backend.http, backend.mcp, backend.a2a].filter((given) => given !== undefined).length !== 1) return undefined;
  return { namespace, name, uid, generation, createdAt: creationTimestamp, spec, tool, backend };
}
