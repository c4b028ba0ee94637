import { API_VERSION } from '../../api/names.ts';
import type { ApprovalSubject } from '../../api/v1alpha1/common.ts';
import type { EventNote, EventSubject } from '../../kube/events/event-note.ts';
import { dueSteps } from '../../policy/approval-rules.ts';
import type { StoredRequest } from './stored-decision.ts';

/** Events about a request that waits, and what its status says once they are written. */
export interface Announcements {
  readonly events: readonly EventNote[];
  readonly announcedSteps: number;
}

/**
 * What an undecided request has not announced: that a call waits, and the steps of its escalation. Its status has how far this went, so that
 * a later leader goes on from there. Undefined when nothing is due. Pure.
 */
export function dueAnnouncements({ metadata, spec, status }: StoredRequest, now: Date): Announcements | undefined {
  if (status?.decision !== undefined) return undefined;
  const { announcedSteps } = status ?? {};
  const due = dueSteps(spec, now);
  const steps = due.slice(announcedSteps ?? 0).map(({ to }): EventNote => {
    const message = `ApprovalRequest ${metadata.name} ${about(spec.subject)} is still pending; asked now: ${to.join(', ')}`;
    return { type: 'Warning', reason: 'ApprovalEscalated', message };
  });
  const isNewCall = spec.type === 'ToolCall' && announcedSteps === undefined;
  if (!isNewCall && steps.length === 0) return undefined;
  return { events: isNewCall ? [newCall(metadata.name, spec.subject), ...steps] : steps, announcedSteps: due.length };
}

/** The Agent that waits. */
export function announcedAgent({ metadata, spec }: StoredRequest): EventSubject {
  const { name, uid } = spec.agent;
  return { apiVersion: API_VERSION, kind: 'Agent', metadata: { name, namespace: metadata.namespace, uid } };
}

function newCall(name: string, { call }: ApprovalSubject): EventNote {
  const message = `a call of ${call?.tool ?? 'a tool'} waits for an approval: kubectl temper requests ${name}`;
  return { type: 'Normal', reason: 'ApprovalRequested', message };
}

function about({ call, promotion, trust }: ApprovalSubject): string {
  if (call !== undefined) return `for a call of ${call.tool}`;
  if (promotion !== undefined) return `for the promotion of ${promotion.tool} to tier ${promotion.tier}`;
  return `for level ${trust?.level ?? 'of the agent'}`;
}
