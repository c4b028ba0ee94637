import type { CapabilityStatus } from '../../api/v1alpha1/capability.ts';
import {
  type CapabilityContext,
  type ConnectionTarget,
  missingRequirement,
  type Unavailable,
  type UnavailableReason,
} from '../../capabilities/assess.ts';
import { assessNamespace, type NamespaceContext, toolsOf } from '../../capabilities/assess-namespace.ts';
import { type ConditionUpdate, PROGRESS_CONDITIONS, updateConditions } from '../conditions.ts';
import type { CapabilityTool, StoredCapability } from './stored-capability.ts';

/** The type of the condition that says whether agents can use the capability. */
export const AVAILABLE = 'Available';

/** What decides besides the Capabilities of the namespace. */
export type PlanContext = Pick<
  NamespaceContext<CapabilityTool, ConnectionTarget>,
  'connections' | 'mcpServers' | 'hasEgress' | 'reserved' | 'hasOtherTool'
>;

export interface CapabilityFinding {
  readonly capability: StoredCapability;
  readonly available: ConditionUpdate<typeof AVAILABLE>;
}

/** Reasons that something outside of the namespace ends, or another object that may follow. kstatus reads them as in progress. */
const WAITING_REASONS: ReadonlySet<UnavailableReason> = new Set([
  'EgressDisabled',
  'ConnectionMissing',
  'McpServerMissing',
  'ToolMissing',
]);

/** Whether agents can use the Capabilities of one namespace, as far as the facts of the cluster say. Pure. */
export function planNamespace(capabilities: readonly StoredCapability[], context: PlanContext): CapabilityFinding[] {
  const withTool = capabilities.flatMap(({ tool }) => tool ?? []);
  const assessed = assessNamespace(withTool, {
    ...context,
    schemaProblem: ({ schemaProblem }) => schemaProblem,
    characters: ({ characters }) => characters,
  });
  const problems = new Map(assessed.map(({ capability, unavailable }) => [capability.uid, unavailable]));
  const entries = { connections: context.connections, hasTool: toolsOf(withTool, context) };
  return capabilities.map((capability) => ({ capability, available: availableOf(capability, problems, entries) }));
}

function availableOf(
  { metadata, requires, hasBackend, catalogueOnly, tool }: StoredCapability,
  problems: ReadonlyMap<string, Unavailable | undefined>,
  entries: Pick<CapabilityContext<ConnectionTarget>, 'connections' | 'hasTool'>,
): CapabilityFinding['available'] {
  const problem =
    tool === undefined
      ? hasBackend
        ? NOT_EXECUTED
        : missingRequirement(requires, metadata.namespace, entries)
      : problems.get(tool.uid);
  if (problem !== undefined) return { type: AVAILABLE, status: 'False', ...problem };
  if (tool !== undefined)
    return { type: AVAILABLE, status: 'True', reason: 'Callable', message: 'gateways execute calls of the tool' };
  if (catalogueOnly === undefined)
    return { type: AVAILABLE, status: 'True', reason: 'Loadable', message: 'agents find the skill, and load its text' };
  const message = `agents find it, and cannot use it: ${catalogueOnly}`;
  return { type: AVAILABLE, status: 'False', reason: CATALOGUE_ONLY, message };
}

/** An entry that is complete as it is, and that agents can neither call nor load. */
const CATALOGUE_ONLY = 'CatalogueOnly';

/** Also an object that an older schema accepted. */
const NOT_EXECUTED = { reason: 'BackendNotExecuted', message: 'gateways do not execute this kind of spec.backend' };

/** Computes the status of a Capability. Pure. */
export function capabilityStatus({ capability, available }: CapabilityFinding, now: Date): CapabilityStatus {
  const { metadata, status, fieldsInForce } = capability;
  return {
    observedGeneration: metadata.generation,
    available: available.status === 'True',
    conditions: updateConditions(
      status?.conditions,
      [...PROGRESS_CONDITIONS, 'FieldsInForce'],
      [available, ...progressOf(available), ...(fieldsInForce === undefined ? [] : [fieldsInForce])],
      metadata.generation,
      now,
    ),
  };
}

/** kstatus does not know the condition Available. */
function progressOf({ status, reason, message }: CapabilityFinding['available']): ConditionUpdate[] {
  if (status !== 'False' || reason === CATALOGUE_ONLY) return [];
  const isWaiting = (WAITING_REASONS as ReadonlySet<string>).has(reason);
  return [{ type: isWaiting ? 'Reconciling' : 'Stalled', status: 'True', reason, message }];
}
