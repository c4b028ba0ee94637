import { Type } from 'typebox';
import { A2A_PATH } from '../../a2a/card.ts';
import { A2A_LIMITS } from '../../a2a/protocol.ts';
import { AgentName } from '../../gateway-api/schema-parts.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, PEER_SECURITY } from '../http/schemas.ts';
import { Namespace } from '../users/messages.ts';

const Params = Type.Object({ namespace: Namespace, agent: AgentName });
const Card = Type.Unknown({ description: 'The agent card, in the form of the version that `A2A-Version` names.' });
const RpcBody = Type.Unknown({ description: 'A JSON-RPC request of A2A 1.0 or 0.3.' });
const RpcAnswer = Type.Unknown({ description: 'A JSON-RPC response, or a stream of them as server-sent events.' });

/** The SDK is large, so a gateway loads it with the first request. */
const answers = () => import('./answers.ts');

/** Agents that opt in, as agents of the Agent2Agent protocol: their cards and their JSON-RPC endpoints. */
export function a2aRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.get(
    `${A2A_PATH}/.well-known/agent-card.json`,
    {
      config: { access: 'peer' },
      schema: {
        ...PEER_SECURITY,
        summary: 'The A2A agent card of an agent',
        params: Params,
        response: { 200: Card, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => (await answers()).answerCard(request, reply, deps),
  );
  server.post(
    A2A_PATH,
    {
      config: { access: 'peer', longPoll: true, maxValues: A2A_LIMITS.bodyValues },
      bodyLimit: A2A_LIMITS.bodyBytes,
      schema: {
        ...PEER_SECURITY,
        summary: 'A2A: messages to an agent, and its tasks',
        params: Params,
        body: RpcBody,
        response: { 200: RpcAnswer, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => (await answers()).answerRequest(request, reply, deps),
  );
}
