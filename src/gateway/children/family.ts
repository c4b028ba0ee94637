import type { AgentState } from '../agent-state.ts';

/** Whether the second agent started the first one. */
export function isChildOf(agent: AgentState | undefined, parent: AgentState): boolean {
  return agent?.ancestors[0]?.uid === parent.uid;
}
