import { splitReference } from '../../forge/request.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { ToolOwner } from '../registry/visibility.ts';
import type { RegisteredTool } from '../types.ts';

/** A tool in service whose tests run again at this time, in epoch milliseconds. */
export interface PlannedRun {
  readonly digest: Digest;
  readonly tool: string;
  readonly dueAt: number;
}

export interface ReverificationFacts {
  readonly tools: readonly RegisteredTool[];
  readonly owner: ToolOwner;
  readonly everyMs: number;
  /** The last run that passed; 0 without one. */
  readonly verifiedAt: (digest: Digest) => number;
  /** Not before this time, because a run could not start. */
  readonly retryAt: (digest: Digest) => number;
}

/**
 * The next run of each tool of tier Agent of this agent, and of tier Shared of its namespace; the first one first. A composed tool whose
 * step is out of service is left out: its tests would fail for the step. Pure.
 */
export function plannedRuns({ tools, owner, everyMs, verifiedAt, retryAt }: ReverificationFacts): PlannedRun[] {
  const actives = tools.filter(({ active, owner: of }) => active && of.namespace === owner.namespace);
  const hasSteps = stepsInService(actives);
  const inService = actives.filter(
    (tool) => (tool.tier === 'Shared' || (tool.tier === 'Agent' && tool.owner.agent === owner.agent)) && hasSteps(tool),
  );
  const runs = new Map<Digest, PlannedRun>();
  for (const { digest, artifact, acceptedAt } of inService) {
    const since = Math.max(Date.parse(acceptedAt), verifiedAt(digest));
    const dueAt = Math.max(since + everyMs, retryAt(digest));
    // A promotion to tier Shared ran the tests too.
    const known = runs.get(digest);
    if (known === undefined || known.dueAt < dueAt) runs.set(digest, { digest, tool: artifact.name, dueAt });
  }
  return [...runs.values()].toSorted((one, other) => one.dueAt - other.dueAt);
}

/** Whether every forged tool that a tool calls, also through its steps, is among the active ones. Looks at each tool once. */
function stepsInService(actives: readonly RegisteredTool[]): (tool: RegisteredTool) => boolean {
  const byDigest = new Map<string, RegisteredTool>(actives.map((tool) => [tool.digest, tool]));
  const known = new Map<string, boolean>();
  const isCallable = (digest: string): boolean => {
    const called = byDigest.get(digest);
    const found = known.get(digest) ?? (called !== undefined && hasSteps(called));
    known.set(digest, found);
    return found;
  };
  const hasSteps = ({ artifact }: RegisteredTool): boolean =>
    (artifact.implementation.steps ?? []).every((step) => {
      const { digest } = splitReference(step.tool);
      return digest === undefined || isCallable(digest);
    });
  return hasSteps;
}
