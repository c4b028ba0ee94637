import { printable } from '../lib/printable.ts';

/** One task of a fresh agent. */
export interface AuditedRun {
  /** How the task ended: `complete`, `refusal`, `truncated`, or the code of its error. */
  readonly outcome: string;
  /** Calls of the audited tool. */
  readonly uses: number;
  readonly toolCalls: number;
  readonly turns: number;
  readonly tokens: number;
}

export interface AuditedTask {
  readonly task: string;
  readonly withTool: AuditedRun;
  readonly withoutTool: AuditedRun;
}

/** The last audit of a tool, for users and reviewers. It decides nothing. */
export interface ToolAuditReport {
  /** RFC 3339. */
  readonly time: string;
  readonly agent: string;
  readonly model: string;
  /** A tool that no task called was not tested. */
  readonly evidence: 'Compared' | 'NeverCalled';
  readonly tasks: readonly AuditedTask[];
}

/** Of one audit. Each is worked on twice. */
export const MAX_AUDIT_TASKS = 10;
/** A session with less could not even read its tools. */
const MIN_TOKENS_PER_RUN = 1_000;
const MAX_TASK_TEXT = 500;

/** The part of the budget of one session: all sessions of an audit have the same. */
export function tokensPerRun(maxTokens: number, tasks: number): number {
  return Math.floor(maxTokens / (2 * tasks));
}

/** Why an audit of so many tasks cannot start with the budget; undefined when it can. */
export function auditBoundProblem(tasks: number, maxTokens: number): string | undefined {
  if (tasks > MAX_AUDIT_TASKS) return `${tasks} tasks are given; an audit has at most ${MAX_AUDIT_TASKS}`;
  if (tokensPerRun(maxTokens, tasks) >= MIN_TOKENS_PER_RUN) return undefined;
  return `${maxTokens} tokens are too few for ${tasks} tasks; set ${2 * tasks * MIN_TOKENS_PER_RUN} or more`;
}

export function toAuditReport(
  of: Pick<ToolAuditReport, 'time' | 'agent' | 'model'>,
  tasks: readonly AuditedTask[],
): ToolAuditReport {
  const isCalled = tasks.some(({ withTool }) => withTool.uses > 0);
  return {
    ...of,
    evidence: isCalled ? 'Compared' : 'NeverCalled',
    tasks: tasks.map((one) => ({ ...one, task: printable(one.task, MAX_TASK_TEXT) })),
  };
}
