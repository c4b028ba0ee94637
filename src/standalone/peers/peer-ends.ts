import type { AskEnd } from '../../agent/messages/ask.ts';
import { hasRequiredForm } from '../../agent/returns/reply-format.ts';
import type { PeerEnd } from '../../a2a/task.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { Envelope } from '../../bus/port.ts';
import type { Clock } from '../../lib/clock.ts';
import type { PeerEntry } from './peer-entries.ts';

/** The change that ends the task of a message over A2A; none for another message. */
export function peerEnding(
  agent: string,
  { id, source }: Envelope,
  { end, returns, clock }: { end: AskEnd; returns: AgentSpec['returns']; clock: Clock },
): PeerEntry[] {
  if (source !== 'Peer') return [];
  return [{ op: 'peer-ended', agent, id, end: peerEndOf(end, returns), at: clock.now().toISOString() }];
}

function peerEndOf(end: AskEnd, returns: AgentSpec['returns']): PeerEnd {
  if (end.state === 'Failed') return { kind: 'failed', code: end.code, text: end.text };
  const { text, finishReason } = end;
  const isValue = finishReason === 'complete' && hasRequiredForm(returns, text);
  return { kind: 'reply', text, finishReason, ...(isValue ? { format: 'json' as const } : {}) };
}
