import { parseUntrustedJson } from '../../lib/json.ts';
import type { Finding, Sound } from '../findings.ts';
import type { ApprovalSpec } from '../v1alpha1/approval.ts';
import type { ApprovalRequestSpec } from '../v1alpha1/approvalrequest.ts';

const SUBJECT_OF = { PromoteTool: 'promotion', RaiseTrust: 'trust', ToolCall: 'call' } as const;

export const APPROVAL_CHECKS: readonly ((spec: Sound<ApprovalSpec>) => Finding[])[] = [oneSubject];

export const APPROVAL_REQUEST_CHECKS: readonly ((spec: Sound<ApprovalRequestSpec>) => Finding[])[] = [
  oneSubject,
  subjectFitsType,
  argumentsAreJson,
];

/** An answer to two questions at once could be used for the one its author did not look at. */
function oneSubject({ subject }: Sound<ApprovalSpec | ApprovalRequestSpec>): Finding[] {
  if (subject === undefined) return [];
  const given = Object.values(SUBJECT_OF).filter((name) => subject[name] !== undefined);
  if (given.length === 1) return [];
  const message = given.length === 0 ? 'spec.subject is empty' : `spec.subject holds ${given.join(' and ')}`;
  return [
    { path: ['spec', 'subject'], rule: 'exactly-one', message, fix: 'give exactly one of promotion, trust and call' },
  ];
}

function subjectFitsType({ type, subject }: Sound<ApprovalRequestSpec>): Finding[] {
  if (type === undefined || subject === undefined) return [];
  const needed = SUBJECT_OF[type];
  if (subject[needed] !== undefined) return [];
  const message = `type ${type} needs spec.subject.${needed}`;
  return [{ path: ['spec', 'subject'], rule: 'subject-fits-type', message, fix: `add spec.subject.${needed}` }];
}

function argumentsAreJson({ type, arguments: text }: Sound<ApprovalRequestSpec>): Finding[] {
  if (text === undefined) return [];
  const path = ['spec', 'arguments'];
  if (type !== undefined && type !== 'ToolCall') {
    const message = `spec.arguments does not belong to type ${type}`;
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
