import type { AgentMeans } from './result.ts';

/** An agent with these tools, without connections, whose `fetch` reaches every host. */
export function anAgent(callable: Iterable<string> = [], changes: Partial<AgentMeans> = {}): AgentMeans {
  return { callable: new Set(callable), hasConnection: () => false, fetchProblem: () => undefined, ...changes };
}
