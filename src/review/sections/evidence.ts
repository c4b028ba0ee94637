import { type Block, foreign, heading, type Inline, paragraph, warning } from '../page/document.ts';
import { codeLines } from '../page/code-lines.ts';
import { evidenceBlocks } from './evidence-kinds.ts';
import { auditBlocks } from './audit.ts';
import { headBlocks } from './audit-heads.ts';
import type { OpenQuestion, ReviewVerdict, ToolReview } from '../tool-review.ts';

const MAX_ITEMS = 100;

/** What is known about the tool, by where it comes from: verification, claims of agents, verdicts of models, provenance chain. */
export function evidenceSections(review: ToolReview): Block[] {
  return [
    heading(2, 'Evidence'),
    ...evidenceBlocks(review),
    ...auditBlocks(review),
    ...questionBlocks(review.questions ?? []),
    heading(2, 'Verdicts'),
    ...verdictBlocks(review.verdicts),
    heading(2, 'Provenance'),
    ...provenanceBlocks(review),
    ...headBlocks(review),
  ];
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
