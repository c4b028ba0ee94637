import { type AgentHooks, createAgentHooks } from '../agent/hooks/agent-hooks.ts';
import type { Invoker, ToolView } from '../tools/contract.ts';
import type { SessionScope } from '../tools/session-path.ts';
import type { EngineContext } from './engine-context.ts';

/** The hooks of the agent; undefined for an agent without hooks. Their tools are called like those of the agent itself. */
export function createEngineHooks(
  { agent, ports, events }: EngineContext,
  tools: { view(caller: SessionScope): ToolView; invoke: Invoker['invoke'] },
): AgentHooks | undefined {
  const { hooks = [] } = agent.spec;
  if (hooks.length === 0) return undefined;
  return createAgentHooks({
    hooks,
    clock: ports.clock,
    events,
    invoke: tools.invoke,
    describe: (name, caller) => tools.view(caller).find(name.split('@', 1)[0] ?? name)?.descriptor,
  });
}
