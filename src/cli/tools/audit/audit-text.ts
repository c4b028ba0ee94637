import { printable } from '../../../lib/printable.ts';
import type { AuditedRun, ToolAuditReport } from '../../../tool-audit/report.ts';
import { table } from '../../table.ts';

const HEADINGS = ['TASK', 'TOOL', 'OUTCOME', 'USES', 'CALLS', 'TURNS', 'TOKENS'];

/** The comparison of an audit for a terminal. `where` also shows it to reviewers. */
export function auditText(
  tool: string,
  { evidence, tasks }: Pick<ToolAuditReport, 'evidence' | 'tasks'>,
  where: string,
): string {
  const rows = tasks.flatMap(({ task, withTool, withoutTool }) => [
    row(task, 'with', withTool),
    row(task, 'without', withoutTool),
  ]);
  const name = printable(tool, 63);
  const note =
    evidence === 'Compared'
      ? `${where} shows this comparison to reviewers\n`
      : `no task called ${name}, so this is not evidence for or against it; choose tasks that need it\n`;
  return `${table(HEADINGS, rows, 60)}${note}`;
}

function row(task: string, variant: string, run: AuditedRun): string[] {
  const { outcome, uses, toolCalls, turns, tokens } = run;
  return [printable(task, 500), variant, printable(outcome, 64), ...[uses, toolCalls, turns, tokens].map(String)];
}
