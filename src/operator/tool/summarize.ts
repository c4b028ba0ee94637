import type { AuditedTool, EmergentToolStatus, ToolVerification } from '../../api/v1alpha1/emergenttool.ts';
import { type ConditionUpdate, sameConditions, updateConditions } from '../conditions.ts';
import type { Activity } from './plan.ts';
import type { StoredTool } from './stored-tool.ts';

const PROMOTION_STATES: Readonly<Record<string, NonNullable<EmergentToolStatus['promotion']>>> = {
  Promoted: 'Promoted',
  AwaitingApproval: 'AwaitingApproval',
  ApprovalDenied: 'Rejected',
};

/** Computes the status of a tool. Pure. */
export function toolStatus(
  { metadata, status: before }: StoredTool,
  activity: Activity,
  {
    sharing,
    verification,
    audit,
  }: {
    sharing?: ConditionUpdate<'Shared'> | undefined;
    verification?: ToolVerification | undefined;
    audit?: AuditedTool | undefined;
  },
  now: Date,
): EmergentToolStatus {
  const { promotion: _before, ...kept } = before ?? {};
  const findings = [activity, ...(sharing === undefined ? [] : [sharing])];
  return {
    ...kept,
    observedGeneration: metadata.generation,
    active: activity.status === 'True',
    ...(verification === undefined ? {} : { verification }),
    ...(audit === undefined ? {} : { audit }),
    ...(sharing === undefined ? {} : { promotion: PROMOTION_STATES[sharing.reason] ?? 'Candidate' }),
    conditions: updateConditions(before?.conditions, ['Shared'], findings, metadata.generation, now),
  };
}

export function toolStatusDiffers({ status }: StoredTool, after: EmergentToolStatus): boolean {
  const [known, next] = [membersOf(status), membersOf(after)];
  return (
    known.some((value, index) => value !== next[index]) || !sameConditions(status?.conditions, after.conditions ?? [])
  );
}

/** All but the conditions. */
function membersOf(status: EmergentToolStatus | undefined): readonly unknown[] {
  const { observedGeneration, active, promotion, verification, audit } = status ?? {};
  return [observedGeneration, active, promotion, verification?.verifiedAt, audit?.auditedAt];
}

/** A JSON merge patch removes a member only when the patch has it as null. */
export function toolStatusPatch(_before: EmergentToolStatus | undefined, after: EmergentToolStatus): object {
  return after.promotion === undefined ? { ...after, promotion: null } : after;
}
