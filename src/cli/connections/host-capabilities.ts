import type { Capability } from '../../api/v1alpha1/capability.ts';
import type { Unavailable } from '../../capabilities/assess.ts';
import { assessNamespace, type AssessedCapability, brokeredDescriptor } from '../../capabilities/assess-namespace.ts';
import { type BrokeredCapability, brokeredCapability } from '../../capabilities/capability-object.ts';
import { capabilitySchemaProblem } from '../../discovery/capability-descriptor.ts';
import { builtInNames, ownToolNames } from '../../engine/built-in.ts';
import { printable } from '../../lib/printable.ts';
import type { HostTools } from '../../standalone/team/host-tools.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { hostTool, type UsableTarget } from './host-tool.ts';
import type { TokenOf } from './reach-host.ts';
import type { UserConnection } from './read-connections.ts';
import { withoutRepositories } from './user-connections.ts';

type Usable = Extract<AssessedCapability<BrokeredCapability, UsableTarget>, { usable: object }>;

/** What a run has besides. */
export interface RunTools {
  connections: readonly UserConnection[];
  /** Names of the tools of services and of MCP servers. */
  others: ReadonlySet<string>;
  token: TokenOf;
}

/** Whether a run executes the tool itself, at the host of its backend. */
export function hasHost({ spec: { backend } }: Capability): boolean {
  return backend?.http !== undefined || backend?.a2a !== undefined;
}

/** The tools of Capabilities with `backend.http` or `backend.a2a`, and why the other ones cannot be used in this run. */
export function hostCapabilities(
  capabilities: readonly Capability[],
  { connections, others, token }: RunTools,
): { tools: HostTools; descriptors: ToolDescriptor[]; problems: string[] } {
  const ownTools = ownToolNames();
  const namespaces = [...new Set(capabilities.map(({ metadata }) => metadata.namespace ?? 'default'))];
  const assessed = assessNamespace(capabilities.flatMap(withBackend), {
    connections: withoutRepositories(connections).map(
      (own): UsableTarget => ({ name: own.name, hosts: own.hosts, namespaces, own }),
    ),
    mcpServers: [],
    hasEgress: true,
    reserved: new Set([...builtInNames(), ...others]),
    hasOtherTool: (name) => ownTools.has(name) || others.has(name),
    schemaProblem: ({ tool }) => capabilitySchemaProblem(tool),
    characters: (capability) => JSON.stringify(brokeredDescriptor(capability)).length,
  });
  const repositories = new Set(connections.flatMap(({ name, git }) => (git === undefined ? [] : [name])));
  const usable = assessed.filter((one): one is Usable => one.usable !== undefined);
  return {
    tools: (deps) => usable.map((one) => hostTool(one, token, deps)),
    descriptors: usable.map(({ capability }) => brokeredDescriptor(capability)),
    problems: assessed.flatMap(({ capability, unavailable }) =>
      unavailable === undefined
        ? []
        : [
            `Capability/${printable(capability.name, 80)} cannot be used: ${problemOf(unavailable, capability, repositories)}`,
          ],
    ),
  };
}

/** A manifest has no UID and no age: names decide between two Capabilities with one name of a tool. */
function withBackend(capability: Capability): BrokeredCapability[] {
  const { metadata } = capability;
  if (!hasHost(capability)) return [];
  const named = { ...metadata, namespace: metadata.namespace ?? 'default', uid: metadata.name };
  const brokered = brokeredCapability({ ...capability, metadata: named });
  return brokered === undefined ? [] : [brokered];
}

/** The next step is one of the user and not of a platform team. */
function problemOf(
  { reason, message }: Unavailable,
  capability: BrokeredCapability,
  repositories: ReadonlySet<string>,
): string {
  const ofRepository = namedConnections(capability).find((name) => repositories.has(name));
  if (reason === 'ConnectionMissing' && ofRepository !== undefined)
    return `connection "${printable(ofRepository, 80)}" has git in connections.yaml, so its credential is for that repository; name a connection without git`;
  if (reason === 'ConnectionMissing')
    return 'connections.yaml of your configuration folder has not the connection that it names';
  if (reason === 'HostNotPermitted')
    return 'its connection does not name the host and port of its url in connections.yaml';
  return message;
}

function namedConnections({ spec: { requiredSecrets = [] }, backend: { http, a2a } }: BrokeredCapability): string[] {
  const connection = http?.connection ?? a2a?.connection;
  return [...requiredSecrets, ...(connection === undefined ? [] : [connection])];
}
