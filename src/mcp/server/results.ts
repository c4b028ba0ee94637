import type { ErrorCode } from '../../lib/error-codes.ts';
import type { AgentEvent } from '../../tools/events.ts';
import type { ServedResult } from './served.ts';

/** A call that failed, as the model of the client reads it. */
export function failedResult({
  code,
  message,
  rule,
}: {
  code: ErrorCode;
  message: string;
  rule?: string;
}): ServedResult {
  return { text: `${code}: ${message}`, isError: true, code, ...(rule === undefined ? {} : { rule }) };
}

/** What a client reads of an event while it waits for an agent; undefined for an event that says nothing to it. */
export function progressOf(event: AgentEvent): string | undefined {
  switch (event.type) {
    case 'message':
      return event.delta ? undefined : event.text;
    case 'tool-call':
      return `calls ${event.tool}`;
    case 'tool-result':
      return `${event.tool} ${event.ok ? 'succeeded' : 'failed'}`;
    case 'forge-accepted':
      return `made the tool ${event.tool}`;
    case 'approval-requested':
      return `${event.tool} needs an approval: ${event.request}`;
    default:
      return undefined;
  }
}
