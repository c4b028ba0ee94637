import type { PassThrough } from 'node:stream';
import { Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { SessionStreamLine } from '../../gateway-api/user-api.ts';
import { SessionId, text } from '../../tools/event-schema/parts.ts';
import type { GatewayDeps } from '../deps.ts';
import { AGENT_PATH, AgentParams, requireAgent } from './messages.ts';
import type { GatewayServer } from '../http/routes.ts';
import { textStream } from '../http/body/text-stream.ts';
import { ERROR_RESPONSES, USER_SECURITY } from '../http/schemas.ts';

const BATCH = 500;

const Query = Type.Object(
  {
    after: Type.Optional(
      Type.Integer({ minimum: 0, description: 'Only lines after this sequence. Absent: all stored lines.' }),
    ),
    skip: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 500, description: '`skip` of the last line that was read; 0 when absent.' }),
    ),
    message: Type.Optional(text(128, 'End with the reply to this message.')),
    follow: Type.Optional(Type.Boolean({ description: 'Wait for new lines.' })),
  },
  closed,
);

const Lines = Type.Unsafe<PassThrough>({
  type: 'string',
  description: 'One `SessionStreamLine` per line; empty lines are keep-alive.',
});

interface FollowRequest {
  agentUid: string;
  session: string;
  after: number;
  skip: number;
  message: string | undefined;
}

/** The events of a session as they happen, one JSON value per line. */
export function userStreamRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.get(
    `${AGENT_PATH}/sessions/:session/events`,
    {
      config: { access: 'user', longPoll: true },
      schema: {
        ...USER_SECURITY,
        summary: 'The events of a session, one JSON value per line',
        params: Type.Intersect([AgentParams, Type.Object({ session: SessionId })]),
        querystring: Query,
        produces: ['application/x-ndjson'],
        response: { 200: Lines, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const { uid } = requireAgent(request.params, deps);
      const { after = 0, skip = 0, message, follow = false } = request.query;
      const signal = AbortSignal.any([request.disconnected, deps.draining]);
      const followRequest = { agentUid: uid, session: request.params.session, after, skip, message };
      const lines = follow ? live(followRequest, signal, deps) : stored(followRequest, deps);
      return reply
        .type('application/x-ndjson')
        .header('cache-control', 'no-store')
        .send(textStream(jsonLines(lines), { keepAlive: '\n', signal, log: deps.log }));
    },
  );
}

async function* live(
  { agentUid, session, after, skip, message }: FollowRequest,
  signal: AbortSignal,
  { events }: GatewayDeps,
): AsyncGenerator<SessionStreamLine> {
  try {
    for await (const line of events.follow(agentUid, session, {
      after,
      skip,
      signal,
      failOnStoreLoss: message !== undefined,
    })) {
      yield line;
      if (isReplyTo(line, message) || (message === undefined && isEndOfSession(line))) return;
    }
  } catch (error) {
    if (message === undefined || !isTemperError(error, 'TEMPER_NATS_DATA_LOST')) throw error;
    yield { seq: after, kind: 'failed', message, code: error.code, text: error.message };
  }
}

async function* stored(
  { message, ...position }: FollowRequest,
  { events }: GatewayDeps,
): AsyncGenerator<SessionStreamLine> {
  for await (const line of storedLines(events, position)) {
    yield line;
    if (isReplyTo(line, message)) return;
  }
}

/** The lines of a session that are stored behind a position, oldest first. */
export async function* storedLines(
  events: Pick<GatewayDeps['events'], 'read'>,
  { agentUid, session, after, skip }: Omit<FollowRequest, 'message'>,
): AsyncGenerator<SessionStreamLine> {
  let position: { seq: number; skip?: number | undefined } = { seq: after, skip };
  for (;;) {
    const lines = await events.read(agentUid, session, position.seq, BATCH, position.skip);
    yield* lines;
    const last = lines.at(-1);
    if (last === undefined || lines.length < BATCH) return;
    position = 'skip' in last ? last : { seq: last.seq };
  }
}

/** The gateway writes this event when a user closes the session; nothing follows it. */
function isEndOfSession(line: SessionStreamLine): boolean {
  return line.kind === 'event' && line.event.type === 'error' && line.event.code === 'TEMPER_SESSION_CLOSED';
}

function isReplyTo(line: SessionStreamLine, message: string | undefined): boolean {
  return line.kind !== 'event' && message !== undefined && line.message === message;
}

async function* jsonLines(lines: AsyncIterable<SessionStreamLine>): AsyncGenerator<string> {
  for await (const line of lines) yield `${JSON.stringify(line)}\n`;
}
