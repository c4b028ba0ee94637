import { type Context, context, ROOT_CONTEXT, type SpanContext, trace, TraceFlags } from '@opentelemetry/api';
import { sha256 } from '../lib/canonical.ts';

/** The header of W3C Trace Context, and the NATS header of the same name. */
export const TRACEPARENT = 'traceparent';

const FORM = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const NO_TRACE = '0'.repeat(32);
const NO_SPAN = '0'.repeat(16);

/** The span context of an untrusted `traceparent`; undefined when the text is not a valid one. */
export function spanContextOf(traceparent: unknown): SpanContext | undefined {
  if (typeof traceparent !== 'string') return undefined;
  const [, traceId = NO_TRACE, spanId = NO_SPAN, flags = ''] = FORM.exec(traceparent) ?? [];
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
}

/** The trace id for log lines; undefined when the text is not a valid `traceparent`. */
export function traceIdOf(traceparent: unknown): string | undefined {
  return spanContextOf(traceparent)?.traceId;
}

export function isSampled(traceparent: unknown): boolean {
  return spanContextOf(traceparent)?.traceFlags === TraceFlags.SAMPLED;
}

/** The `traceparent` of the active span; undefined when tracing is off. */
export function currentTraceparent(): string | undefined {
  const current = trace.getSpanContext(context.active());
  if (current === undefined || !trace.isSpanContextValid(current)) return undefined;
  return textOf(current);
}

/**
 * The `traceparent` of a trace that is not recorded, so that all logs about one message have the same trace id even without tracing. The same
 * seed gives the same id.
 */
export function unrecordedTraceparent(seed: string): string {
  const hex = sha256(`trace ${seed}`).slice('sha256:'.length);
  return textOf({ traceId: hex.slice(0, 32), spanId: hex.slice(32, 48), traceFlags: TraceFlags.NONE });
}

/** A context in which new spans are children of the `traceparent`; the root context when the text is not a valid one. */
export function contextOf(traceparent: unknown): Context {
  const parent = spanContextOf(traceparent);
  return parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
}

function textOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & TraceFlags.SAMPLED) === 0 ? '00' : '01'}`;
}
