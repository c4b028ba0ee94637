import type { Envelope } from '../bus/port.ts';
import { ATTRIBUTES, continuingTrace, inSpan, messagingAttributes, SPANS } from '../telemetry/spans.ts';
import { currentTraceparent, spanContextOf, traceIdOf, unrecordedTraceparent } from '../telemetry/traceparent.ts';
import type { LeaseClaims } from './lease.ts';

/** What the logs say of a message. */
export interface MessageFacts {
  agent?: string;
  messageId?: string;
  session?: string;
  rootMessage?: string;
  traceId?: string;
}

export function factsOf({ agent, message, session, root, traceparent }: LeaseClaims): MessageFacts {
  const traceId = traceIdOf(traceparent);
  return { agent, messageId: message, session, rootMessage: root, ...(traceId === undefined ? {} : { traceId }) };
}

/**
 * What a call under a lease is a part of: the span the pod names in its header, while that is one of the message's own trace and
 * recorded no more and no less than it; the delivery otherwise. So no pod writes into another's trace, or has one recorded.
 */
export function parentUnder({ traceparent }: Pick<LeaseClaims, 'traceparent'>, header: unknown): string | undefined {
  const own = spanContextOf(traceparent);
  const said = spanContextOf(header);
  const isOwn = said !== undefined && said.traceId === own?.traceId && said.traceFlags === own.traceFlags;
  return isOwn && typeof header === 'string' ? header : traceparent;
}

/** Sends as a part of what the header names, or begins a trace. The message is given the trace that the answer names. */
export function sendTraced<R extends { id: string }>(
  header: unknown,
  { session, seed }: { session: string; seed: string },
  publish: (traceparent: string) => Promise<R>,
): Promise<{ receipt: R; traceparent: string }> {
  const parent = typeof header === 'string' && spanContextOf(header) !== undefined ? header : undefined;
  const attributes = messagingAttributes('send', 'temper-inbox', { session });
  return continuingTrace(parent, () =>
    inSpan(SPANS.send, { kind: 'PRODUCER', attributes }, async (span) => {
      const traceparent = currentTraceparent() ?? parent ?? unrecordedTraceparent(seed);
      const receipt = await publish(traceparent);
      span.setAttribute(ATTRIBUTES.messagingId, receipt.id);
      return { receipt, traceparent };
    }),
  );
}

/** Notes that a message was given to its pod; what the pod does is below the answer. */
export function receivedTrace({ id, session, root, traceparent }: Envelope): Promise<string> {
  const attributes = messagingAttributes('receive', 'temper-inbox', { message: id, session, root });
  return continuingTrace(traceparent, () =>
    inSpan(
      SPANS.receive,
      { kind: 'CLIENT', attributes },
      async () => currentTraceparent() ?? traceparent ?? unrecordedTraceparent(id),
    ),
  );
}

/** Writes a reply as a part of what the pod does. */
export function replyTraced(
  claims: LeaseClaims,
  header: unknown,
  write: (traceparent: string | undefined) => Promise<unknown>,
): Promise<void> {
  const { message, session, root } = claims;
  const attributes = messagingAttributes('send', 'temper-events', { message, session, root });
  const parent = parentUnder(claims, header);
  return continuingTrace(parent, () =>
    inSpan(SPANS.reply, { kind: 'PRODUCER', attributes }, async () => {
      await write(currentTraceparent() ?? parent);
    }),
  );
}
