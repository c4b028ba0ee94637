import { type Block, foreign, foreignList, heading, type Inline, paragraph } from '../page/document.ts';
import type { AgentUses, ToolReview, UseFigures, Verification } from '../tool-review.ts';

const MAX_ITEMS = 100;

type Rows = [label: string, value: Inline[]][];

/** What is known about the tool, each kind of evidence under a heading of its own. */
export function evidenceBlocks({ verification, uses }: ToolReview): Block[] {
  return [
    heading(3, 'Observed: runs where the author never was'),
    ...observed(verification),
    ...answers(verification),
    heading(3, 'Claimed: uses that pods of agents reported'),
    ...claimed(uses),
  ];
}

function observed(verification: Verification | undefined): Block[] {
  if (verification === undefined) return [paragraph('None is recorded. The tests above are the claims of the author.')];
  const { tests, reruns, generated = [] } = verification;
  const rows: Rows = [['Tests', [`${tests.passed} passed, ${tests.failed} failed`]]];
  if (reruns !== undefined) {
    const { succeeded, total, distinctInputs, rootMessages } = reruns;
    rows.push(['Repeated uses', [`${succeeded} of ${total} gave the same result`]]);
    rows.push(
      distinctInputs === undefined
        ? ['Root messages', [String(rootMessages)]]
        : ['Distinct inputs', [`${distinctInputs}, from ${rootMessages} messages`]],
    );
  }
  const problems = tests.problems.slice(0, MAX_ITEMS).map((text): Inline[] => [foreign(text)]);
  const cases = generated
    .slice(0, MAX_ITEMS)
    .map(({ name, passed, detail }): Inline[] => [
      passed ? 'passed: ' : 'failed: ',
      foreign(name),
      ...(detail === undefined ? [] : [' ', foreign(detail)]),
    ]);
  return [{ type: 'facts', rows }, ...list('Problems', problems), ...list('Generated tests', cases)];
}

/** The recorded answers that repeated uses got: two kinds of their own, because a pod can invent what only it saw. */
function answers(verification: Verification | undefined): Block[] {
  const { observedAnswers = 0, reportedAnswers = 0 } = verification?.reruns ?? {};
  if (observedAnswers + reportedAnswers === 0) return [];
  return [
    heading(3, 'Recorded answers that repeated uses got'),
    {
      type: 'facts',
      rows: [
        ['Signed by a gateway that carried them', [`in ${observedAnswers} of the repeated uses`]],
        ['Only reported by a pod', [`in ${reportedAnswers} of the repeated uses`]],
      ],
    },
  ];
}

function claimed(uses: UseFigures | undefined): Block[] {
  if (uses === undefined || uses.total === 0) return [paragraph('None is recorded.')];
  const { total, succeeded, reported, distinctInputs, rootMessages, agents, usedBy = [] } = uses;
  const perAgent = usedBy.slice(0, MAX_ITEMS).map(agentUses);
  return [
    {
      type: 'facts',
      rows: [
        ['Uses', [`${total}, of which ${succeeded} succeeded`]],
        ['Only claimed', [`${reported} of ${total}`]],
        ['Distinct inputs', [`${distinctInputs}, from ${rootMessages} messages`]],
        ...(agents.length === 0 ? [] : ([['Agents', foreignList(agents.slice(0, MAX_ITEMS), 'none')]] as Rows)),
      ],
    },
    ...list(
      'Who used it. Sessions and root messages are deliveries of the gateway; the uses in them are claims.',
      perAgent,
    ),
  ];
}

function agentUses({ name, uses, succeeded, sessions, rootMessages }: AgentUses): Inline[] {
  const places = sessions === 0 ? '' : `${counted(sessions, 'session')}, `;
  return [
    foreign(name),
    `: ${counted(uses, 'use')}, of which ${succeeded} succeeded, in ${places}${counted(rootMessages, 'root message')}`,
  ];
}

function counted(number: number, noun: string): string {
  return number === 1 ? `1 ${noun}` : `${number} ${noun}s`;
}

function list(title: string, items: readonly (readonly Inline[])[]): Block[] {
  return items.length === 0 ? [] : [paragraph(title), { type: 'list', items }];
}
