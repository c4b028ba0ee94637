import { CodeSessions } from '../agent/code/code-sessions.ts';
import type { CodeModeDeps } from '../agent/code/code-state.ts';
import { listTools } from '../agent/code/list-tools.ts';
import { toolRequest } from '../tools/authorize.ts';
import type { CallerContext, Tool, ToolDescriptor } from '../tools/contract.ts';
import type { DescribedTools, EngineContext } from './engine-context.ts';

/** What an agent in code mode needs; undefined for other agents. */
export function createCodeMode({ agent, ports }: EngineContext): CodeModeDeps | undefined {
  return agent.spec.invocation === 'Code' ? { sessions: new CodeSessions(ports.sandbox) } : undefined;
}

/** The tools with which the code of an agent explores its tools; none for other agents. */
export function codeModeTools({ agent, decider }: EngineContext, described: DescribedTools): Tool[] {
  if (agent.spec.invocation !== 'Code') return [];
  return listTools(listedTools({ decider }, described));
}

/** The tools that the policy lists to a caller. */
export function listedTools({ decider }: Pick<EngineContext, 'decider'>, described: DescribedTools) {
  return (caller: CallerContext): ToolDescriptor[] => {
    const policy = decider(caller);
    return described(caller)
      .list()
      .filter((tool) => policy.decide(toolRequest(tool)).effect !== 'Deny');
  };
}
