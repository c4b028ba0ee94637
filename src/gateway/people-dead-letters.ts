import { Type } from 'typebox';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import type { BuriedMessage } from '../nats/burial.ts';
import type { DeadLetter } from '../remote/people.ts';
import { inBatches } from './batches.ts';
import type { AgentState, GatewayDeps } from './deps.ts';
import { wakeIfAsleep } from './messages.ts';
import { Namespace, NAMESPACE_PATH } from './people.ts';
import type { GatewayServer } from './routes.ts';
import { Done, PERSON, REFUSALS } from './schemas.ts';

const MAX_EXCERPT_CHARACTERS = 200;

const PATH = `${NAMESPACE_PATH}/deadletters`;
const LetterParams = Type.Object({ namespace: Namespace, id: Type.String({ pattern: '^[a-z0-9-]{1,128}$' }) });

/** Dead letters for users: list, redeliver, delete. */
export function peopleDeadLetterRoutes(server: GatewayServer, deps: GatewayDeps): void {
  const config = { access: 'user' } as const;
  server.get(
    PATH,
    {
      config,
      schema: {
        ...PERSON,
        params: Type.Object({ namespace: Namespace }),
        response: { 200: Type.Unknown({ description: '`DeadLetterSummary[]`, newest first.' }), ...REFUSALS },
      },
    },
    async (request) => {
      const letters = await lettersOf(request.params.namespace, deps);
      return letters.map(({ letter, state }) => summaryOf(letter, state));
    },
  );
  server.post(
    `${PATH}/:id/retry`,
    { config, schema: { ...PERSON, params: LetterParams, response: { 204: Done, ...REFUSALS } } },
    async (request, reply) => {
      const { state, letter } = await letterOf(request.params, deps);
      await deps.deadLetters.retry(letter.agentUid, letter.id);
      await wakeIfAsleep(state, deps);
      return reply.code(204).send(null);
    },
  );
  server.delete(
    `${PATH}/:id`,
    { config, schema: { ...PERSON, params: LetterParams, response: { 204: Done, ...REFUSALS } } },
    async (request, reply) => {
      const { letter } = await letterOf(request.params, deps);
      await deps.deadLetters.drop(letter.agentUid, letter.id);
      return reply.code(204).send(null);
    },
  );
}

interface AgentLetter {
  letter: BuriedMessage;
  state: AgentState;
}

/** Reads only agents of the namespace: dead letters of other namespaces are not visible by any id and do not use up a limit. */
async function lettersOf(namespace: string, { directory, deadLetters }: GatewayDeps): Promise<AgentLetter[]> {
  const letters = await inBatches(directory.agents(namespace), async (state) =>
    (await deadLetters.list(state.uid)).map((letter) => ({ letter, state })),
  );
  return letters.flat().sort((one, other) => (one.letter.time < other.letter.time ? 1 : -1));
}

async function letterOf({ namespace, id }: { namespace: string; id: string }, deps: GatewayDeps): Promise<AgentLetter> {
  const matches = await inBatches(deps.directory.agents(namespace), async (state) => {
    const letter = await deps.deadLetters.get(state.uid, id);
    return letter === undefined ? [] : [{ letter, state }];
  });
  const [match] = matches.flat();
  if (match === undefined) throw new TemperError('TEMPER_NOT_FOUND', 'there is no such dead letter');
  return match;
}

function summaryOf({ id, time, deliveries, code, reason, message }: BuriedMessage, { agent }: AgentState): DeadLetter {
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
