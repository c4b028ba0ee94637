import type { Capability, CapabilityStatus } from '../../api/v1alpha1/capability.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { ReconcileContext } from '../../kube/controller/controller.ts';
import type { ReconcileResult } from '../../kube/controller/result.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import { keyOf } from '../../kube/informer/store.ts';
import type { Clock } from '../../lib/clock.ts';
import { builtInNames, ownToolNames } from '../../engine/built-in.ts';
import type { OperatorConfig } from '../config.ts';
import { reasonOf, sameConditions } from '../conditions.ts';
import type { Cache } from '../kube/cache.ts';
import { StatusWriter } from '../kube/status-writer.ts';
import { type Stored, TYPES } from '../kube/types.ts';
import { isInService } from '../tool/observe.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { inNamespace, TOOL_INDEX } from '../tool/tool-index.ts';
import { AVAILABLE, type CapabilityFinding, capabilityStatus, type PlanContext, planNamespace } from './plan.ts';
import { pruneCapability, type StoredCapability } from './stored-capability.ts';

/** The index of Capabilities by namespace. */
export const BY_NAMESPACE = 'namespace';

export interface CapabilityDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly config: Pick<OperatorConfig, 'connections' | 'mcpServers' | 'egress' | 'serviceTools'>;
  readonly capabilities: Cache<StoredCapability>;
  readonly tools: Cache<StoredTool>;
  readonly events: EventRecorder;
}

/**
 * The only writer of Capability status. It assesses a namespace at once, because its Capabilities compete for names and limits, and writes
 * those whose status differs.
 */
export class CapabilityReconciler {
  readonly #deps: CapabilityDeps;
  readonly #statuses: StatusWriter<StoredCapability>;
  readonly #reserved = builtInNames();
  readonly #ownTools = ownToolNames();

  constructor(deps: CapabilityDeps) {
    this.#deps = deps;
    this.#statuses = new StatusWriter<StoredCapability>(deps, {
      type: TYPES.capabilities,
      awaited: AVAILABLE,
      differs,
      patch: (_before, after) => after,
      // The API server answers with the whole object.
      prune: (stored) => pruneCapability(stored as unknown as Stored<Capability>),
    });
  }

  /** Throws the first error of a write, after it tried the others: one object that changes all the time holds up no other. */
  async reconcile(namespace: string, { signal }: ReconcileContext): Promise<ReconcileResult> {
    const cached = this.#deps.capabilities
      .byIndex(BY_NAMESPACE, namespace)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const byKey = new Map(cached.map((capability) => [keyOf(capability), capability]));
    const findings = planNamespace(
      cached.map((capability) => this.#statuses.latest(capability)),
      this.#context(namespace),
    );
    const failed: unknown[] = [];
    for (const finding of findings) {
      const before = byKey.get(keyOf(finding.capability)) ?? finding.capability;
      await this.#write(before, finding, signal).catch((error: unknown) => failed.push(error));
      signal.throwIfAborted();
    }
    if (failed.length > 0) throw failed[0];
    return { kind: 'done' };
  }

  isExternalStatus(capability: StoredCapability): boolean {
    return this.#statuses.isExternalWrite(capability);
  }

  /** Drops the in-memory state of a deleted Capability. */
  forget(capability: StoredCapability): void {
    this.#statuses.forget(capability);
  }

  #context(namespace: string): PlanContext {
    const { config, tools } = this.#deps;
    return {
      connections: config.connections ?? [],
      mcpServers: config.mcpServers ?? [],
      hasEgress: config.egress !== undefined,
      reserved: this.#reserved,
      hasOtherTool: (name) =>
        this.#ownTools.has(name) || isServiceTool(config, namespace, name) || isSharedTool(tools, namespace, name),
    };
  }

  /** An Event for each fault, and for its end. A new Capability that can be used has none, because a catalogue may have thousands. */
  async #write(cached: StoredCapability, finding: CapabilityFinding, signal: AbortSignal): Promise<void> {
    const { capability } = finding;
    const status = capabilityStatus(finding, this.#deps.clock.now());
    const events = await this.#statuses.write(cached, capability, status, signal);
    const before = reasonOf(capability.status?.conditions, AVAILABLE) ?? PENDING;
    const reported = (events ?? []).filter(({ type }) => before !== PENDING || type === 'Warning');
    this.#statuses.recordEvents(capability, reported);
  }
}

function isServiceTool({ serviceTools = [] }: CapabilityDeps['config'], namespace: string, name: string): boolean {
  return serviceTools.some((tool) => tool.name === name && tool.namespaces?.includes(namespace) !== false);
}

function isSharedTool(tools: Cache<StoredTool>, namespace: string, name: string): boolean {
  const named = tools.byIndex(TOOL_INDEX.name, inNamespace(namespace, name));
  return named.some((tool) => tool.facts.tier === 'Shared' && isInService(tool));
}

/** The reason of the default of the CRD. */
const PENDING = 'Pending';

function differs({ status }: StoredCapability, after: CapabilityStatus): boolean {
  if (status?.observedGeneration !== after.observedGeneration || status?.available !== after.available) return true;
  return !sameConditions(status?.conditions, after.conditions ?? []);
}
