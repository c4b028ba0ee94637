import { type Attributes, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';

/** Seconds since 1970, plus nanoseconds. */
type Instant = [seconds: number, nanoseconds: number];

/** An ended span that one process reports to another process, which exports it. Has no events, links or error messages. */
export interface ReportedSpan {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: keyof typeof SpanKind;
  start: Instant;
  end: Instant;
  failed: boolean;
  attributes: Record<string, string | number | boolean | string[]>;
}

export function reportedSpan(span: ReadableSpan): ReportedSpan {
  const { traceId, spanId } = span.spanContext();
  const parentSpanId = span.parentSpanContext?.spanId;
  return {
    traceId,
    spanId,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    name: span.name,
    kind: SpanKind[span.kind] as keyof typeof SpanKind,
    start: [...span.startTime],
    end: [...span.endTime],
    failed: span.status.code === SpanStatusCode.ERROR,
    attributes: supportedAttributes(span.attributes),
  };
}

/** Converts a reported span to the type that exporters accept. */
export function readableSpan(span: ReportedSpan, resource: Resource, scope: string): ReadableSpan {
  const { traceId, spanId, parentSpanId, start, end } = span;
  const sampled = { traceId, traceFlags: TraceFlags.SAMPLED };
  return {
    name: span.name,
    kind: SpanKind[span.kind],
    spanContext: () => ({ ...sampled, spanId }),
    ...(parentSpanId === undefined ? {} : { parentSpanContext: { ...sampled, spanId: parentSpanId } }),
    startTime: start,
    endTime: end,
    duration: durationOf(start, end),
    status: { code: span.failed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes: span.attributes,
    links: [],
    events: [],
    ended: true,
    resource,
    instrumentationScope: { name: scope },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function supportedAttributes(attributes: Attributes): ReportedSpan['attributes'] {
  const result: ReportedSpan['attributes'] = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (Array.isArray(value)) result[name] = value.filter((item) => typeof item === 'string');
    else if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') result[name] = value;
  }
  return result;
}

function durationOf([seconds, nanoseconds]: Instant, [endSeconds, endNanoseconds]: Instant): Instant {
  const borrow = endNanoseconds < nanoseconds ? 1 : 0;
  return [endSeconds - seconds - borrow, endNanoseconds - nanoseconds + borrow * 1e9];
}
