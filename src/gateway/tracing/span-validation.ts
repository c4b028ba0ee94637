import { isErrorCode } from '../../lib/error-codes.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { ReportedSpan } from '../../telemetry/reported-span.ts';
import { ATTRIBUTES, messagingAttributes, SPANS } from '../../telemetry/spans.ts';
import { traceIdOf } from '../../telemetry/traceparent.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';

type AttributeValue = ReportedSpan['attributes'][string];

const MAX_TEXT_CHARACTERS = 128;
const MAX_TEXTS = 16;
const MAX_COUNT = 1_000_000_000;
/** Longer than the work on any message. */
const MAX_AGE_SECONDS = 25 * 3_600;
/** Clock skew between nodes. */
const MAX_SKEW_SECONDS = 300;

/** Allowed attributes and their normalization; all other attributes are dropped. */
const ALLOWED_ATTRIBUTES: Readonly<Record<string, (value: AttributeValue) => AttributeValue | undefined>> = {
  [ATTRIBUTES.requestModel]: shortText,
  [ATTRIBUTES.responseModel]: shortText,
  [ATTRIBUTES.tool]: shortText,
  [ATTRIBUTES.finishReasons]: shortTexts,
  [ATTRIBUTES.inputTokens]: count,
  [ATTRIBUTES.outputTokens]: count,
  [ATTRIBUTES.errorType]: (value) => (typeof value === 'string' && isErrorCode(value) ? value : undefined),
};

/**
 * A reported span as the gateway exports it. It must belong to the trace of the message. The gateway derives its name from the operation
 * and takes agent, session and message from the delivery token, not from the pod. Throws TEMPER_REQUEST_INVALID with the member.
 */
export function validateSpan(span: ReportedSpan, claims: DeliveryTokenClaims, now: Date): ReportedSpan {
  if (span.traceId !== traceIdOf(claims.traceparent)) throw invalid('traceId', 'is not the trace of the message');
  const [start, end] = [secondsOf(span.start), secondsOf(span.end)];
  const nowSeconds = now.getTime() / 1_000;
  if (end < start) throw invalid('end', 'is before its start');
  if (start < nowSeconds - MAX_AGE_SECONDS || end > nowSeconds + MAX_SKEW_SECONDS)
    throw invalid('start', 'is too old or in the future');
  const allowed: ReportedSpan['attributes'] = {};
  for (const [name, value] of Object.entries(span.attributes)) {
    const normalized = Object.hasOwn(ALLOWED_ATTRIBUTES, name) ? ALLOWED_ATTRIBUTES[name]?.(value) : undefined;
    if (normalized !== undefined) allowed[name] = normalized;
  }
  const { name, kind, attributes } = operationOf(span.attributes, allowed, claims);
  const { traceId, spanId, parentSpanId } = span;
  return {
    traceId,
    spanId,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    name,
    kind,
    start: span.start,
    end: span.end,
    failed: span.failed,
    attributes: { ...allowed, ...attributes, [ATTRIBUTES.conversation]: claims.session },
  };
}

type SpanOperation = Pick<ReportedSpan, 'name' | 'kind' | 'attributes'>;

/** Name, kind and attributes of the four known operations. */
function operationOf(
  reported: ReportedSpan['attributes'],
  allowed: ReportedSpan['attributes'],
  claims: DeliveryTokenClaims,
): SpanOperation {
  const operation = reported[ATTRIBUTES.operation] ?? reported[ATTRIBUTES.messagingType];
  const attributes = { [ATTRIBUTES.operation]: String(operation), [ATTRIBUTES.agent]: claims.agent };
  switch (operation) {
    case 'invoke_agent':
      return {
        name: SPANS.invokeAgent(claims.agent),
        kind: 'INTERNAL',
        attributes: { ...attributes, [ATTRIBUTES.rootMessage]: claims.root },
      };
    case 'chat':
      return { name: SPANS.chat(String(allowed[ATTRIBUTES.requestModel] ?? '')), kind: 'CLIENT', attributes };
    case 'execute_tool':
      return { name: SPANS.executeTool(String(allowed[ATTRIBUTES.tool] ?? '')), kind: 'INTERNAL', attributes };
    case 'process': {
      const { message, session, root } = claims;
      const facts = messagingAttributes('process', 'temper-inbox', { message, session, root });
      return { name: SPANS.process, kind: 'CONSUMER', attributes: { ...facts } as SpanOperation['attributes'] };
    }
    default:
      throw invalid('attributes', `contain no known operation in ${ATTRIBUTES.operation}`);
  }
}

function shortText(value: AttributeValue): string | undefined {
  return typeof value === 'string' ? printable(value, MAX_TEXT_CHARACTERS) : undefined;
}

function shortTexts(value: AttributeValue): string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.slice(0, MAX_TEXTS).map((text) => printable(text, MAX_TEXT_CHARACTERS));
}

function count(value: AttributeValue): number | undefined {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) return undefined;
  return Math.min(value, MAX_COUNT);
}

function secondsOf([seconds, nanoseconds]: ReportedSpan['start']): number {
  return seconds + nanoseconds / 1e9;
}

function invalid(member: string, rule: string): TemperError {
  return new TemperError('TEMPER_REQUEST_INVALID', `body.spans: ${member} ${rule}`);
}
