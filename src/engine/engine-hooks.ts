import { type AgentHooks, createAgentHooks } from '../agent/hooks/agent-hooks.ts';
import type { AgentProvider } from '../agent/provider/port.ts';
import { type RequiredValue, requiredValue } from '../agent/returns/finish.ts';
import { TemperError } from '../lib/errors.ts';
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

/** The program that works on the messages of an agent with `spec.model.agent`. Throws TEMPER_ACP_AGENT_NOT_FOUND where none can run. */
export function engineProvider({ agent, ports, model }: EngineContext): { provider?: AgentProvider } {
  const name = agent.spec.model.agent;
  if (name === undefined) return {};
  if (ports.createProvider !== undefined) return { provider: ports.createProvider(model) };
  const message = `spec.model.agent: no agent program "${name}" can run here; remove the field`;
  throw new TemperError('TEMPER_ACP_AGENT_NOT_FOUND', message);
}

/** The value that the agent returns; undefined for an agent without `spec.returns`. Throws TEMPER_MANIFEST_INVALID. */
export function engineReturns({ agent, schemas }: EngineContext): RequiredValue | undefined {
  const { returns } = agent.spec;
  return returns === undefined ? undefined : requiredValue(returns, schemas);
}
