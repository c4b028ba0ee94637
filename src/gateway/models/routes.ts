import { Readable } from 'node:stream';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { Op } from '../../lib/operation.ts';
import { PATHS } from '../../remote/wire.ts';
import { continuedTrace } from '../../telemetry/spans.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import { leaseOf } from '../lease-check.ts';
import { parentUnder } from '../message-traces.ts';
import type { RouteModule } from '../routes.ts';
import { POD } from '../schemas.ts';
import { speakerOf, type SpeakerDeps } from '../speaker.ts';
import { AnswerLines } from './lines.ts';
import { EmbedBody, rebuiltRequest, StreamBody } from './request.ts';

export type ModelRouteDeps = Omit<SpeakerDeps, 'directory' | 'ids'>;

const MAX_BODY_BYTES = 8 * 1_024 * 1_024;
/** Timeout of a response; an earlier deadline of the message applies. */
const STREAM_TIMEOUT_MS = 10 * 60_000;
const EMBED_TIMEOUT_MS = 60_000;

/** Models for pods. An error before the provider call is an HTTP error response; a later one is the last line of the stream. */
export function modelRoutes(own: ModelRouteDeps): RouteModule {
  return (server, deps) => {
    const { clock, log, ids, directory } = deps;
    const accessDeps: SpeakerDeps = { ...own, directory, ids };
    server.post(
      PATHS.modelStream,
      {
        config: { access: 'pod' },
        bodyLimit: MAX_BODY_BYTES,
        schema: { ...POD, body: StreamBody, summary: 'Streams the response of a model as NDJSON' },
      },
      async (request, reply) => {
        const { lease, request: requested } = request.body;
        const { claims, state } = leaseOf(request, lease, deps);
        const modelAccess = speakerOf(accessDeps, state, false);
        const { model, resolved } = modelAccess.modelNamed(requested.model);
        const rebuilt = rebuiltRequest(requested, { model: resolved, maxOutputTokens: modelAccess.maxOutputTokens });
        const remaining = Math.min(STREAM_TIMEOUT_MS, Date.parse(claims.deadline) - clock.now().getTime());
        const op = opOf(clock, remaining, request.disconnected, request.id);
        const parent = parentUnder(claims, request.headers[TRACEPARENT]);
        const stream = new AnswerLines(continuedTrace(parent, model.stream(rebuilt, op)), {
          clock,
          failed: (error) =>
            log.error({ correlation: request.id, ...request.logFields, error }, 'a model stream failed'),
        });
        // After a disconnect the lines are not read any more, so the stream must be cancelled here.
        request.disconnected.addEventListener('abort', () => void stream.stop(), { once: true });
        const failure = await stream.firstFailure();
        if (isPreCallError(failure)) throw failure;
        void reply.type('application/x-ndjson').header('cache-control', 'no-store');
        return reply.send(Readable.from(stream.lines(), { objectMode: false }));
      },
    );
    server.post(
      PATHS.modelEmbed,
      {
        config: { access: 'pod' },
        bodyLimit: MAX_BODY_BYTES,
        schema: { ...POD, body: EmbedBody, summary: 'Embeds each text as a vector' },
      },
      async (request) => {
        const state = directory.byUid(request.pod.agentUid);
        if (state === undefined || state.suspended) {
          throw new TemperError(
            'TEMPER_AGENT_SUSPENDED',
            `agent "${request.pod.agent}" is suspended or does not exist`,
          );
        }
        const { charged } = speakerOf(accessDeps, state, false);
        const op = opOf(clock, EMBED_TIMEOUT_MS, request.disconnected, request.id);
        const vectors = await charged.embed([...request.body.texts], op);
        return { vectors: vectors.map((vector) => Array.from(vector)) };
      },
    );
  };
}

function opOf(clock: Clock, milliseconds: number, signal: AbortSignal, key: string): Op {
  return { signal, deadline: clock.monotonic() + Math.max(0, milliseconds), key };
}

/** Errors that occur before the provider call. */
function isPreCallError(error: unknown): boolean {
  return isTemperError(error, 'TEMPER_QUOTA_EXCEEDED') || isTemperError(error, 'TEMPER_LEDGER_UNAVAILABLE');
}
