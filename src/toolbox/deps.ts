import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Decision, PolicyRequest } from '../policy/types.ts';
import type { CallerContext } from '../tools/contract.ts';
import type { RemoteWorkspace } from '../tools/remote-workspace.ts';

export interface ToolboxDeps {
  /** Absolute folder that relative paths begin in, and the only one that is written to. */
  workspace: string;
  /** Absolute folders that may be read below, the workspace among them; the workspace alone when absent. */
  roots?: readonly string[];
  /** Absolute folders that no tool opens, wherever they lie: the state of the engine itself. */
  closed?: readonly string[];
  /** The agent's policy at this moment, asked for each file. */
  decide(caller: CallerContext, request: PolicyRequest): Decision;
  clock: Clock;
  /** Where the file tools work when the workspace is not on this machine. */
  remote?: RemoteWorkspace;
}

/** Throws TEMPER_POLICY_DENIED unless the policy allows it as it is; a tool in the middle of its work waits for nobody. */
export function assertAllowed(deps: Pick<ToolboxDeps, 'decide'>, caller: CallerContext, request: PolicyRequest): void {
  const { effect, reason, rule } = deps.decide(caller, request);
  if (effect !== 'Allow') throw new TemperError('TEMPER_POLICY_DENIED', reason, { details: { rule } });
}
