import type { Connection } from '../../connections/connection.ts';
import { capabilitySchemaProblem } from '../../discovery/capability-descriptor.ts';
import { builtInNames, ownToolNames } from '../../engine/built-in.ts';
import { type Digest, digestOf } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import type { BrokeredTool, BrokeredTools } from '../brokered/port.ts';
import type { CatalogObject } from '../discovery/catalog-entries.ts';
import type { Change } from '../../kube/informer/store.ts';
import type { McpServerTarget, Unavailable, UnavailableReason, UsableCapability } from '../../capabilities/assess.ts';
import { assessNamespace, type AssessedCapability, brokeredDescriptor } from '../../capabilities/assess-namespace.ts';
import type { BrokeredCapability } from '../../capabilities/capability-object.ts';

export interface CapabilityToolsOptions {
  /** The gateway reaches hosts through the egress proxy only. */
  readonly hasEgress: boolean;
  readonly connections: readonly Connection[];
  readonly mcpServers: readonly McpServerTarget[];
  /** Tools of services of the platform for the namespace, and those that agents forged and that are in service for all of them. */
  readonly hasOtherTool: (namespace: string, name: string) => boolean;
  /** Executes the tool of a capability. */
  readonly create: (
    capability: BrokeredCapability,
    usable: UsableCapability,
  ) => Pick<BrokeredTool, 'requests' | 'execute'>;
  /** Called for a capability that cannot be executed, once for each version and reason. */
  readonly onUnavailable: (capability: BrokeredCapability, unavailable: Unavailable) => void;
  /** Called after a change of the tools of a namespace. */
  readonly onChange: (namespace: string) => void;
}

const RESERVED = builtInNames();
const OWN_TOOLS = ownToolNames();

interface NamespaceTools {
  assessed: readonly AssessedCapability[];
  tools: ReadonlyMap<string, BrokeredTool>;
}

/** The tools of the Capability objects that the gateway executes. Its owner reports each change of an object. */
export class CapabilityTools implements BrokeredTools {
  readonly #options: CapabilityToolsOptions;
  readonly #objects = new Map<string, Map<string, BrokeredCapability>>();
  readonly #problems = new WeakMap<BrokeredCapability, { problem: string | undefined }>();
  readonly #reported = new WeakMap<BrokeredCapability, UnavailableReason>();
  readonly #namespaces = new Map<string, NamespaceTools>();

  constructor(options: CapabilityToolsOptions) {
    this.#options = options;
  }

  capabilityChanged({ type, key, object }: Change<CatalogObject>): void {
    const namespace = object.metadata.namespace ?? '';
    const objects = this.#objects.get(namespace) ?? new Map<string, BrokeredCapability>();
    const before = objects.get(key);
    const { brokered } = object;
    if (type === 'deleted' || brokered === undefined) objects.delete(key);
    else objects.set(key, brokered);
    if (objects.size > 0) this.#objects.set(namespace, objects);
    const isSame = type !== 'deleted' && before?.uid === brokered?.uid && before?.generation === brokered?.generation;
    if (!isSame) this.refresh(namespace);
    if (objects.size === 0) this.#objects.delete(namespace);
  }

  /** Assesses the objects of a namespace again, because something that they depend on changed. */
  refresh(namespace: string): void {
    if (!this.#objects.has(namespace)) return;
    this.#namespaces.delete(namespace);
    this.#options.onChange(namespace);
  }

  list(namespace: string): readonly BrokeredTool[] {
    return [...this.#toolsOf(namespace).tools.values()];
  }

  find(namespace: string, name: string): BrokeredTool | undefined {
    return this.#toolsOf(namespace).tools.get(name);
  }

  /** All capabilities of the namespace with a backend. */
  assessed(namespace: string): readonly AssessedCapability[] {
    return this.#toolsOf(namespace).assessed;
  }

  #toolsOf(namespace: string): NamespaceTools {
    const known = this.#namespaces.get(namespace);
    if (known !== undefined) return known;
    const created = this.#assess(namespace);
    for (const { capability, unavailable } of created.assessed) this.#report(capability, unavailable);
    this.#namespaces.set(namespace, created);
    return created;
  }

  #report(capability: BrokeredCapability, unavailable: Unavailable | undefined): void {
    if (unavailable === undefined) this.#reported.delete(capability);
    else if (this.#reported.get(capability) !== unavailable.reason) {
      this.#reported.set(capability, unavailable.reason);
      this.#options.onUnavailable(capability, unavailable);
    }
  }

  #assess(namespace: string): NamespaceTools {
    const { connections, mcpServers, hasEgress, hasOtherTool } = this.#options;
    const assessed = assessNamespace(this.#objects.get(namespace)?.values() ?? [], {
      connections,
      mcpServers,
      hasEgress,
      reserved: RESERVED,
      hasOtherTool: (name) => OWN_TOOLS.has(name) || hasOtherTool(namespace, name),
      schemaProblem: (one) => this.#schemaProblem(one),
      characters: (one) => JSON.stringify(brokeredDescriptor(one)).length,
    });
    const tools = assessed.flatMap(({ capability, usable }) =>
      usable === undefined ? [] : this.#toolOf(capability, usable),
    );
    return { assessed, tools: new Map(tools.map((tool) => [tool.descriptor.name, tool])) };
  }

  /** A schema is compiled once for each version of its object. */
  #schemaProblem(capability: BrokeredCapability): string | undefined {
    const known = this.#problems.get(capability) ?? { problem: capabilitySchemaProblem(capability.tool) };
    this.#problems.set(capability, known);
    return known.problem;
  }

  #toolOf(capability: BrokeredCapability, usable: UsableCapability): BrokeredTool {
    // Nothing leaves through a server of the platform, which has no network.
    const hosts = usable.server === undefined ? { hosts: [usable.url.host] } : {};
    const descriptor = { ...brokeredDescriptor(capability), ...hosts };
    return { descriptor, definition: definitionOf(capability), ...this.#options.create(capability, usable) };
  }
}

/** Of everything that decides what a call does. */
function definitionOf({ name, uid, spec }: BrokeredCapability): Digest {
  return digestOf({ name, uid, spec } as unknown as Json);
}
