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

const BODY_BYTES = 8 * 1_024 * 1_024;
/** The longest any answer may take; the deadline of the message ends it earlier. */
const ANSWER_MILLISECONDS = 10 * 60_000;
const EMBED_MILLISECONDS = 60_000;

/** Models for pods. What is refused before a provider was asked is an HTTP refusal; what fails later is the last line. */
export function modelRoutes(own: ModelRouteDeps): RouteModule {
  return (server, deps) => {
    const { clock, log, ids, directory } = deps;
    const speakers: SpeakerDeps = { ...own, directory, ids };
    server.post(
      PATHS.modelStream,
      {
        config: { access: 'pod' },
        bodyLimit: BODY_BYTES,
        schema: { ...POD, body: StreamBody, summary: 'Lines of what a model answers' },
      },
      async (request, reply) => {
        const { lease, request: asked } = request.body;
        const { claims, state } = leaseOf(request, lease, deps);
        const speaker = speakerOf(speakers, state, false);
        const { model, resolved } = speaker.modelNamed(asked.model);
        const rebuilt = rebuiltRequest(asked, { model: resolved, maxOutputTokens: speaker.maxOutputTokens });
        const left = Math.min(ANSWER_MILLISECONDS, Date.parse(claims.deadline) - clock.now().getTime());
        const op = opOf(clock, left, request.gone, request.id);
        const parent = parentUnder(claims, request.headers[TRACEPARENT]);
        const answer = new AnswerLines(continuedTrace(parent, model.stream(rebuilt, op)), {
          clock,
          failed: (error) =>
            log.error({ correlation: request.id, ...request.about, error }, 'an answer of a model failed'),
        });
        // A caller who is gone reads no line, so that nobody would end the answer.
        request.gone.addEventListener('abort', () => void answer.stop(), { once: true });
        const failure = await answer.firstFailure();
        if (isRefusal(failure)) throw failure;
        void reply.type('application/x-ndjson').header('cache-control', 'no-store');
        return reply.send(Readable.from(answer.lines(), { objectMode: false }));
      },
    );
    server.post(
      PATHS.modelEmbed,
      {
        config: { access: 'pod' },
        bodyLimit: BODY_BYTES,
        schema: { ...POD, body: EmbedBody, summary: 'A vector for each text' },
      },
      async (request) => {
        const state = directory.byUid(request.pod.agentUid);
        if (state === undefined || state.suspended) {
          throw new TemperError('TEMPER_AGENT_SUSPENDED', `agent "${request.pod.agent}" is suspended or gone`);
        }
        const { charged } = speakerOf(speakers, state, false);
        const op = opOf(clock, EMBED_MILLISECONDS, request.gone, request.id);
        const vectors = await charged.embed([...request.body.texts], op);
        return { vectors: vectors.map((vector) => Array.from(vector)) };
      },
    );
  };
}

function opOf(clock: Clock, milliseconds: number, signal: AbortSignal, key: string): Op {
  return { signal, deadline: clock.monotonic() + Math.max(0, milliseconds), key };
}

/** Failures that came before any provider was asked. */
function isRefusal(error: unknown): boolean {
  return isTemperError(error, 'TEMPER_QUOTA_EXCEEDED') || isTemperError(error, 'TEMPER_LEDGER_UNAVAILABLE');
}
