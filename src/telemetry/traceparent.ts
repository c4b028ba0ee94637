import { type Context, context, ROOT_CONTEXT, type SpanContext, trace, TraceFlags } from '@opentelemetry/api';
import { sha256 } from '../lib/canonical.ts';

/** The header of W3C Trace Context, and the NATS header of the same name. */
export const TRACEPARENT = 'traceparent';

const FORM = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const NO_TRACE = '0'.repeat(32);
const NO_SPAN = '0'.repeat(16);

/** What the text names; undefined for one that is no `traceparent`. Whoever calls may have written it. */
export function spanContextOf(traceparent: unknown): SpanContext | undefined {
  if (typeof traceparent !== 'string') return undefined;
  const [, traceId = NO_TRACE, spanId = NO_SPAN, flags = ''] = FORM.exec(traceparent) ?? [];
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
}

/** The trace it names: what logs hold beside the span's other facts. */
export function traceIdOf(traceparent: unknown): string | undefined {
  return spanContextOf(traceparent)?.traceId;
}

export function isSampled(traceparent: unknown): boolean {
  return spanContextOf(traceparent)?.traceFlags === TraceFlags.SAMPLED;
}

/** The span that is active now; undefined when nothing is traced here. */
export function currentTraceparent(): string | undefined {
  const current = trace.getSpanContext(context.active());
  if (current === undefined || !trace.isSpanContextValid(current)) return undefined;
  return textOf(current);
}

/**
 * A trace nobody records, so that what happens to one message has one id in every log all the same. The same seed gives the same.
 */
export function unrecordedTraceparent(seed: string): string {
  const hex = sha256(`trace ${seed}`).slice('sha256:'.length);
  return textOf({ traceId: hex.slice(0, 32), spanId: hex.slice(32, 48), traceFlags: TraceFlags.NONE });
}

/** A context in which new spans are children of what the text names; an empty one when it names nothing. */
export function contextOf(traceparent: unknown): Context {
  const parent = spanContextOf(traceparent);
  return parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
}

function textOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & TraceFlags.SAMPLED) === 0 ? '00' : '01'}`;
}
