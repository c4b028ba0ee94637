import { Type } from 'typebox';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { StoredDeadLetter } from '../../nats/dead-letters/dead-letter-writer.ts';
import { DeadLetterSummary } from '../../gateway-api/user-schemas.ts';
import { mapInBatches } from '../concurrency-limit.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { requestWakeup } from '../pods/wakeup.ts';
import { Namespace, NAMESPACE_PATH } from './messages.ts';
import type { GatewayServer } from '../http/routes.ts';
import { Done, USER_SECURITY, ERROR_RESPONSES } from '../http/schemas.ts';

const MAX_EXCERPT_CHARACTERS = 200;

const PATH = `${NAMESPACE_PATH}/deadletters`;
const LetterParams = Type.Object({ namespace: Namespace, id: Type.String({ pattern: '^[a-z0-9-]{1,128}$' }) });

/** Dead letters for users: list, redeliver, delete. */
export function userDeadLetterRoutes(server: GatewayServer, deps: GatewayDeps): void {
  const config = { access: 'user' } as const;
  server.get(
    PATH,
    {
      config,
      schema: {
        ...USER_SECURITY,
        params: Type.Object({ namespace: Namespace }),
        response: { 200: Type.Array(DeadLetterSummary, { description: 'Newest first.' }), ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const letters = await lettersOf(request.params.namespace, deps);
      return letters.map(({ letter, state }) => summaryOf(letter, state));
    },
  );
  server.post(
    `${PATH}/:id/retry`,
    { config, schema: { ...USER_SECURITY, params: LetterParams, response: { 204: Done, ...ERROR_RESPONSES } } },
    async (request, reply) => {
      const { state, letter } = await letterOf(request.params, deps);
      await deps.deadLetters.retry(letter.agentUid, letter.id);
      await requestWakeup(state, deps);
      return reply.code(204).send(null);
    },
  );
  server.delete(
    `${PATH}/:id`,
    { config, schema: { ...USER_SECURITY, params: LetterParams, response: { 204: Done, ...ERROR_RESPONSES } } },
    async (request, reply) => {
      const { letter } = await letterOf(request.params, deps);
      await deps.deadLetters.drop(letter.agentUid, letter.id);
      return reply.code(204).send(null);
    },
  );
}

interface AgentLetter {
  letter: StoredDeadLetter;
  state: AgentState;
}

/** Reads only agents of the namespace: dead letters of other namespaces are not visible by any id and do not use up a limit. */
async function lettersOf(namespace: string, { directory, deadLetters }: GatewayDeps): Promise<AgentLetter[]> {
  const letters = await mapInBatches(directory.agents(namespace), async (state) =>
    (await deadLetters.list(state.uid)).map((letter) => ({ letter, state })),
  );
  return letters.flat().sort((one, other) => (one.letter.time < other.letter.time ? 1 : -1));
}

async function letterOf({ namespace, id }: { namespace: string; id: string }, deps: GatewayDeps): Promise<AgentLetter> {
  const matches = await mapInBatches(deps.directory.agents(namespace), async (state) => {
    const letter = await deps.deadLetters.get(state.uid, id);
    return letter === undefined ? [] : [{ letter, state }];
  });
  const [match] = matches.flat();
  if (match === undefined) throw new TemperError('TEMPER_NOT_FOUND', 'there is no such dead letter');
  return match;
}

function summaryOf(
  { id, time, deliveries, code, reason, message }: StoredDeadLetter,
  { agent }: AgentState,
): DeadLetterSummary {
  return {
    id,
    agent: agent.metadata.name,
    session: message?.session ?? '',
    time,
    deliveries,
    code,
    message: printable(reason, 1_000),
    excerpt: printable(message?.text ?? '', MAX_EXCERPT_CHARACTERS),
  };
}
