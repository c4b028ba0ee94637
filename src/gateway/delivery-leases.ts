import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { ERROR_CODES } from '../lib/error-codes.ts';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import { type LeaseAnswer, PATHS } from '../remote/wire.ts';
import { TRACEPARENT } from '../telemetry/traceparent.ts';
import type { GatewayDeps } from './deps.ts';
import { coordinatesOf } from './lease.ts';
import { secondsSince } from './counted-inbox.ts';
import { leaseOf, settlingLeaseOf } from './lease-check.ts';
import { replyTraced } from './message-traces.ts';
import type { GatewayServer } from './routes.ts';
import { Code, closed, Done, Lease, POD, REFUSALS, TEXT_CHARACTERS, text } from './schemas.ts';

const REASON_CHARACTERS = 1_000;
/** Of a reply as JSON; what the bus takes, less what is around it. */
const REPLY_BYTES = 180 * 1_024;

const Answer = Type.Union(
  [
    Type.Object(
      {
        lease: Lease,
        action: Type.Literal('ack'),
        reply: text(TEXT_CHARACTERS, 'What the agent answers.', 0),
        ending: Type.Enum(['complete', 'cut', 'refusal']),
      },
      closed,
    ),
    Type.Object(
      {
        lease: Lease,
        action: Type.Literal('retry'),
        afterMilliseconds: Type.Integer({ minimum: 0, maximum: 3_600_000 }),
      },
      closed,
    ),
    Type.Object(
      { lease: Lease, action: Type.Literal('reject'), code: Code, message: text(10_000, 'For people.', 0) },
      closed,
    ),
    Type.Object({ lease: Lease, action: Type.Literal('extend') }, closed),
  ],
  { description: '`LeaseAnswer`: what becomes of a delivery.' },
);

/** Ends deliveries, or makes them last longer. Any replica may be asked, and the same answer twice is one. */
export function deliveryLeaseRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    PATHS.leases,
    {
      config: { access: 'pod' },
      schema: {
        ...POD,
        summary: 'Ends a delivery, or extends its lease',
        body: Answer,
        response: { 204: Done, ...REFUSALS },
      },
    },
    async (request, reply) => {
      await settle(request, request.body, deps);
      return reply.code(204).send(null);
    },
  );
}

async function settle(request: FastifyRequest, answer: LeaseAnswer, deps: GatewayDeps): Promise<void> {
  if (answer.action === 'extend') {
    const { claims } = leaseOf(request, answer.lease, deps);
    await deps.inbox.working(coordinatesOf(claims));
    return;
  }
  const { claims } = settlingLeaseOf(request, answer.lease, deps);
  switch (answer.action) {
    case 'ack': {
      const text = fitting(answer.reply);
      const ending = text === answer.reply ? answer.ending : 'cut';
      // In this order: a gateway that ends in between leaves a message that is delivered again, and its reply is there already.
      const line = { kind: 'reply', message: claims.message, text, ending } as const;
      await replyTraced(claims, request.headers[TRACEPARENT], (traceparent) =>
        deps.events.append(claims.agentUid, claims.session, line, { traceparent }),
      );
      await deps.inbox.ack(coordinatesOf(claims));
      if (claims.time !== undefined) {
        deps.metrics.observe('temper_message_duration_seconds', {}, secondsSince(claims.time, deps.clock));
      }
      return;
    }
    case 'retry':
      await deps.inbox.retry(coordinatesOf(claims), answer.afterMilliseconds);
      return;
    case 'reject':
      if (!Object.hasOwn(ERROR_CODES, answer.code)) {
        throw new TemperError('TEMPER_REQUEST_INVALID', 'body.code is no error code; see the error reference');
      }
      await deps.inbox.reject(coordinatesOf(claims), answer.code, printable(answer.message, REASON_CHARACTERS));
      return;
    default:
      throw new TemperError('TEMPER_INTERNAL', `an action nobody knows: ${String(answer satisfies never)}`);
  }
}

/** A reply the bus would refuse could never be acknowledged, and its message would come again and again: it is cut. */
function fitting(reply: string): string {
  let text = reply;
  for (;;) {
    const bytes = Buffer.byteLength(JSON.stringify(text));
    if (bytes <= REPLY_BYTES) return text;
    text = text.slice(0, Math.floor((text.length * REPLY_BYTES) / bytes) - 1).toWellFormed();
  }
}
