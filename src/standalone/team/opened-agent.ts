import { sessionIdleMs } from '../../agent/session/session-age.ts';
import { createRecordMemory } from '../../agent/tools/memory.ts';
import { createEngine, type Engine } from '../../engine/engine.ts';
import { localModels } from '../../engine/local-models.ts';
import type { EngineAgent, EngineModels, EnginePorts } from '../../engine/ports.ts';
import { textFetch } from '../../net/fetch.ts';
import { createWeb } from '../../toolbox/web/create-web.ts';
import { WEB_HEADERS } from '../../toolbox/web/deps.ts';
import type { Model } from '../../models/port.ts';
import { nearlyUsedText } from '../../ledger/nearly-used.ts';
import { approvalRules } from '../../policy/approval-rules.ts';
import { priorityRank } from '../../api/limits/priority.ts';
import { rankedSandbox } from './ranked-sandbox.ts';
import { type EffectiveLevels, lowerLevels } from '../../policy/trust/effective.ts';
import { deactivateHarmfulTools } from '../../tempering/hygiene/tool-hygiene.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import { withheldAudit, withheldRecords } from '../../tempering/withheld/withheld-records.ts';
import type { Terminal } from '../../toolbox/terminal/port.ts';
import type { Tool } from '../../tools/contract.ts';
import type { EventSink } from '../../tools/events.ts';
import { agentProvider } from '../agent-provider.ts';
import { createFileApprovals, type FileApprovals } from '../approvals.ts';
import { accountsOf } from '../ledger-accounts.ts';
import { chargedFetch } from '../usage/charged-fetch.ts';
import type { HostToolDeps, HostTools, RepositoriesOf } from './host-tools.ts';
import { localToolTasks } from '../levels/local-tasks.ts';
import { evaluateLocalTrust } from '../levels/local-trust.ts';
import { LocalTaskRecorder } from '../levels/task-recorder.ts';
import { SessionTrace } from '../sessions/session-trace.ts';
import { catalogPorts, type LocalCapabilities } from '../discovery/local-catalog.ts';
import { type McpServers, mcpTools } from './mcp-tools.ts';
import { type Member, withholdsSources } from './member.ts';
import { LocalUsedTogether } from '../discovery/local-used-together.ts';
import { localHybridSearch } from '../discovery/local-hybrid-search.ts';
import type { SharedState } from './shared-state.ts';
import type { PortsToOthers } from './ports-to-others.ts';
import { storeAgentManifests } from './stored-manifests.ts';

export interface OpenedAgentOptions {
  /** Absolute path of the folder with the files of the agents. */
  workspace: string;
  /** Absolute paths of files and folders that no tool may open. */
  protectedPaths: readonly string[];
  /** Removes the secrets of this process from what is stored for approvers. */
  redact: (text: string) => string;
  /** Where programs of the agents run; absent where none can. */
  terminal?: Terminal;
  /** The MCP servers of the user, whose tools all agents have. */
  mcp?: McpServers;
  /** The skills and catalogue entries that all agents find; absent: none. */
  capabilities?: LocalCapabilities | undefined;
  /** The names of the connections and the MCP servers of the user, which these may require; absent: none. */
  connections?: ReadonlySet<string> | undefined;
  /** The tools of the services of the user, which all agents have. */
  services?: readonly Tool[];
  /** The tools of Capabilities of the manifests that send requests to hosts. */
  hostTools?: HostTools | undefined;
  /** Repositories elsewhere for which the user gave credentials. */
  repositories?: RepositoriesOf | undefined;
  /** Whether a user can decide about calls while a message is handled. Otherwise such a call parks the turn. */
  hasApprover: boolean;
  /** The agents that started it, its parent first. */
  ancestors: readonly EngineAgent[];
  /** Receives the events of this agent. */
  events: EventSink;
  /** The ports of the agent to the other agents. */
  portsToOthers: (agent: EngineAgent, models: EngineModels) => PortsToOthers;
  /** The root of the message in work that a call with this key is for. */
  rootOf: (call: string) => string | undefined;
  /** Whether a message of the session has not ended. */
  hasUnended: (session: string) => boolean;
}

/** One agent that runs in this process. */
export interface OpenedAgent extends AsyncDisposable {
  readonly engine: Engine;
  readonly agent: EngineAgent;
  readonly approvals: FileApprovals;
  /** The active forged tools that the agent sees in a session. */
  forgedTools(session: string): RegisteredTool[];
  /** Calls the listener after each change of the forged tools; returns the function that unsubscribes it. */
  onToolsChange(listener: () => void): () => void;
}

/**
 * Opens an agent over the shared state: its level, its engine, and what belongs to each of its sessions. Throws TEMPER_POLICY_DENIED when
 * its policy does not allow its model, after it has stopped what it had started.
 */
export async function openAgent(
  shared: SharedState,
  member: Member,
  options: OpenedAgentOptions,
): Promise<OpenedAgent> {
  await using opening = new AsyncDisposableStack();
  const { records, clock, ids, registry } = shared;
  const trust = await evaluateLocalTrust({ ...member, records, now: clock.now() });
  const agent = engineAgent(member, trust.levels, options.ancestors);
  const trace = new SessionTrace({ records, clock, agent, next: options.events });
  opening.defer(() => trace.flush());
  const tasks = new LocalTaskRecorder({ records, clock, ids, agent });
  const events = tasks.observing(trace.sink);
  await trust.store(shared.audit, ids);
  const { ports, approvals, embedder, fetchWith } = portsOf(shared, member, agent, tasks, options);
  const { withheld } = shared;
  const sink: EventSink = withholdsSources(member)
    ? (event, session) => events(withheld.event(event), session)
    : events;
  const provider = await agentProvider(member.program, opening);
  const hybrid = localHybridSearch(shared, embedder, options.redact, opening);
  const together = new LocalUsedTogether();
  const external = await toolsOutside(options, clock, fetchWith, opening);
  const catalog = catalogPorts(options.capabilities, options.connections ?? new Set());
  const found = { ...hybrid, ...catalog, usedTogether: () => together.pairs };
  const ownEngine = createEngine({ ...ports, ...provider, ...external, ...found }, agent, sink);
  opening.defer(() => ownEngine.stop());
  const engine = await assessedEngine(ownEngine, tasks, { registry, events, agent, records, together });
  await storeAgentManifests(records, clock, member, agent.level);
  await closeIdleSessions(member, engine, options);
  await engine.resume();
  const open = opening.move();
  return {
    engine,
    agent,
    approvals,
    forgedTools: (session) => registry.resolve(agent.name, agent.namespace, session),
    onToolsChange: (listener) => registry.onChange(listener),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

/** The tools of the MCP servers and of the services of the user, and those that send requests to hosts. */
async function toolsOutside(
  { mcp, services = [], hostTools }: OpenedAgentOptions,
  clock: SharedState['clock'],
  fetchWith: HostToolDeps['fetchWith'],
  opening: AsyncDisposableStack,
): Promise<Pick<EnginePorts, 'externalTools'>> {
  const { externalTools } = mcp === undefined ? {} : await mcpTools(mcp, clock, opening);
  return {
    externalTools: (deps) => [
      ...services,
      ...(hostTools?.({ ...deps, fetchWith }) ?? []),
      ...(externalTools?.(deps) ?? []),
    ],
  };
}

interface AssessedDeps extends Pick<SharedState, 'registry' | 'records'> {
  readonly events: EventSink;
  readonly agent: EngineAgent;
  readonly together: LocalUsedTogether;
}

/** Assesses the tools of the agent now, because ratings may have come since the last run, and after each task. */
async function assessedEngine(
  engine: Engine,
  tasks: LocalTaskRecorder,
  { agent, records, together, ...deps }: AssessedDeps,
): Promise<Engine> {
  const owner = { agent: agent.name, namespace: agent.namespace };
  const hygiene = { ...deps, owner, policy: agent.policy.spec };
  const assess = async () => {
    const recorded = await localToolTasks(records, agent);
    together.count(recorded);
    await deactivateHarmfulTools(hygiene, recorded);
  };
  await assess();
  return tasks.recorded(engine, assess);
}

function portsOf(
  shared: SharedState,
  member: Member,
  agent: EngineAgent,
  tasks: LocalTaskRecorder,
  options: OpenedAgentOptions,
): { ports: EnginePorts; approvals: FileApprovals; embedder: Model; fetchWith: HostToolDeps['fetchWith'] } {
  const { portsToOthers, rootOf, ancestors, events } = options;
  const { records: all, clock, ids, registry, sandbox, network, withheld, canaries, openFreshSandbox } = shared;
  const isWithheld = withholdsSources(member);
  const records = isWithheld ? withheldRecords(all, withheld) : all;
  const audit = isWithheld ? withheldAudit(shared.audit) : shared.audit;
  const team = ancestors.at(-1)?.name ?? agent.name;
  const charged = { name: agent.name, namespace: agent.namespace, team };
  const onCharged = shared.usage.of(charged, rootOf);
  const ledger = shared.book.ledger(accountsOf(agent, ancestors), (use) => {
    events({ type: 'warning', code: 'TEMPER_QUOTA_NEARLY_USED', message: nearlyUsedText(use) });
  });
  const approvals = approvalsOf({ records, clock, ids }, agent, options);
  const caller = `${agent.namespace}/${agent.name}`;
  const fetchWith: HostToolDeps['fetchWith'] = (limits) => chargedFetch({ ...limits, clock, ids, network, ledger });
  const fetch = fetchWith({});
  const webFetch = fetchWith({ sentHeaders: WEB_HEADERS });
  const models = localModels(shared.models, { ledger, ids, caller, onCharged });
  const ports: EnginePorts = {
    clock,
    ids,
    models,
    sandbox: rankedSandbox(sandbox, priorityRank(agent.spec, agent.policy.spec)),
    ledger,
    sessions: member.sessions,
    memory: createRecordMemory(records, `memory/${agent.namespace}/${agent.name}`, {
      records,
      // No agent has such a name.
      collection: `memory/${agent.namespace}/_shared`,
    }),
    audit,
    approvals,
    tools: registry,
    tempering: {
      registry,
      audit,
      records,
      canaries,
      openFreshSandbox,
      onUse: (digest, session) => tasks.used(digest, session),
      onSucceeded: (category, session) => tasks.called(category, session),
    },
    fetch: textFetch(fetch),
    web: createWeb(webFetch),
    repositories: options.repositories?.({ fetchWith }),
    ...workspacePorts(options),
    ...portsToOthers(agent, models),
  };
  // A caller of its own: failures of the embedder must not open the circuit of the agent's model.
  const { model: embedder } = localModels(shared.models, { ledger, ids, caller: `${caller} discovery`, onCharged });
  return { ports, approvals, embedder, fetchWith };
}

function approvalsOf(
  stored: Pick<SharedState, 'records' | 'clock' | 'ids'>,
  { namespace, policy }: EngineAgent,
  { redact, hasApprover }: OpenedAgentOptions,
): FileApprovals {
  return createFileApprovals({
    ...stored,
    namespace,
    policy: { name: policy.name, rules: (risk) => approvalRules(policy.spec.approvals, risk) },
    redact,
    hasApprover,
  });
}

function workspacePorts(options: OpenedAgentOptions): Pick<EnginePorts, 'workspace' | 'protectedPaths' | 'terminal'> {
  const { workspace, protectedPaths, terminal } = options;
  return { workspace, protectedPaths, terminal };
}

function engineAgent(
  { agent, policy, namespace }: Member,
  own: EffectiveLevels,
  ancestors: readonly EngineAgent[],
): EngineAgent {
  const [parent] = ancestors;
  // A copy of a template under another policy has levels of its own.
  const isCapped = parent !== undefined && parent.policy.name === policy.metadata.name;
  const ceiling = { level: parent?.level ?? own.level, categories: parent?.categoryLevels ?? {} };
  const { level, categories: categoryLevels } = isCapped ? lowerLevels(own, ceiling, policy.spec) : own;
  return {
    name: agent.metadata.name,
    namespace,
    spec: agent.spec,
    policy: { name: policy.metadata.name, spec: policy.spec },
    level,
    categoryLevels,
    generation: ancestors.length,
  };
}

/** Closes sessions that were not used for long, with their tools. One whose last message has not ended stays. */
async function closeIdleSessions(
  { agent, sessions, parked }: Member,
  engine: Engine,
  { hasUnended }: Pick<OpenedAgentOptions, 'hasUnended'>,
): Promise<void> {
  for (const session of await sessions.idle(sessionIdleMs(agent.spec))) {
    const isUnended = hasUnended(session) || (await parked.unended(session)) !== undefined;
    if (!isUnended) await engine.closeSession(session);
  }
}
