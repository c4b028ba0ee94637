import { Check } from 'typebox/value';
import { ToolAuditOrder, type ToolAuditWork } from '../../gateway-api/verification/tool-audit-schemas.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import { withoutTool } from '../../tool-audit/audited-task.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { specsOf } from '../pods/assignment.ts';

type Deps = Pick<GatewayDeps, 'directory' | 'models' | 'toolsOf'>;

/** No session has this id, so it brings the tools of tiers Agent and Shared alone. */
const NO_SESSION = 'audit';

/** The order in the work of a verifier pod, which the operator wrote; undefined for the work of a verification. */
export function auditOrderIn(value: Json): ToolAuditOrder | undefined {
  if (!isJsonObject(value) || value['audit'] === undefined) return undefined;
  if (Check(ToolAuditOrder, value)) return value;
  throw new TemperError('TEMPER_STATE_CORRUPT', 'the audit that the pod was assigned has another form');
}

/** The agent of an order. Throws TEMPER_AGENT_SUSPENDED. */
export function auditedAgent({ audit }: ToolAuditOrder, { directory }: Pick<Deps, 'directory'>): AgentState {
  const state = directory.byUid(audit.agentUid);
  if (state === undefined || state.suspended) {
    throw new TemperError('TEMPER_AGENT_SUSPENDED', 'the agent of the audit is suspended or does not exist');
  }
  return state;
}

/** What the pod needs for one session: the agent as its own pod would get it, and the tools of that session. */
export async function auditWorkOf(order: ToolAuditOrder, deps: Deps): Promise<ToolAuditWork> {
  const { attempt, round, audit } = order;
  const { digest, task, withTool } = audit;
  const state = auditedAgent(order, deps);
  const agent = specsOf(state, deps);
  if (agent === undefined) throw new TemperError('TEMPER_POLICY_DENIED', 'the policy of the agent does not exist');
  const { namespace = '' } = state.agent.metadata;
  const tools = await deps.toolsOf({ agentUid: state.uid, namespace }, NO_SESSION);
  return { attempt, round, audit: { digest, task, agent, tools: withTool ? tools : withoutTool(tools, digest) } };
}
