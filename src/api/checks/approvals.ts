import { parseUntrustedJson } from '../../lib/json.ts';
import type { Finding, ValidPart } from '../findings.ts';
import type { ApprovalSpec } from '../v1alpha1/approval.ts';
import type { ApprovalRequestSpec } from '../v1alpha1/approvalrequest.ts';

const SUBJECT_OF = { PromoteTool: 'promotion', RaiseTrust: 'trust', ToolCall: 'call' } as const;

export const APPROVAL_CHECKS: readonly ((spec: ValidPart<ApprovalSpec>) => Finding[])[] = [oneSubject];

export const APPROVAL_REQUEST_CHECKS: readonly ((spec: ValidPart<ApprovalRequestSpec>) => Finding[])[] = [
  oneSubject,
  subjectFitsType,
  argumentsAreJson,
  reviewIsOfPromotion,
];

/** A decision with two subjects could approve a subject that the approver did not review. */
function oneSubject({ subject }: ValidPart<ApprovalSpec | ApprovalRequestSpec>): Finding[] {
  if (subject === undefined) return [];
  const given = Object.values(SUBJECT_OF).filter((name) => subject[name] !== undefined);
  if (given.length === 1) return [];
  const message = given.length === 0 ? 'spec.subject is empty' : `spec.subject contains ${given.join(' and ')}`;
  return [
    { path: ['spec', 'subject'], rule: 'exactly-one', message, fix: 'set exactly one of promotion, trust and call' },
  ];
}

function subjectFitsType({ type, subject }: ValidPart<ApprovalRequestSpec>): Finding[] {
  if (type === undefined || subject === undefined) return [];
  const needed = SUBJECT_OF[type];
  if (subject[needed] !== undefined) return [];
  const message = `type ${type} requires spec.subject.${needed}`;
  return [{ path: ['spec', 'subject'], rule: 'subject-fits-type', message, fix: `add spec.subject.${needed}` }];
}

function reviewIsOfPromotion({ type, review }: ValidPart<ApprovalRequestSpec>): Finding[] {
  if (review === undefined || type === undefined || type === 'PromoteTool') return [];
  const message = `spec.review is not allowed with type ${type}`;
  return [{ path: ['spec', 'review'], rule: 'subject-fits-type', message, fix: 'remove it' }];
}

function argumentsAreJson({ type, arguments: text }: ValidPart<ApprovalRequestSpec>): Finding[] {
  if (text === undefined) return [];
  const path = ['spec', 'arguments'];
  if (type !== undefined && type !== 'ToolCall') {
    const message = `spec.arguments is not allowed with type ${type}`;
    return [{ path, rule: 'subject-fits-type', message, fix: 'remove it' }];
  }
  try {
    parseUntrustedJson(text);
    return [];
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof RangeError)) throw error;
    return [
      { path, rule: 'json-text', message: 'spec.arguments is not JSON', fix: 'write the arguments as JSON text' },
    ];
  }
}
