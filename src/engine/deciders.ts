import { createDecider } from '../policy/decider.ts';
import type { Decider } from '../policy/types.ts';
import type { EngineAgent } from './ports.ts';

/** Compiles the agent's policy twice: for tainted sessions (with untrusted content) and for clean ones. */
export function createDeciders(agent: EngineAgent, workspace: string): (tainted: boolean) => Decider {
  const { name, namespace, spec, policy, level, categoryLevels = {}, generation = 0 } = agent;
  const snapshot = { agent: { name, namespace, spec }, policy, level, categoryLevels, generation, workspace };
  const clean = createDecider({ ...snapshot, tainted: false });
  const tainted = createDecider({ ...snapshot, tainted: true });
  return (isTainted) => (isTainted ? tainted : clean);
}
