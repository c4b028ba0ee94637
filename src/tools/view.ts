import { TemperError } from '../lib/errors.ts';
import type { Tool, ToolDescriptor, ToolView } from './contract.ts';

/**
 * The tools one agent sees in one session. Groups are given in lookup order: built-in, session, agent, shared.
 * A name stands once: a second tool of the same name is an error, never a shadow (TEMPER_FORGE_NAME_TAKEN).
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
