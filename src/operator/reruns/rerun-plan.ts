import type { ToolVerification } from '../../api/v1alpha1/emergenttool.ts';
import { sha256 } from '../../lib/canonical.ts';
import { printable } from '../../lib/printable.ts';
import type { Activity } from '../tool/plan.ts';
import type { StoredTool } from '../tool/stored-tool.ts';

/** A run of the tests of an EmergentTool in a verifier pod. */
export interface RerunOrder {
  /**
   * `Approval`: the first run of a Shared tool on this cluster. `Schedule`: `reverifyEvery` has passed. `Outcomes`: several agents lost a
   * Shared tool by what their tasks and calls showed. `Reactivation`: a user wants a tool that an agent lost verified again.
   */
  readonly cause: 'Approval' | 'Schedule' | 'Outcomes' | 'Reactivation';
  /** The same until the run has a result, so that the next leader finds the pod of this run. */
  readonly attempt: string;
}

/** Whether a failed run ends the service of the tool for all: what was in service was observed to fail. */
export function endsService({ facts: { tier } }: StoredTool, { cause }: RerunOrder): boolean {
  return cause !== 'Approval' && (cause !== 'Reactivation' || tier === 'Shared');
}

/** Whether recorded inputs run too. In service only the tests decide: what one agent reports does not end the use of all others. */
export function runsInputs({ facts: { tier } }: StoredTool, { cause }: RerunOrder): boolean {
  return cause === 'Approval' || (cause === 'Reactivation' && tier === 'Agent');
}

/** How far a run has come. */
export type RerunProgress =
  | { readonly kind: 'none' }
  | { readonly kind: 'waiting'; readonly message: string; readonly retryMs: number }
  | { readonly kind: 'ended'; readonly verification: ToolVerification; readonly problem: string | undefined };

/** A pod label and a member of the work of the pod. */
const ATTEMPT_CHARACTERS = 32;

/** When a run of the tests is needed besides the first one. */
export interface RerunTimes {
  readonly reverifyEveryMs: number | undefined;
  /** One time per agent that lost the tool by its tasks or calls. */
  readonly losses: readonly string[];
  /** Of users who want the tool verified again for an agent. */
  readonly requests: readonly string[];
}

/** What one agent reports is its own matter; of several agents, something may be wrong with the tool. */
const MIN_LOSSES = 2;

/** The run that the tool needs now. Pure. */
export function neededRerun(
  tool: StoredTool,
  planned: Activity,
  times: RerunTimes & { now: Date },
): RerunOrder | undefined {
  const cause = causeOf(tool, planned, times);
  return cause === undefined ? undefined : { cause, attempt: attemptOf(tool) };
}

function causeOf(
  tool: StoredTool,
  planned: Activity,
  times: RerunTimes & { now: Date },
): RerunOrder['cause'] | undefined {
  if (planned.reason === 'Deactivated') return countSince(tool, times.requests) > 0 ? 'Reactivation' : undefined;
  const known = currentVerification(tool);
  if (planned.status !== 'True' || known?.result === 'Failed') return undefined;
  if (tool.facts.tier === 'Shared') {
    if (known === undefined) return 'Approval';
    if (countSince(tool, times.requests) > 0) return 'Reactivation';
    if (countSince(tool, times.losses) >= MIN_LOSSES) return 'Outcomes';
  }
  const dueAt = dueTime(tool, times.reverifyEveryMs);
  return dueAt !== undefined && dueAt <= times.now.getTime() ? 'Schedule' : undefined;
}

/** Since its tests last ran. */
function countSince(tool: StoredTool, times: readonly string[]): number {
  const ranAt = Date.parse(lastVerified(tool));
  return times.filter((time) => Date.parse(time) > ranAt).length;
}

/** When the next scheduled run of a tool in service is due, in epoch milliseconds. */
export function dueTime(tool: StoredTool, reverifyEveryMs: number | undefined): number | undefined {
  return reverifyEveryMs === undefined ? undefined : Date.parse(lastVerified(tool)) + reverifyEveryMs;
}

/** What the tool is, given what is planned without its tests. Pure. */
export function afterRerun(tool: StoredTool, planned: Activity, progress: RerunProgress): Activity {
  if (planned.status !== 'True') return planned;
  const known = progress.kind === 'ended' ? progress.verification : currentVerification(tool);
  if (known?.result === 'Failed') return failed(tool, progress);
  if (tool.facts.tier === 'Agent' || known?.result === 'Passed') return planned;
  const message = progress.kind === 'waiting' ? progress.message : 'waits for a verifier pod';
  return { type: 'Active', status: 'False', reason: 'Verifying', message: `approved; ${message}` };
}

/** The result for the current spec; an edited spec has none. */
function currentVerification({ metadata, status }: StoredTool): ToolVerification | undefined {
  return status?.verification?.observedGeneration === metadata.generation ? status.verification : undefined;
}

function failed(tool: StoredTool, progress: RerunProgress): Activity {
  const before = tool.status?.conditions?.find(
    ({ type, reason }) => type === 'Active' && reason === 'VerificationFailed',
  );
  const problem = progress.kind === 'ended' ? progress.problem : undefined;
  const next =
    'have the agent forge a corrected version; the same object runs its tests again when it is created again';
  const message = problem === undefined ? before?.message : `${printable(problem, 1_000)}; ${next}`;
  return {
    type: 'Active',
    status: 'False',
    reason: 'VerificationFailed',
    message: message ?? `its tests failed; ${next}`,
  };
}

function lastVerified({ metadata, status }: StoredTool): string {
  const active = status?.conditions?.find(({ type }) => type === 'Active');
  return status?.verification?.verifiedAt ?? active?.lastTransitionTime ?? metadata.creationTimestamp;
}

/** Names the next run of the object. The same until a run has a result. */
export function attemptOf({ metadata, status }: StoredTool): string {
  const { uid, generation } = metadata;
  const hash = sha256(`${uid} ${generation} ${status?.verification?.verifiedAt ?? ''}`).slice('sha256:'.length);
  return hash.slice(0, ATTEMPT_CHARACTERS);
}
