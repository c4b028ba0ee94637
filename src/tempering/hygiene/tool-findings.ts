import type { Digest } from '../../lib/canonical.ts';
import type { TaskRecord } from '../../policy/trust/evidence.ts';
import { failureReason, type PromotionRules } from '../promotion/promotion-rules.ts';
import { assessTools, describeAssessment } from './assess-tools.ts';
import type { MessageToolCalls } from './tool-calls.ts';
import { type ToolTask, toToolTask } from './tool-task.ts';

/** A tool that the records of one agent show to be harmful, or to fail too often. */
export interface ToolFinding {
  readonly digest: Digest;
  readonly cause: 'Harmful' | 'Failing';
  /** The figures. */
  readonly message: string;
}

/** What one agent did, and how its tasks ended. The order does not matter. */
export interface AgentHistory {
  readonly tasks: readonly (TaskRecord & { readonly message: string })[];
  readonly calls: readonly MessageToolCalls[];
}

export interface FindingRules extends Pick<PromotionRules, 'maxErrorPercent'> {
  readonly maxHarmPercent: number;
}

/** The tools that a finding can be about. */
export interface AssessedTool {
  readonly digest: Digest;
  /** Earlier tasks and calls do not count, in epoch milliseconds. */
  readonly countFrom: number;
}

const RECENT_CALLS = 20;

/** Pure. At most one finding per tool: what tasks show goes before what calls show. */
export function findTools(
  history: AgentHistory,
  rules: FindingRules,
  assessed: readonly AssessedTool[],
): ToolFinding[] {
  const countFrom = new Map(assessed.map((tool) => [tool.digest, tool.countFrom]));
  const counts = (digest: Digest, at: number): boolean => at > (countFrom.get(digest) ?? 0);
  const harmful = harmfulTools(history, rules, counts);
  const failing = assessed.flatMap(({ digest }) => {
    const message = failureReason({ recent: recentCalls(history.calls, digest, counts) }, rules);
    return message === undefined ? [] : [{ digest, cause: 'Failing', message } as const];
  });
  const found = new Map<Digest, ToolFinding>(failing.map((finding) => [finding.digest, finding]));
  for (const finding of harmful) if (countFrom.has(finding.digest)) found.set(finding.digest, finding);
  return [...found.values()];
}

type Counts = (digest: Digest, at: number) => boolean;

function harmfulTools(history: AgentHistory, { maxHarmPercent }: FindingRules, counts: Counts): ToolFinding[] {
  return assessTools(toolTasksOf(history, counts), maxHarmPercent)
    .filter(({ isHarmful }) => isHarmful)
    .map((assessment) => ({ digest: assessment.digest, cause: 'Harmful', message: describeAssessment(assessment) }));
}

/** Each task with the tools that its message called and that `counts` keeps. */
export function toolTasksOf({ tasks, calls }: AgentHistory, counts: Counts): ToolTask[] {
  const called = Map.groupBy(calls, ({ message }) => message);
  return tasks.flatMap((task) => {
    const tools = (called.get(task.message) ?? []).flatMap((delivery) => delivery.tools.map(({ digest }) => digest));
    const counted = tools.filter((digest) => counts(digest, task.endedAt));
    return toToolTask(task, counted) ?? [];
  });
}

/** The newest calls, of whole messages. */
function recentCalls(
  all: readonly MessageToolCalls[],
  digest: Digest,
  counts: Counts,
): { uses: number; failures: number } {
  let [uses, failures] = [0, 0];
  for (const { endedAt, tools } of all.toSorted((one, other) => other.endedAt - one.endedAt)) {
    if (uses >= RECENT_CALLS) break;
    const own = tools.find((tool) => tool.digest === digest);
    if (own === undefined || !counts(digest, endedAt)) continue;
    uses += own.calls;
    failures += own.failures;
  }
  return { uses, failures };
}

/** How many messages called each tool, and when the last one did. */
export function messageUses(
  calls: readonly MessageToolCalls[],
): ReadonlyMap<Digest, { rootMessages: number; lastUsedAt: string }> {
  const found = new Map<Digest, { messages: Set<string>; last: number }>();
  for (const { message, endedAt, tools } of calls) {
    for (const { digest } of tools) {
      const known = found.get(digest) ?? { messages: new Set<string>(), last: 0 };
      known.messages.add(message);
      found.set(digest, { messages: known.messages, last: Math.max(known.last, endedAt) });
    }
  }
  return new Map(
    [...found].map(([digest, { messages, last }]) => [
      digest,
      { rootMessages: messages.size, lastUsedAt: new Date(last).toISOString() },
    ]),
  );
}
