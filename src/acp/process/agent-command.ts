import type { ConfinedProgram } from '../../sandbox/confined/confined-command.ts';

/** An agent that speaks the Agent Client Protocol, from the configuration of a user. */
export interface AgentProgram extends ConfinedProgram {
  name: string;
  environment: Readonly<Record<string, string>>;
}

/** The whole environment of an agent. The variables of two providers' clients lead to Temper, without a key. */
export function agentEnvironment({ environment }: AgentProgram, home: string, origin: string): Record<string, string> {
  return {
    OPENAI_BASE_URL: `${origin}/v1`,
    OPENAI_API_KEY: 'none',
    ANTHROPIC_BASE_URL: origin,
    ANTHROPIC_API_KEY: 'none',
    ...environment,
    HOME: home,
    TMPDIR: home,
  };
}
