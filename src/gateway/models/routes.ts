import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { onAbort } from '../../lib/async/abort.ts';
import { Type } from 'typebox';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { EmbedRequest, EmbedResponse, StreamRequest } from '../../gateway-api/model-schemas.ts';
import { ACCEPTED_LINES_HEADER, POD_API_PATHS, RETRY_LINES } from '../../gateway-api/pod-api.ts';
import { continueTraceOver } from '../../telemetry/spans.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import type { ModelCallOptions, ModelEvent } from '../../models/port.ts';
import { appendItems } from '../storage/append-items.ts';
import type { CarriedCall } from '../delivery/answer-signatures.ts';
import { authorizeDelivery } from '../delivery/authorize.ts';
import { generatedText } from '../delivery/carried-calls.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';
import type { GatewayDeps } from '../deps.ts';
import { parentSpanOf } from '../tracing/message-traces.ts';
import type { RouteModule } from '../http/routes.ts';
import { ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';
import { AnswerText } from './answer-text.ts';
import { modelAccessFor, type ModelAccessDeps } from './agent-model-access.ts';
import { NdjsonModelStream } from './ndjson-stream.ts';
import { sanitizeRequest } from './request.ts';

export type ModelRouteDeps = Omit<ModelAccessDeps, 'directory'>;

export const MAX_MODEL_BODY_BYTES = 8 * 1_024 * 1_024;
/** 5,000 messages with their members, and the schemas of 256 tools. */
export const MAX_MODEL_BODY_VALUES = 200_000;
/** Timeout of a response; an earlier deadline of the message applies. */
const STREAM_TIMEOUT_MS = 10 * 60_000;
const EMBED_TIMEOUT_MS = 60_000;

const Lines = Type.Unsafe<Readable>({
  type: 'string',
  description: 'One `ModelStreamLine` per line; empty lines are keep-alive.',
});

const streamSchema = {
  ...POD_SECURITY,
  body: StreamRequest,
  summary: 'Streams the response of a model as NDJSON',
  produces: ['application/x-ndjson'],
  response: { 200: Lines, ...ERROR_RESPONSES },
};
const embedSchema = {
  ...POD_SECURITY,
  body: EmbedRequest,
  summary: 'Embeds each text as a vector',
  response: { 200: EmbedResponse, ...ERROR_RESPONSES },
};

/** Models for pods. An error before the provider call is an HTTP error response; a later one is the last line of the stream. */
export function modelRoutes(own: ModelRouteDeps): RouteModule {
  return (server, deps) => {
    const { clock, log, directory } = deps;
    const accessDeps: ModelAccessDeps = { ...own, directory };
    server.post(
      POD_API_PATHS.modelStream,
      {
        config: { access: 'pod', maxValues: MAX_MODEL_BODY_VALUES },
        bodyLimit: MAX_MODEL_BODY_BYTES,
        schema: streamSchema,
      },
      async (request, reply) => {
        const { deliveryToken, request: requested, append } = request.body;
        const { claims, state } = authorizeDelivery(request, deliveryToken, deps);
        const modelAccess = modelAccessFor(accessDeps, state, false, { root: claims.root });
        const { pipeline, resolved } = modelAccess.requestedModel(requested.model);
        const rebuilt = sanitizeRequest(requested, { model: resolved, maxOutputTokens: modelAccess.maxOutputTokens });
        const remaining = Math.min(STREAM_TIMEOUT_MS, Date.parse(claims.deadline) - clock.now().getTime());
        const op = opOf(clock, remaining, request.disconnected, request.id);
        const parent = parentSpanOf(claims, request.headers[TRACEPARENT]);
        const text = new AnswerText();
        const callOp = { ...op, ...repeatsTo(request.headers, () => stream) };
        const answer = text.collect(continueTraceOver(parent, pipeline.stream(rebuilt, callOp)));
        const stored = append && appendItems(deps.sessionsOf(claims.agentUid), claims.session, append);
        const stream = new NdjsonModelStream(stored === undefined ? answer : endAfter(stored, answer), {
          clock,
          signature: () => signatureOf(generatedText(rebuilt, text.value), claims, deps),
          failed: (error) =>
            log.error({ correlation: request.id, ...request.logFields, error }, 'a model stream failed'),
        });
        // After a disconnect the lines are not read any more, so the stream must be cancelled here.
        onAbort(request.disconnected, () => void stream.cancel());
        const failure = await stream.firstError();
        if (isPreCallError(failure)) throw failure;
        void reply.type('application/x-ndjson').header('cache-control', 'no-store');
        return reply.send(Readable.from(stream.lines(), { objectMode: false }));
      },
    );
    server.post(
      POD_API_PATHS.modelEmbed,
      {
        config: { access: 'pod' },
        bodyLimit: MAX_MODEL_BODY_BYTES,
        schema: embedSchema,
      },
      async (request) => {
        const state = directory.byUid(request.pod.agentUid);
        if (state === undefined || state.suspended) {
          throw new TemperError(
            'TEMPER_AGENT_SUSPENDED',
            `agent "${request.pod.agent}" is suspended or does not exist`,
          );
        }
        const { meteredModel } = modelAccessFor(accessDeps, state, false);
        const op = opOf(clock, EMBED_TIMEOUT_MS, request.disconnected, request.id);
        const vectors = await meteredModel.embed([...request.body.texts], op);
        return { vectors: vectors.map((vector) => Array.from(vector)) };
      },
    );
  };
}

/** A pod of an earlier version does not know the lines of repetitions. */
function repeatsTo(headers: IncomingHttpHeaders, stream: () => NdjsonModelStream): Pick<ModelCallOptions, 'onRepeat'> {
  return headers[ACCEPTED_LINES_HEADER] === RETRY_LINES ? { onRepeat: (call) => stream().repeats(call) } : {};
}

function signatureOf(
  call: CarriedCall | undefined,
  claims: DeliveryTokenClaims,
  { answerSignatures }: Pick<GatewayDeps, 'answerSignatures'>,
): string | undefined {
  return call === undefined ? undefined : answerSignatures.sign(claims, call);
}

/** The events of a model; the end follows when the items of the session are stored. */
async function* endAfter(stored: Promise<unknown>, events: AsyncIterable<ModelEvent>): AsyncGenerator<ModelEvent> {
  // It may fail long before the end.
  stored.catch(() => undefined);
  for await (const event of events) {
    if (event.type === 'end') await stored;
    yield event;
  }
}

function opOf(clock: Clock, milliseconds: number, signal: AbortSignal, key: string): CallOptions {
  return { signal, deadline: clock.monotonic() + Math.max(0, milliseconds), key };
}

/** Errors that occur before the provider call. */
export function isPreCallError(error: unknown): boolean {
  return isTemperError(error, 'TEMPER_QUOTA_EXCEEDED') || isTemperError(error, 'TEMPER_LEDGER_UNAVAILABLE');
}
