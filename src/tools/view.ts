import { TemperError } from '../lib/errors.ts';
import type { Tool, ToolDescriptor, ToolView } from './contract.ts';

/**
 * The tools that an agent sees in a session. The groups come in lookup order: built-in, session, agent, shared.
 * Names are unique: a second tool of the same name throws TEMPER_FORGE_NAME_TAKEN and never shadows the first.
 */
export function createToolView(...groups: readonly (readonly Tool[])[]): ToolView {
  const byName = new Map<string, Tool>();
  for (const tool of groups.flat()) {
    const { name } = tool.descriptor;
    if (byName.has(name)) throw new TemperError('TEMPER_FORGE_NAME_TAKEN', `two tools are named "${name}"; rename one`);
    byName.set(name, tool);
  }
  const descriptors: readonly ToolDescriptor[] = [...byName.values()].map((tool) => tool.descriptor);
  return { find: (name) => byName.get(name), list: () => descriptors };
}
