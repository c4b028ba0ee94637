import { type DeactivatedTool, isDeactivated } from '../../api/v1alpha1/trust/deactivated-tools.ts';
import { ReactivationReceipt, ReactivationRequest } from '../../gateway-api/user-schemas.ts';
import { isDigest } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, USER_SECURITY } from '../http/schemas.ts';
import { AGENT_PATH, AgentParams, requireAgent } from './messages.ts';

const MAX_REASON = 1_000;

/** Users ask to verify a deactivated tool of an agent again. Who may rate the tasks of an agent may also do this; it grants nothing new. */
export function userReactivationRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    `${AGENT_PATH}/reactivations`,
    {
      config: { access: 'user', idempotent: true },
      schema: {
        ...USER_SECURITY,
        summary: 'Asks to verify a deactivated tool of an agent again',
        params: AgentParams,
        body: ReactivationRequest,
        response: { 200: ReactivationReceipt, ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const state = requireAgent(request.params, deps);
      const { name, namespace = '' } = state.agent.metadata;
      const { tool, digest } = deactivatedTool(state, request.body.tool);
      const reason = printable(request.body.reason, MAX_REASON);
      const facts = { tool, agent: name, agentUid: state.uid, namespace, reason };
      await deps.audit.append(
        { namespace, agentUid: state.uid },
        { action: 'tool.reactivation-requested', actor: 'user', evidence: 'observed', subject: digest, facts },
        `tool.reactivation-requested/${state.uid}/${digest}/${request.idempotencyKey}`,
      );
      const requestedAt = deps.clock.now().getTime();
      if (isDigest(digest)) await deps.tasks.reactivate(state.uid, { digest, reason, requestedAt });
      return { agent: name, tool, digest };
    },
  );
}

/** By name or digest; of several versions the one that was deactivated last. */
function deactivatedTool({ agent }: AgentState, target: string): DeactivatedTool {
  const deactivated = (agent.status?.deactivatedTools ?? []).filter(isDeactivated);
  const found = deactivated.filter(({ tool, digest }) => tool === target || digest === target);
  const [latest] = found.toSorted((one, other) => Date.parse(other.since) - Date.parse(one.since));
  if (latest !== undefined) return latest;
  const names = deactivated.map(({ tool }) => tool).join(', ');
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    `no tool "${printable(target, 80)}" of agent "${agent.metadata.name}" is deactivated; ${names === '' ? 'it has no deactivated tool' : `deactivated are: ${names}`}`,
  );
}
