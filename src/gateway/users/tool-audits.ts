import { Type } from 'typebox';
import { AgentName, DigestText } from '../../gateway-api/schema-parts.ts';
import { ToolAuditQuery, ToolAuditRequest, ToolAuditState } from '../../gateway-api/verification/tool-audit-schemas.ts';
import { type Digest, sha256 } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { auditedTasks, hasEnded, type ToolAudit } from '../../nats/promotion/tool-audits.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import { auditBoundProblem, toAuditReport } from '../../tool-audit/report.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { longPollSignal } from '../http/long-poll.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, USER_SECURITY } from '../http/schemas.ts';
import { AGENT_PATH, AgentParams, Namespace, requireAgent } from './messages.ts';

const AuditParams = Type.Object({ namespace: Namespace, agent: AgentName, digest: Type.Unsafe<Digest>(DigestText) });
const POLL_MS = 500;
const NO_SESSION = 'audit';

/**
 * Users compare tasks of a fresh agent with a tool and without it. Who may send messages to an agent may also do this: it is charged to the
 * agent, and changes nothing.
 */
export function userToolAuditRoutes(server: GatewayServer, deps: GatewayDeps): void {
  const common = { ...USER_SECURITY, response: { 200: ToolAuditState, ...ERROR_RESPONSES } };
  server.post(
    `${AGENT_PATH}/tool-audits`,
    {
      config: { access: 'user', idempotent: true },
      schema: {
        ...common,
        summary: 'Gives tasks to fresh agents with a tool and without it',
        params: AgentParams,
        body: ToolAuditRequest,
      },
    },
    async (request) => {
      const state = requireAgent(request.params, deps);
      return stateOf(await requestAudit(state, request.body, request.idempotencyKey, deps));
    },
  );
  server.get(
    `${AGENT_PATH}/tool-audits/:digest`,
    {
      config: { access: 'user', longPoll: true },
      schema: {
        ...common,
        summary: 'The last audit of a tool of an agent',
        params: AuditParams,
        querystring: ToolAuditQuery,
      },
    },
    async (request) => {
      const state = requireAgent(request.params, deps);
      const { wait = 0, runs = 0 } = request.query;
      const signal = longPollSignal(wait * 1_000, request, deps);
      for (;;) {
        const found = await deps.toolAudits.get(state.uid, request.params.digest);
        if (found === undefined)
          throw new TemperError(
            'TEMPER_NOT_FOUND',
            'the tool was not audited; start an audit with kubectl temper tool audit',
          );
        if (hasEnded(found.audit) || found.audit.runs.length > runs || signal.aborted) return stateOf(found.audit);
        await deps.clock.sleep(POLL_MS, signal).catch(() => undefined);
      }
    },
  );
}

async function requestAudit(
  state: AgentState,
  { tool: target, tasks, maxTokens }: ToolAuditRequest,
  key: string,
  deps: GatewayDeps,
): Promise<ToolAudit> {
  const problem = auditBoundProblem(tasks.length, maxTokens);
  if (problem !== undefined) throw new TemperError('TEMPER_REQUEST_INVALID', `body.maxTokens: ${problem}`);
  const { name, namespace = '' } = state.agent.metadata;
  if (state.suspended) throw new TemperError('TEMPER_AGENT_SUSPENDED', `agent "${name}" is suspended; resume it first`);
  const { digest, artifact } = await promotedTool(state, target, deps);
  const id = `audit-${sha256(`${state.uid} ${digest} ${key}`).slice('sha256:'.length, 'sha256:'.length + 26)}`;
  const found = await deps.toolAudits.get(state.uid, digest);
  if (found?.audit.id === id) return found.audit;
  if (found !== undefined && !hasEnded(found.audit)) throw inProgress(artifact.name);
  const requestedAt = deps.clock.now().toISOString();
  const audit: ToolAudit = {
    id,
    agent: { uid: state.uid, name, namespace },
    tool: artifact.name,
    digest,
    tasks,
    maxTokens,
    requestedAt,
    state: 'Requested',
    since: requestedAt,
    runs: [],
  };
  const facts = { tool: artifact.name, agent: name, agentUid: state.uid, namespace, tasks: tasks.length, maxTokens };
  await deps.audit.append(
    { namespace, agentUid: state.uid },
    { action: 'tool.audit-requested', actor: 'user', evidence: 'observed', subject: digest, facts },
    `tool.audit-requested/${id}`,
  );
  if ((await deps.toolAudits.write(audit, found?.revision ?? 0)) === undefined) throw inProgress(artifact.name);
  return audit;
}

function inProgress(tool: string): TemperError {
  return new TemperError(
    'TEMPER_TOOL_AUDIT_IN_PROGRESS',
    `an audit of "${tool}" is in progress; wait for its end, which kubectl temper describe tool ${tool} shows`,
  );
}

/** By name or digest. Session tools end with their session, so there is no object that could show the result. */
async function promotedTool(state: AgentState, target: string, deps: GatewayDeps): Promise<RegisteredTool> {
  const { name, namespace = '' } = state.agent.metadata;
  const tools = await deps.toolsOf({ agentUid: state.uid, namespace }, NO_SESSION);
  const own = tools.filter(({ tier }) => tier !== 'Session');
  const found = own.find(({ artifact, digest, object }) =>
    [artifact.name, digest, object.split('/').at(-1)].includes(target),
  );
  if (found !== undefined) return found;
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    `agent "${name}" has no tool "${printable(target, 80)}" in service at tier Agent or Shared; kubectl temper get tools lists them`,
  );
}

function stateOf(audit: ToolAudit): ToolAuditState {
  const { id, tool, digest, agent, state, requestedAt, since, runs, model, problem } = audit;
  const report = toAuditReport({ time: since, agent: agent.name, model: model ?? '' }, auditedTasks(audit));
  return {
    id,
    tool,
    digest,
    agent: agent.name,
    state,
    requestedAt,
    sessions: 2 * audit.tasks.length,
    runs: [...runs],
    tasks: [...report.tasks],
    ...(hasEnded(audit) ? { endedAt: since } : {}),
    ...(state === 'Completed' ? { evidence: report.evidence } : {}),
    ...(model === undefined ? {} : { model }),
    ...(problem === undefined ? {} : { problem }),
  };
}
