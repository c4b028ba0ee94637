import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Decision, PolicyRequest } from '../policy/types.ts';
import type { CallerContext } from '../tools/contract.ts';
import type { RemoteWorkspace } from '../tools/host/remote-workspace.ts';
import type { WebDeps } from './web/deps.ts';

export interface ToolboxDeps extends Pick<WebDeps, 'web'> {
  /** Absolute path of the folder that relative paths start from, and the only one that tools write to. */
  workspace: string;
  /** Absolute paths of the folders below which tools may read, including the workspace; only the workspace when absent. */
  roots?: readonly string[];
  /** Absolute paths of the folders that no tool may open: the state of the engine itself. */
  protectedFolders?: readonly string[];
  /** Asks the current policy of the agent, for each file. */
  decide(caller: CallerContext, request: PolicyRequest): Decision;
  clock: Clock;
  /** Runs the file tools when the workspace is on another machine. */
  remote?: RemoteWorkspace;
}

/** Throws TEMPER_POLICY_DENIED unless the policy allows the request. An escalation is a denial, because a running tool cannot wait for an approver. */
export function assertAllowed(deps: Pick<ToolboxDeps, 'decide'>, caller: CallerContext, request: PolicyRequest): void {
  const { effect, reason, rule } = deps.decide(caller, request);
  if (effect !== 'Allow') throw new TemperError('TEMPER_POLICY_DENIED', reason, { details: { rule } });
}
