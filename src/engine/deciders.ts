import { createDecider } from '../policy/decider.ts';
import type { Decider } from '../policy/types.ts';
import type { EngineAgent } from './ports.ts';

/** Compiles the agent's policy for clean sessions, for tainted ones (with untrusted content), and for those with private data too. */
export function createDeciders(
  agent: EngineAgent,
  workspace: string,
): (tainted: boolean, hasPrivateData?: boolean) => Decider {
  const { name, namespace, spec, policy, level, categoryLevels = {}, generation = 0 } = agent;
  const snapshot = { agent: { name, namespace, spec }, policy, level, categoryLevels, generation, workspace };
  const clean = createDecider({ ...snapshot, tainted: false });
  const tainted = createDecider({ ...snapshot, tainted: true });
  const guarded = createDecider({ ...snapshot, tainted: true, hasPrivateData: true });
  return (isTainted, hasPrivateData = false) => {
    if (!isTainted) return clean;
    return hasPrivateData ? guarded : tainted;
  };
}
