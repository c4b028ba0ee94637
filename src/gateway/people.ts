import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { sha256 } from '../lib/canonical.ts';
import { TemperError } from '../lib/errors.ts';
import { PEOPLE_PATH, type PersonReceipt } from '../remote/people.ts';
import { TRACEPARENT, traceIdOf } from '../telemetry/traceparent.ts';
import type { AgentState, GatewayDeps } from './deps.ts';
import { sendTraced } from './message-traces.ts';
import { wakeIfAsleep } from './messages.ts';
import type { GatewayServer } from './routes.ts';
import { AgentName, closed, PERSON, REFUSALS, SessionId, TEXT_CHARACTERS, text } from './schemas.ts';

export const NAMESPACE_PATH = `${PEOPLE_PATH}/:namespace`;
export const AGENT_PATH = `${NAMESPACE_PATH}/agents/:agent`;
const CHAIN_MILLISECONDS = 3_600_000;

export const Namespace = Type.String({ pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', maxLength: 63 });
export const AgentParams = Type.Object({ namespace: Namespace, agent: AgentName });

const Body = Type.Object(
  { text: text(TEXT_CHARACTERS, 'What to say.'), session: Type.Optional(SessionId) },
  { ...closed, description: '`PersonMessage`.' },
);

const ReceiptBody = Type.Object(
  {
    id: Type.String(),
    session: Type.String(),
    duplicate: Type.Boolean(),
    awake: Type.Boolean(),
    after: Type.Integer({ description: 'The last line of the session before it.' }),
    traceId: Type.Optional(Type.String()),
  },
  closed,
);

/** The agent the path names. Throws TEMPER_NOT_FOUND. */
export function namedAgent(params: { namespace: string; agent: string }, { directory }: GatewayDeps): AgentState {
  const state = directory.agent(params.namespace, params.agent);
  if (state === undefined) {
    throw new TemperError('TEMPER_NOT_FOUND', `namespace ${params.namespace} has no agent "${params.agent}"`);
  }
  return state;
}

/** People's messages: each begins a chain of its own. */
export function peopleMessageRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    `${AGENT_PATH}/messages`,
    {
      config: { access: 'person', idempotent: true },
      schema: {
        ...PERSON,
        summary: 'Says something to an agent',
        params: AgentParams,
        body: Body,
        response: { 200: ReceiptBody, ...REFUSALS },
      },
    },
    async (request) => {
      const state = namedAgent(request.params, deps);
      return send(state, request, deps);
    },
  );
}

interface Said extends Pick<FastifyRequest, 'headers' | 'idempotencyKey' | 'about'> {
  params: { namespace: string };
  body: { text: string; session?: string };
}

async function send(state: AgentState, request: Said, deps: GatewayDeps): Promise<PersonReceipt> {
  const { text, session } = request.body;
  const key = `${state.uid}/${request.idempotencyKey}`;
  const chosen = session ?? newSession(key);
  const now = deps.clock.now();
  const before = await (session === undefined ? deps.events.beginning() : deps.events.last(state.uid, session));
  const message = {
    to: state.agent.metadata.name,
    from: 'person',
    session: chosen,
    text,
    depth: 0,
    deadline: new Date(now.getTime() + CHAIN_MILLISECONDS).toISOString(),
    time: now.toISOString(),
  };
  const sender = { uid: peopleOf(request.params.namespace), key };
  const { receipt, traceparent } = await sendTraced(
    request.headers[TRACEPARENT],
    { session: chosen, seed: key },
    (own) => deps.inbox.publish(state.uid, sender, { ...message, traceparent: own }),
  );
  const traceId = traceIdOf(traceparent) ?? '';
  Object.assign(request.about, { agent: message.to, messageId: receipt.id, session: chosen, traceId });
  await wakeIfAsleep(state, deps);
  // One that was sent before may have been answered before.
  const after = receipt.duplicate ? await deps.events.beginning() : before;
  return { ...receipt, session: chosen, awake: state.podUid !== undefined, after, traceId };
}

/** All people of a namespace are one sender to the bus, whose names of senders are short. */
function peopleOf(namespace: string): string {
  return `people-${sha256(namespace).slice('sha256:'.length, 'sha256:'.length + 32)}`;
}

/** The same for the same key, so that a message that is sent again lands in the session it opened. */
function newSession(key: string): string {
  return `s-${sha256(`session ${key}`).slice('sha256:'.length, 'sha256:'.length + 24)}`;
}
