import type { FastifyRequest } from 'fastify';
import { hasRequiredForm } from '../../agent/returns/reply-format.ts';
import { isErrorCode } from '../../lib/error-codes.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { DeliveryOutcome, type OutcomeContent } from '../../gateway-api/delivery-schemas.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import { publishParked } from '../approvals/routes.ts';
import type { GatewayDeps } from '../deps.ts';
import { type InboxDeliveryEnds, InboxReceiver } from '../../nats/inbox/message-ports.ts';
import { coordinatesOf, type DeliveryTokenClaims } from './token.ts';
import { secondsSince } from './instrumented-inbox.ts';
import { authorizeDelivery, authorizeDeliveryEnd } from './authorize.ts';
import { traceReply } from '../tracing/message-traces.ts';
import type { GatewayServer } from '../http/routes.ts';
import { storeReports, takeReportBytes } from '../pods/reports.ts';
import { appendItems } from '../storage/append-items.ts';
import { Done, ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';

const MAX_REASON_CHARACTERS = 1_000;
/** Limit of a reply as JSON: the NATS payload limit less the envelope. */
const MAX_REPLY_BYTES = 180 * 1_024;

/** Ends or extends deliveries. Any replica accepts the request; a repeated request has no further effect. */
export function deliveryOutcomeRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    POD_API_PATHS.deliveries,
    {
      config: { access: 'pod', writesStorage: true },
      schema: {
        ...POD_SECURITY,
        summary: 'Ends a delivery, or extends its acknowledgement timeout',
        body: DeliveryOutcome,
        response: { 204: Done, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      await applyOutcome(request, request.body, deps);
      return reply.code(204).send(null);
    },
  );
}

async function applyOutcome(request: FastifyRequest, outcome: DeliveryOutcome, deps: GatewayDeps): Promise<void> {
  if (outcome.action === 'extend') {
    const { claims } = authorizeDelivery(request, outcome.deliveryToken, deps);
    await deliveryOf(claims, deps).extend();
    return;
  }
  const { claims } = authorizeDeliveryEnd(request, outcome.deliveryToken, deps);
  const content = contentOf(request, outcome, claims, deps);
  switch (outcome.action) {
    case 'ack': {
      const text = withinLimit(outcome.reply);
      const finishReason = text === outcome.reply ? outcome.finishReason : 'truncated';
      // The gateway checks it itself: the pod may claim anything.
      const { returns } = deps.directory.byUid(claims.agentUid)?.agent.spec ?? {};
      const format = finishReason === 'complete' && hasRequiredForm(returns, text) ? { format: 'json' as const } : {};
      const line = { kind: 'reply', message: claims.message, text, finishReason, ...format } as const;
      // Reply before ack: after a crash in between the message is redelivered and its reply exists already.
      const storeReply = async (isCurrent: Promise<void>): Promise<void> => {
        await content.store(isCurrent);
        await Promise.all([
          traceReply(claims, request.headers[TRACEPARENT], (traceparent) =>
            deps.events.append(claims.agentUid, claims.session, line, { traceparent }),
          ),
          deps.recorder.answered(claims, finishReason),
          deps.answers.answered(claims, text, finishReason),
        ]);
      };
      await deliveryOf(claims, deps).ack(storeReply);
      if (claims.time !== undefined) {
        deps.metrics.observe('temper_message_duration_seconds', {}, secondsSince(claims.time, deps.clock));
      }
      return;
    }
    case 'retry':
      await content.store();
      await deliveryOf(claims, deps).retry(outcome.delayMs);
      return;
    case 'park': {
      await content.store();
      const until = await deps.approvals.parkedUntil(claims, outcome.requests);
      await deliveryOf(claims, deps).park(until);
      await publishParked(outcome.requests, claims, deps);
      // After the state: an Approval that arrived before found no parked message.
      await deps.approvals.afterPark(claims, outcome.requests);
      return;
    }
    case 'reject':
      if (!isErrorCode(outcome.code)) {
        throw new TemperError('TEMPER_REQUEST_INVALID', 'body.code is not a known error code; see the error reference');
      }
      await content.store();
      await deliveryOf(claims, deps).reject(outcome.code, printable(outcome.message, MAX_REASON_CHARACTERS));
      return;
    default:
      throw new TemperError('TEMPER_INTERNAL', `unknown action: ${String(outcome satisfies never)}`);
  }
}

/**
 * What the outcome carries. Takes its bytes from the limits of the agent at once; `store` can be repeated. The items of the session decide
 * whether the message can end, so nothing that ends it precedes them. Nothing takes effect before `admitted` resolves.
 */
function contentOf(
  request: FastifyRequest,
  { append, reports, toolCalls = [] }: OutcomeContent,
  claims: DeliveryTokenClaims,
  deps: GatewayDeps,
): { store: (admitted?: Promise<void>) => Promise<void> } {
  const { agentUid, session } = claims;
  if (reports !== undefined) takeReportBytes(agentUid, reports.batch, deps);
  const storeItems = async (admitted?: Promise<void>): Promise<void> => {
    if (append === undefined) await admitted;
    else await appendItems(deps.sessionsOf(agentUid), session, append, admitted);
  };
  const storeBatch = async (before?: Promise<void>): Promise<void> => {
    await before;
    if (reports !== undefined) await storeReports(request, reports.batch, reports.key, deps, claims);
  };
  return {
    async store(admitted) {
      const items = storeItems(admitted);
      // Events of a session without items are refused. Others are stored at once with the items: the pod could have sent them before.
      const isNew = append?.afterSeq === 0;
      const counted = items.then(() => deps.recorder.called(claims, toolCalls));
      await Promise.all([counted, storeBatch(isNew ? items : admitted)]);
    },
  };
}

/** The delivery of a token, which any replica may have received. */
function deliveryOf(claims: DeliveryTokenClaims, { inbox, clock }: GatewayDeps): InboxDeliveryEnds {
  return new InboxReceiver(inbox, claims.agentUid, clock).resume(coordinatesOf(claims));
}

/** Cuts a reply that NATS would refuse: its message could not be acknowledged and would be redelivered without end. */
function withinLimit(reply: string): string {
  let text = reply;
  for (;;) {
    const bytes = Buffer.byteLength(JSON.stringify(text));
    if (bytes <= MAX_REPLY_BYTES) return text;
    text = text.slice(0, Math.floor((text.length * MAX_REPLY_BYTES) / bytes) - 1).toWellFormed();
  }
}
