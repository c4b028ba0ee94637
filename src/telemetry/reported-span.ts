import { type Attributes, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';

/** Seconds since 1970, and nanoseconds beside them. */
type Instant = [seconds: number, nanoseconds: number];

/** A span that has ended, as one process reports it to another that exports it. Without events, links and texts of errors. */
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
    attributes: plain(span.attributes),
  };
}

/** As an exporter takes it. */
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
    duration: between(start, end),
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

function plain(attributes: Attributes): ReportedSpan['attributes'] {
  const known: ReportedSpan['attributes'] = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (Array.isArray(value)) known[name] = value.filter((item) => typeof item === 'string');
    else if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') known[name] = value;
  }
  return known;
}

function between([seconds, nanoseconds]: Instant, [endSeconds, endNanoseconds]: Instant): Instant {
  const borrow = endNanoseconds < nanoseconds ? 1 : 0;
  return [endSeconds - seconds - borrow, endNanoseconds - nanoseconds + borrow * 1e9];
}
