import { type Block, foreign, heading, type Inline, paragraph } from '../page/document.ts';
import type { AuditedRun } from '../../tool-audit/report.ts';
import type { ToolReview } from '../tool-review.ts';

const MAX_ITEMS = 100;

/** The audit by fresh agents: no model rates their answers, so the page has how they ended and what they cost. */
export function auditBlocks({ audit }: ToolReview): Block[] {
  if (audit === undefined) return [];
  const { time, agent, model, evidence, tasks } = audit;
  const note =
    evidence === 'Compared'
      ? 'Each task was given to a fresh agent with the tool and to one without it. The audit decides nothing.'
      : 'No task called the tool, so this says nothing for or against it.';
  const items = tasks
    .slice(0, MAX_ITEMS)
    .map(({ task, withTool, withoutTool }): Inline[] => [
      foreign(task),
      ': with the tool ',
      ...ended(withTool),
      `, of which ${withTool.uses} of the tool; without it `,
      ...ended(withoutTool),
    ]);
  return [
    heading(3, 'Observed: tasks of a fresh agent with the tool and without it'),
    {
      type: 'facts',
      rows: [
        ['Agent', [foreign(agent)]],
        ['Model', [foreign(model)]],
        ['Time', [foreign(time)]],
      ],
    },
    paragraph(note),
    { type: 'list', items },
  ];
}

function ended({ outcome, turns, tokens, toolCalls }: AuditedRun): Inline[] {
  return [foreign(outcome), ` after ${turns} turns, ${tokens} tokens and ${toolCalls} calls`];
}
