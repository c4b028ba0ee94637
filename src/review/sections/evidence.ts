import { type Block, foreign, foreignList, heading, type Inline, paragraph, warning } from '../page/document.ts';
import type { SignedHead } from '../../audit/stream-chain.ts';
import { codeLines } from '../page/code-lines.ts';
import type { OpenQuestion, ReviewVerdict, ToolReview, UseFigures, Verification } from '../tool-review.ts';

const MAX_ITEMS = 100;

/** What is known about the tool, by where it comes from: verification, claims of agents, verdicts of models, provenance chain. */
export function evidenceSections(review: ToolReview): Block[] {
  return [
    heading(2, 'Verification'),
    ...verificationBlocks(review.verification),
    ...questionBlocks(review.questions ?? []),
    heading(2, 'Uses'),
    ...useBlocks(review.uses),
    heading(2, 'Verdicts'),
    ...verdictBlocks(review.verdicts),
    heading(2, 'Provenance'),
    ...provenanceBlocks(review),
    ...headBlocks(review.auditHead),
  ];
}

function verificationBlocks(verification: Verification | undefined): Block[] {
  if (verification === undefined) return [paragraph('None is recorded. The tests above are the claims of the author.')];
  const { tests, reruns, generated = [] } = verification;
  const rows: [string, Inline[]][] = [['Tests', [`${tests.passed} passed, ${tests.failed} failed`]]];
  if (reruns !== undefined) {
    rows.push(['Repeated uses', [`${reruns.succeeded} of ${reruns.total} gave the same result`]]);
    const { distinctInputs, rootMessages, observedAnswers = 0, reportedAnswers = 0 } = reruns;
    if (distinctInputs !== undefined)
      rows.push(['Distinct inputs', [`${distinctInputs}, from ${rootMessages} messages`]]);
    else rows.push(['Root messages', [String(rootMessages)]]);
    if (observedAnswers + reportedAnswers > 0)
      rows.push(['Recorded answers', [`${observedAnswers} observed, ${reportedAnswers} only reported by a pod`]]);
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

function questionBlocks(questions: readonly OpenQuestion[]): Block[] {
  if (questions.length === 0) return [];
  const blocks = questions.slice(0, MAX_ITEMS).flatMap(({ topic, reason, cases }): Block[] => [
    heading(3, foreign(topic)),
    paragraph(foreign(reason)),
    ...cases.slice(0, MAX_ITEMS).map(({ input, expected, got }): Block => {
      const wanted: [string, Inline[]][] = expected === undefined ? [] : [['Expected', [foreign(expected)]]];
      return { type: 'facts', rows: [['Input', [foreign(input)]], ...wanted, ['Output', [foreign(got)]]] };
    }),
  ]);
  return [heading(2, 'Questions of the examination'), ...blocks];
}

function useBlocks(uses: UseFigures | undefined): Block[] {
  if (uses === undefined || uses.total === 0) return [paragraph('None is recorded.')];
  const { total, succeeded, reported, distinctInputs, rootMessages, agents } = uses;
  return [
    {
      type: 'facts',
      rows: [
        ['Uses', [`${total}, of which ${succeeded} succeeded`]],
        ['Claimed by agents', [`${reported} of ${total}`]],
        ['Distinct inputs', [`${distinctInputs}, from ${rootMessages} messages`]],
        ['Agents', foreignList(agents.slice(0, MAX_ITEMS), 'none')],
      ],
    },
  ];
}

function verdictBlocks(verdicts: readonly ReviewVerdict[]): Block[] {
  if (verdicts.length === 0) return [paragraph('None is recorded.')];
  const notice = paragraph('Models can refuse a tool and never grant one. Their texts may repeat text of the tool.');
  return [notice, ...verdicts.slice(0, MAX_ITEMS).flatMap(verdictOf)];
}

function verdictOf(verdict: ReviewVerdict): Block[] {
  const { question, model, approved, confidence, reasoning, citedLines = [], judgeIsAuthor } = verdict;
  const title = question === undefined ? 'Judge ' : `Reviewer of ${question} `;
  const percent = Math.round(Math.min(1, Math.max(0, confidence)) * 100);
  const lines = citedLines.slice(0, MAX_ITEMS).join(', ');
  return [
    heading(3, title, foreign(model)),
    ...(judgeIsAuthor === true ? [warning('This model wrote the tool.')] : []),
    {
      type: 'facts',
      rows: [
        ['Verdict', [approved ? `approves with confidence ${percent} %` : `refuses with confidence ${percent} %`]],
        ['Cited lines of the tool as judges read it', [lines === '' ? 'none' : lines]],
      ],
    },
    { type: 'box', language: 'text', lines: codeLines(reasoning.slice(0, MAX_REASONING)) },
  ];
}

/** The records of models have shorter texts. */
const MAX_REASONING = 8_192;

function provenanceBlocks({ provenance }: ToolReview): Block[] {
  if (provenance.length === 0) return [paragraph('No record of the provenance chain names this digest.')];
  const shown = provenance.slice(-MAX_ITEMS);
  const items = shown.map(({ time, action, actor, record }): Inline[] => [
    foreign(time),
    ' ',
    foreign(action),
    ' by ',
    foreign(actor),
    ', record ',
    foreign(record),
  ]);
  const older = provenance.length - shown.length;
  return [...(older > 0 ? [paragraph(`${older} older records are left out.`)] : []), { type: 'list', items }];
}

function headBlocks(head: SignedHead | undefined): Block[] {
  if (head === undefined) return [];
  const { sequence, digest, time, key, signature } = head;
  return [
    paragraph(
      'The newest signed head of the audit stream when this page was written. It must lie on the chain of the cluster.',
    ),
    {
      type: 'facts',
      rows: [
        ['Signed up to record', [String(sequence)]],
        ['Digest', [foreign(digest)]],
        ['Signed at', [foreign(time)]],
        ['Key', [foreign(key)]],
        ['Signature', [foreign(signature)]],
      ],
    },
  ];
}

function list(title: string, items: readonly (readonly Inline[])[]): Block[] {
  return items.length === 0 ? [] : [paragraph(title), { type: 'list', items }];
}
