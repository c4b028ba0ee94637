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

/** The next run of each tool of tier Agent of this agent, and of tier Shared of its namespace; the first one first. Pure. */
export function plannedRuns({ tools, owner, everyMs, verifiedAt, retryAt }: ReverificationFacts): PlannedRun[] {
  const actives = tools.filter(({ active, owner: of }) => active && of.namespace === owner.namespace);
  const inService = actives.filter(
    ({ tier, owner: of }) => tier === 'Shared' || (tier === 'Agent' && of.agent === owner.agent),
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
