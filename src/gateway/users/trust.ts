import { TemperError } from '../../lib/errors.ts';
import { TrustReport } from '../../gateway-api/user-schemas.ts';
import { bindingOf } from '../../policy/trust/effective.ts';
import { explainTrust } from '../../policy/trust/explain.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, USER_SECURITY } from '../http/schemas.ts';
import { AGENT_PATH, AgentParams, requireAgent } from './messages.ts';

/** Explains the level of an agent, with the rules by which the operator evaluates it. Changes nothing. */
export function userTrustRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.get(
    `${AGENT_PATH}/trust`,
    {
      config: { access: 'user' },
      schema: {
        ...USER_SECURITY,
        summary: 'The level of an agent, what is missing for the next one, and what would lower it',
        params: AgentParams,
        response: { 200: TrustReport, ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const { uid, agent, policy } = requireAgent(request.params, deps);
      if (policy === undefined) {
        const { name } = agent.spec.trustPolicyRef;
        throw new TemperError(
          'TEMPER_NOT_FOUND',
          `TrustPolicy "${name}" of agent "${agent.metadata.name}" does not exist`,
        );
      }
      const now = deps.clock.now();
      const explanation = explainTrust({
        policy: policy.spec,
        binding: bindingOf(agent, policy),
        trust: agent.status?.trust,
        records: await deps.tasks.read(uid),
        now,
        createdAt: new Date(agent.metadata.creationTimestamp ?? now),
      });
      return { agent: agent.metadata.name, policy: policy.metadata.name, ...explanation };
    },
  );
}
