import type { Envelope } from '../../bus/port.ts';
import { ATTRIBUTES, continueTrace, inSpan, messagingAttributes, SPANS } from '../../telemetry/spans.ts';
import {
  currentTraceparent,
  isSampled,
  spanContextOf,
  traceIdOf,
  unrecordedTraceparent,
} from '../../telemetry/traceparent.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';

/** Log fields of a message. */
export interface MessageLogFields {
  agent?: string;
  messageId?: string;
  session?: string;
  rootMessage?: string;
  traceId?: string;
  /** The trace is recorded. */
  sampled?: true;
}

export function messageLogFields({
  agent,
  message,
  session,
  root,
  traceparent,
}: DeliveryTokenClaims): MessageLogFields {
  const traceId = traceIdOf(traceparent);
  const sampled = isSampled(traceparent) ? { sampled: true as const } : {};
  const traced = traceId === undefined ? {} : { traceId, ...sampled };
  return { agent, messageId: message, session, rootMessage: root, ...traced };
}

/**
 * The parent span of a request with a delivery token: the span in the pod's header if it belongs to the message's trace and has the same
 * sampling flag; otherwise the span of the delivery. So a pod can neither write into another trace nor turn sampling on.
 */
export function parentSpanOf(
  { traceparent }: Pick<DeliveryTokenClaims, 'traceparent'>,
  header: unknown,
): string | undefined {
  const own = spanContextOf(traceparent);
  const stated = spanContextOf(header);
  const isOwn = stated !== undefined && stated.traceId === own?.traceId && stated.traceFlags === own.traceFlags;
  return isOwn && typeof header === 'string' ? header : traceparent;
}

/** Publishes a message within the trace of the header, or in a new one. Returns the receipt and the `traceparent` of the message. */
export function publishTraced<R extends { id: string }>(
  header: unknown,
  { session, seed }: { session: string; seed: string },
  publish: (traceparent: string) => Promise<R>,
): Promise<{ receipt: R; traceparent: string }> {
  const parent = typeof header === 'string' && spanContextOf(header) !== undefined ? header : undefined;
  const attributes = messagingAttributes('send', 'temper-inbox', { session });
  return continueTrace(parent, () =>
    inSpan(SPANS.send, { kind: 'PRODUCER', attributes }, async (span) => {
      const traceparent = currentTraceparent() ?? parent ?? unrecordedTraceparent(seed);
      const receipt = await publish(traceparent);
      span.setAttribute(ATTRIBUTES.messagingId, receipt.id);
      return { receipt, traceparent };
    }),
  );
}

/** Records that a pod received the message. Returns the `traceparent` for the pod's spans. */
export function traceReceive({ id, session, root, traceparent }: Envelope): Promise<string> {
  const attributes = messagingAttributes('receive', 'temper-inbox', { message: id, session, root });
  return continueTrace(traceparent, () =>
    inSpan(
      SPANS.receive,
      { kind: 'CLIENT', attributes },
      async () => currentTraceparent() ?? traceparent ?? unrecordedTraceparent(id),
    ),
  );
}

/** Writes a reply within the pod's span. */
export function traceReply(
  claims: DeliveryTokenClaims,
  header: unknown,
  write: (traceparent: string | undefined) => Promise<unknown>,
): Promise<void> {
  const { message, session, root } = claims;
  const attributes = messagingAttributes('send', 'temper-events', { message, session, root });
  const parent = parentSpanOf(claims, header);
  return continueTrace(parent, () =>
    inSpan(SPANS.reply, { kind: 'PRODUCER', attributes }, async () => {
      await write(currentTraceparent() ?? parent);
    }),
  );
}
