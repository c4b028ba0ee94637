import type { Capability } from '../../api/v1alpha1/capability.ts';
import { brokeredDescriptor } from '../../capabilities/assess-namespace.ts';
import { type BrokeredCapability, brokeredCapability } from '../../capabilities/capability-object.ts';
import { capabilitySchemaProblem } from '../../discovery/capability-descriptor.ts';
import { catalogueOnly } from '../../discovery/requirements.ts';
import { type ConditionUpdate } from '../conditions.ts';
import type { Stored } from '../kube/types.ts';
import { fieldsInForceCondition } from '../spec-conditions.ts';

/** What the operator keeps of the tool of a Capability: not its schemas, which may have 64 KiB. */
export interface CapabilityTool extends BrokeredCapability {
  readonly schemaProblem: string | undefined;
  /** Of its definition in the assignment of each agent. */
  readonly characters: number;
}

/** What the operator keeps of a Capability: not the text of a skill, which may have 576 KiB. */
export type StoredCapability = Stored<Omit<Capability, 'spec'>> & {
  readonly requires: Pick<Capability['spec'], 'requiredSecrets' | 'requiredTools'>;
  readonly hasBackend: boolean;
  /** Why no agent can call or load it, whatever there is. */
  readonly catalogueOnly: string | undefined;
  /** Absent without a backend that gateways execute. */
  readonly tool: CapabilityTool | undefined;
  readonly fieldsInForce: ConditionUpdate<'FieldsInForce'> | undefined;
};

/** Transform of the reflector: an object that an older CRD accepted must not stop the informer. */
export function pruneCapability(object: Stored<Capability>): StoredCapability {
  const { apiVersion, kind, metadata, spec, status } = object;
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp } = metadata;
  const kept = { name, namespace, uid, resourceVersion, generation, creationTimestamp };
  const { requiredSecrets = [], requiredTools = [], backend } = spec;
  return {
    apiVersion,
    kind,
    metadata: deletionTimestamp === undefined ? kept : { ...kept, deletionTimestamp },
    requires: { requiredSecrets, requiredTools },
    hasBackend: backend !== undefined,
    catalogueOnly: catalogueOnly(spec),
    tool: toolOf(object),
    fieldsInForce: fieldsInForceCondition('Capability', spec),
    ...(status === undefined ? {} : { status }),
  };
}

function toolOf(object: Stored<Capability>): CapabilityTool | undefined {
  try {
    const brokered = brokeredCapability(object);
    if (brokered === undefined) return undefined;
    const { type, requiredSecrets = [], requiredTools = [] } = brokered.spec;
    return {
      ...brokered,
      spec: { type, description: '', requiredSecrets, requiredTools },
      tool: { ...brokered.tool, inputSchema: {}, outputSchema: {} },
      schemaProblem: capabilitySchemaProblem(brokered.tool),
      characters: JSON.stringify(brokeredDescriptor(brokered)).length,
    };
  } catch {
    return undefined;
  }
}
