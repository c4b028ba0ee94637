import { printable } from '../../lib/printable.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { AgentProgramConfig } from '../programs/agent-program.ts';
import type { OperatorConfig, SandboxClass } from '../config.ts';

type Configured = Pick<OperatorConfig, 'sandboxClasses' | 'agentPrograms'>;

/** The first class when the agent names none; undefined when the one that it names does not exist. */
export function classOf({ sandboxClasses }: Configured, { sandbox }: AgentSpec): SandboxClass | undefined {
  const wanted = sandbox?.class;
  return sandboxClasses.find(({ name }) => wanted === undefined || name === wanted);
}

/** The agent program of the agent; undefined when it names none, or one that does not exist. */
export function programOf({ agentPrograms = [] }: Configured, { model }: AgentSpec): AgentProgramConfig | undefined {
  return agentPrograms.find(({ name }) => name === model.agent);
}

/** Why the platform has no pod for the spec: it names a class or a program that is not configured. */
export function configurationProblem(config: Configured, spec: AgentSpec): string | undefined {
  if (classOf(config, spec) === undefined) {
    const offered = config.sandboxClasses.map(({ name }) => `"${name}"`).join(', ');
    return `spec.sandbox.class: sandbox class "${spec.sandbox?.class}" does not exist; use one of ${offered}`;
  }
  const { agent } = spec.model;
  if (agent === undefined || programOf(config, spec) !== undefined) return undefined;
  const offered = (config.agentPrograms ?? []).map(({ name }) => `"${name}"`).join(', ');
  const next = offered === '' ? 'this platform lists none in agentPrograms; remove the field' : `use one of ${offered}`;
  return `spec.model.agent: agent program "${printable(agent, 100)}" does not exist; ${next}`;
}
