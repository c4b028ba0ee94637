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
  const { ProgramProviders } = await import('../acp/provider/program-providers.ts');
  const { localPrograms } = await import('../acp/process/agent-process.ts');
  const host = localPrograms(program);
  const providers = opening.use(new ProgramProviders({ host, clock: systemClock, ids: ulids }));
  return { createProvider: (model) => providers.create(model) };
}
