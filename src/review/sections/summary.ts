import { type Block, foreign, foreignList, heading, type Inline, paragraph, warning } from '../page/document.ts';
import type { ToolReview, Verification } from '../tool-review.ts';

const NOTICE =
  'Text of the tool, of models and of agents appears only in boxes like the one around the name above. Characters that are not drawn, or that change the direction of text, appear as escapes such as \\u{202e}.';

/** The facts that identify the promotion, and the warnings that a reader must not miss. */
export function summarySections(review: ToolReview): Block[] {
  const { artifact, digest, namespace, object, promotion, contributors } = review;
  return [
    paragraph(NOTICE),
    ...warnings(review),
    {
      type: 'facts',
      rows: [
        ['Decision', decision(review)],
        ...optional('Summary', promotion.summary),
        ...optional('Risk', promotion.risk),
        ['Digest', [foreign(digest)]],
        ...(promotion.to === 'Agent' ? [] : optional('Object', `${namespace}/${object}`)),
        ['Approver', [foreign(promotion.approvedBy)]],
        ['Nonce', [foreign(promotion.nonce)]],
        ...optional('Request', promotion.request),
        ['Contributors', foreignList(contributors, 'none')],
        ...optional('Author', review.authorModel),
        ['Host functions', foreignList(artifact.requires.apis, 'none')],
        ['Tests', [`${artifact.tests.length}`]],
      ],
    },
    heading(2, 'What the tool does'),
    paragraph(foreign(artifact.description)),
  ];
}

/** How a reader withdraws the approval. */
export function undoSection({ promotion }: ToolReview): Block[] {
  if (promotion.revoked !== undefined) return [];
  if (promotion.to === 'Agent') {
    return [
      heading(2, 'How to undo it'),
      paragraph('Run kubectl temper demote, or create an Approval with the decision Revoke.'),
    ];
  }
  return [
    heading(2, 'How to undo it'),
    paragraph(
      'Before the merge: close the pull request. After it: create an Approval with the same subject and nonce and the decision Revoke, with kubectl or in a file beside these files. A revoked tool stays inactive when these files are applied again. Removing the files does not revoke the tool.',
    ),
  ];
}

function decision({ promotion, namespace }: ToolReview): Inline[] {
  if (promotion.revoked !== undefined) return ['the approval is revoked; no agent can call the tool'];
  if (promotion.to === 'Agent') return ['the tool belongs to its agent from then on, in every session'];
  const from = promotion.from === undefined ? '' : `from tier ${promotion.from} `;
  return [
    `applying these files promotes the tool ${from}to tier Shared: every agent of namespace `,
    foreign(namespace),
    ' that is granted the tool can call it',
  ];
}

function warnings({ promotion, tainted, verification, verdicts, uses }: ToolReview): Block[] {
  const found: Inline[][] = [];
  const { revoked } = promotion;
  if (revoked !== undefined) {
    const reason: Inline[] = revoked.reason === undefined ? [] : [': ', foreign(revoked.reason)];
    found.push(['Revoked by ', foreign(revoked.by), ...reason]);
  }
  if (tainted === true) found.push(['The session of the tool contained untrusted content.']);
  found.push(...verificationWarnings(verification));
  const refusals = verdicts.filter(({ approved }) => !approved).length;
  if (refusals > 0) found.push([`${refusals} of ${verdicts.length} verdicts refuse the tool.`]);
  if (verdicts.length === 0) found.push(['No verdict is recorded for this digest.']);
  if (verdicts.some(({ judgeIsAuthor }) => judgeIsAuthor === true))
    found.push(['The model that wrote the tool also judged it.']);
  if (uses !== undefined && uses.total > 0 && uses.reported === uses.total)
    found.push(['Every recorded use is only a claim of an agent.']);
  return found.map((text) => warning(...text));
}

function verificationWarnings(verification: Verification | undefined): Inline[][] {
  if (verification === undefined) return [['No verification is recorded for this digest.']];
  const { tests, reruns } = verification;
  return [
    ...(tests.failed > 0 ? [[`${tests.failed} tests failed in the verification.`]] : []),
    ...((reruns?.reportedAnswers ?? 0) > 0
      ? [['Repeated uses got answers that only a pod reported; a pod can invent them.']]
      : []),
  ];
}

function optional(label: string, text: string | undefined): [string, Inline[]][] {
  return text === undefined || text === '' ? [] : [[label, [foreign(text)]]];
}
