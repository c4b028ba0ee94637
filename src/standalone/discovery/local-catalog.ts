import type { Capability } from '../../api/v1alpha1/capability.ts';
import { capabilityEntry, type DiscoveryEntry } from '../../discovery/entry.ts';
import type { EnginePorts } from '../../engine/ports.ts';
import { skillLibrary } from '../../skills/skill-library.ts';

/** The Capabilities of a run that are no tools of MCP servers. A change makes another list. */
export type LocalCapabilities = () => readonly Capability[];

/** What an agent finds and loads of the Capabilities; nothing without them. `connections`: the names of those that a Capability may require. */
export function catalogPorts(
  capabilities: LocalCapabilities | undefined,
  connections: ReadonlySet<string>,
): Pick<EnginePorts, 'catalog' | 'hasConnection' | 'skills'> {
  if (capabilities === undefined) return {};
  const known = new WeakMap<readonly Capability[], readonly DiscoveryEntry[]>();
  return {
    skills: skillLibrary(capabilities),
    hasConnection: (name) => connections.has(name),
    catalog: () => {
      const list = capabilities();
      const entries = known.get(list) ?? list.map(capabilityEntry);
      known.set(list, entries);
      return entries;
    },
  };
}
