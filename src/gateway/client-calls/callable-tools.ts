import { isForModelOnly } from '../../engine/built-in.ts';
import type { SessionMarks } from '../../nats/sessions/session-head.ts';
import { toolRequest } from '../../tools/authorize.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { descriptionOnlyView } from '../review/tool-view.ts';

export type CallableToolDeps = Pick<GatewayDeps, 'toolsOf' | 'directory' | 'sessions' | 'brokered'>;

/** Stands for a session that does not exist yet: it has no tools of its own, and has read nothing. */
const NEW_SESSION = 'new';
const UNMARKED: SessionMarks = { tainted: false, hasPrivateData: false };

/**
 * The tools that a program of a user may call as the agent: those in service that the policy does not deny to it. Tools of tier Session
 * belong to a conversation, and some tools to the model.
 */
export async function callableTools(
  state: AgentState,
  session: string | undefined,
  { toolsOf, directory, sessions, brokered }: CallableToolDeps,
): Promise<readonly ToolDescriptor[]> {
  // Without a policy nothing is allowed.
  if (state.policy === undefined) return [];
  const { name: agent, namespace = '' } = state.agent.metadata;
  const scope = { agent, namespace, session: session ?? NEW_SESSION };
  const [tools, marks] = await Promise.all([
    toolsOf({ agentUid: state.uid, namespace }, scope.session),
    session === undefined ? UNMARKED : sessions.marks(state.uid, session),
  ]);
  const { tainted, hasPrivateData } = marks;
  const decider = directory.decider(state, tainted, { hasPrivateData });
  const promoted = tools.filter(({ tier }) => tier !== 'Session');
  return descriptionOnlyView(promoted, scope, brokered)
    .list()
    .filter((tool) => !isForModelOnly(tool.name) && decider.decide(toolRequest(tool)).effect !== 'Deny');
}
