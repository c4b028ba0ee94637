import type { AgentProgram } from '../acp/process/agent-command.ts';
import type { EnginePorts } from '../engine/ports.ts';
import { systemClock } from '../lib/clock.ts';
import { ulids } from '../lib/ids.ts';

/** Loads the client of agent programs only for an agent that has one. Its processes end with the stack. */
export async function agentProvider(
  program: AgentProgram | undefined,
  opening: AsyncDisposableStack,
): Promise<Pick<EnginePorts, 'createProvider'>> {
  if (program === undefined) return {};
  const { AcpProvider } = await import('../acp/provider/acp-provider.ts');
  const createProvider: EnginePorts['createProvider'] = (model) =>
    opening.use(new AcpProvider({ program, model, clock: systemClock, ids: ulids }));
  return { createProvider };
}
