import { isErrorCode } from '../lib/error-codes.ts';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import type { ReportedSpan } from '../telemetry/reported-span.ts';
import { ATTRIBUTES, messagingAttributes, SPANS } from '../telemetry/spans.ts';
import { traceIdOf } from '../telemetry/traceparent.ts';
import type { LeaseClaims } from './lease.ts';

type Value = ReportedSpan['attributes'][string];

const TEXT_CHARACTERS = 128;
const MOST_TEXTS = 16;
const MOST_COUNTED = 1_000_000_000;
/** No message is worked on for longer; clocks of nodes differ a little. */
const LONGEST_SECONDS = 25 * 3_600;
const SKEW_SECONDS = 300;

/** What may be said, and in which form; whatever else a pod says is left out. */
const TAKEN: Readonly<Record<string, (value: Value) => Value | undefined>> = {
  [ATTRIBUTES.requestModel]: shortText,
  [ATTRIBUTES.responseModel]: shortText,
  [ATTRIBUTES.tool]: shortText,
  [ATTRIBUTES.finishReasons]: shortTexts,
  [ATTRIBUTES.inputTokens]: counted,
  [ATTRIBUTES.outputTokens]: counted,
  [ATTRIBUTES.errorType]: (value) => (typeof value === 'string' && isErrorCode(value) ? value : undefined),
};

/**
 * A span as the gateway exports it: of the trace of the message its lease is for, under a name made here from what kind of work it
 * was, with the agent, the session and the message of the lease whatever the pod wrote. Throws TEMPER_REQUEST_INVALID naming the member.
 */
export function checkedSpan(span: ReportedSpan, claims: LeaseClaims, now: Date): ReportedSpan {
  if (span.traceId !== traceIdOf(claims.traceparent)) throw wrong('traceId', 'is none of the message the lease is for');
  const [start, end] = [secondsOf(span.start), secondsOf(span.end)];
  const today = now.getTime() / 1_000;
  if (end < start) throw wrong('end', 'is before its start');
  if (start < today - LONGEST_SECONDS || end > today + SKEW_SECONDS) throw wrong('start', 'is not of this day');
  const said: ReportedSpan['attributes'] = {};
  for (const [name, value] of Object.entries(span.attributes)) {
    const taken = Object.hasOwn(TAKEN, name) ? TAKEN[name]?.(value) : undefined;
    if (taken !== undefined) said[name] = taken;
  }
  const { name, kind, attributes } = workOf(span.attributes, said, claims);
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
    attributes: { ...said, ...attributes, [ATTRIBUTES.conversation]: claims.session },
  };
}

type Work = Pick<ReportedSpan, 'name' | 'kind' | 'attributes'>;

/** Four kinds of work are known. */
function workOf(given: ReportedSpan['attributes'], said: ReportedSpan['attributes'], claims: LeaseClaims): Work {
  const operation = given[ATTRIBUTES.operation] ?? given[ATTRIBUTES.messagingType];
  const attributes = { [ATTRIBUTES.operation]: String(operation), [ATTRIBUTES.agent]: claims.agent };
  switch (operation) {
    case 'invoke_agent':
      return {
        name: SPANS.invokeAgent(claims.agent),
        kind: 'INTERNAL',
        attributes: { ...attributes, [ATTRIBUTES.rootMessage]: claims.root },
      };
    case 'chat':
      return { name: SPANS.chat(String(said[ATTRIBUTES.requestModel] ?? '')), kind: 'CLIENT', attributes };
    case 'execute_tool':
      return { name: SPANS.executeTool(String(said[ATTRIBUTES.tool] ?? '')), kind: 'INTERNAL', attributes };
    case 'process': {
      const { message, session, root } = claims;
      const facts = messagingAttributes('process', 'temper-inbox', { message, session, root });
      return { name: SPANS.process, kind: 'CONSUMER', attributes: { ...facts } as Work['attributes'] };
    }
    default:
      throw wrong('attributes', `name no work of an agent: ${ATTRIBUTES.operation} is unknown`);
  }
}

function shortText(value: Value): string | undefined {
  return typeof value === 'string' ? printable(value, TEXT_CHARACTERS) : undefined;
}

function shortTexts(value: Value): string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.slice(0, MOST_TEXTS).map((text) => printable(text, TEXT_CHARACTERS));
}

function counted(value: Value): number | undefined {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) return undefined;
  return Math.min(value, MOST_COUNTED);
}

function secondsOf([seconds, nanoseconds]: ReportedSpan['start']): number {
  return seconds + nanoseconds / 1e9;
}

function wrong(member: string, rule: string): TemperError {
  return new TemperError('TEMPER_REQUEST_INVALID', `body.spans: ${member} ${rule}`);
}
