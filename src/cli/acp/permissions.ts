import type { AgentContext, RequestPermissionRequest } from '@agentclientprotocol/sdk';
import { methods } from '@agentclientprotocol/sdk';
import { systemClock } from '../../lib/clock.ts';
import { ulids } from '../../lib/ids.ts';
import { type Json, parseUntrustedJson, textAt } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { submitDecision } from '../../standalone/decision-files.ts';
import type { AgentEvent } from '../../tools/events.ts';

type ApprovalRequested = Extract<AgentEvent, { type: 'approval-requested' }>;

/** Asks the user of the editor about a request for an approval, and records the decision. A dismissed question decides nothing. */
export async function askEditor(
  { request, tool, risk, reason }: ApprovalRequested,
  sessionId: string,
  deps: { records: RecordStore; client: AgentContext; signal: AbortSignal },
): Promise<void> {
  const { records, client, signal } = deps;
  const stored = (await records.get('approvalrequests', request)) ?? null;
  // A turn that resumes reports its requests again, and some of them are decided.
  if (textAt(stored, ['status', 'decision']) !== '') return;
  const question: RequestPermissionRequest = {
    sessionId,
    toolCall: {
      toolCallId: request,
      title: `${tool} (risk ${risk}): ${reason}`,
      status: 'pending',
      rawInput: argumentsOf(textAt(stored, ['spec', 'arguments'])),
    },
    options: [
      { optionId: 'approve', name: 'Approve this call', kind: 'allow_once' },
      { optionId: 'deny', name: 'Deny this call', kind: 'reject_once' },
    ],
  };
  const { outcome } = await client.request(methods.client.session.requestPermission, question, {
    cancellationSignal: signal,
  });
  if (outcome.outcome !== 'selected') return;
  const verb = outcome.optionId === 'approve' ? 'Approve' : 'Deny';
  const decision = {
    verb,
    target: request,
    reason: `${verb === 'Approve' ? 'approved' : 'denied'} in the editor`,
  } as const;
  await submitDecision(records, decision, { clock: systemClock, ids: ulids });
}

/** What an approver may see of the arguments; text when it was cut. */
function argumentsOf(text: string): Json {
  try {
    return parseUntrustedJson(text);
  } catch {
    return text;
  }
}
