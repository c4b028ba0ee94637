import { SESSION_IDLE_MS } from '../agent/session/session-age.ts';
import { createRecordMemory } from '../agent/tools/memory.ts';
import { createRecordSessionStore, type RecordSessionStore } from '../agent/session/session-store.ts';
import type { AgentProgram } from '../acp/process/agent-command.ts';
import type { Agent } from '../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../api/v1alpha1/trustpolicy.ts';
import { openAudit } from '../audit/recorded-trail.ts';
import type { AuditTrail } from '../audit/port.ts';
import type { AuditKey } from '../audit/signature.ts';
import { builtInNames } from '../engine/built-in.ts';
import { createEngine, type Engine } from '../engine/engine.ts';
import { localModels } from '../engine/local-models.ts';
import type { EngineAgent } from '../engine/ports.ts';
import { openLedgerBook } from '../ledger/ledger.ts';
import { systemClock } from '../lib/clock.ts';
import { fileRecordStore } from '../lib/file-record-store.ts';
import { ulids } from '../lib/ids.ts';
import type { JsonObject } from '../lib/json.ts';
import type { RecordStore } from '../lib/record-store.ts';
import type { JudgeSettings, NamedModelSet } from '../models/named-models.ts';
import { createSafeFetch } from '../net/fetch.ts';
import { approvalRules } from '../policy/approval-rules.ts';
import { createSupervisor } from '../sandbox/supervisor.ts';
import { openRegistry, type Registry } from '../tempering/registry/registry.ts';
import { createWithheldCalls } from '../tempering/withheld/withheld-calls.ts';
import { withheldAudit, withheldRecords } from '../tempering/withheld/withheld-records.ts';
import { WithheldSources } from '../tempering/withheld/withheld-sources.ts';
import { openSourceStore } from '../tempering/withheld/source-store.ts';
import type { EffectiveLevels } from '../policy/trust/effective.ts';
import type { RegisteredTool } from '../tempering/types.ts';
import type { EventSink } from '../tools/events.ts';
import { createFileApprovals, expireAbandonedRequests } from './approvals.ts';
import { createParkedTurns, type ParkedTurn, type ParkedTurnsOfAgent } from './sessions/parked-turns.ts';
import { DecisionWatcher } from './decision-watcher.ts';
import { deactivateHarmfulTools } from '../tempering/hygiene/tool-hygiene.ts';
import { localToolTasks } from './levels/local-tasks.ts';
import { applyLevelDecisions } from './levels/level-decisions.ts';
import { evaluateLocalTrust } from './levels/local-trust.ts';
import { LocalTaskRecorder } from './levels/task-recorder.ts';
import { localCanaries } from './local-canaries.ts';
import { lockState } from './lock.ts';
import { agentProvider } from './agent-provider.ts';
import { accountsOf } from './ledger-accounts.ts';
import { SessionTrace } from './sessions/session-trace.ts';
import { ensureStateFormat } from './state-format.ts';
import type { StateKeys } from './trust/state-key.ts';
import { trustedKey } from './trust/trust.ts';

const DEFAULT_NAMESPACE = 'default';

export interface StandaloneOptions {
  /** Absolute path of the state folder. */
  state: string;
  /** The key that signs the state folders of this user. */
  keys: StateKeys;
  /** Absolute path of the folder with the agent's files. */
  workspace: string;
  /** Absolute paths of files that no tool may open: the manifests that govern the agent. */
  protectedPaths: readonly string[];
  agent: Agent;
  policy: TrustPolicy;
  models: NamedModelSet;
  /** The program of an agent with `spec.model.agent`. */
  agentProgram?: AgentProgram | undefined;
  /** How judges and reviewers are supervised; absent: no canaries. */
  judges?: JudgeSettings | undefined;
  events: EventSink;
  /** Removes the secrets of this process from what is stored for approvers. */
  redact: (text: string) => string;
  /** Whether a user can decide about calls while a message is handled. Otherwise such a call parks the turn. */
  hasApprover: boolean;
}

/** One agent that runs in this process, with its state in plain files. */
export interface Standalone extends AsyncDisposable {
  readonly engine: Engine;
  readonly agent: EngineAgent;
  readonly records: RecordStore;
  /** The active forged tools that the agent sees in a session. */
  forgedTools(session: string): RegisteredTool[];
  /** The turn of the session that waits for an approval; undefined when there is none. */
  parkedTurn(session: string): Promise<ParkedTurn | undefined>;
}

/** Throws TEMPER_STATE_LOCKED, TEMPER_STATE_UNUSABLE, TEMPER_STATE_UNTRUSTED, TEMPER_STATE_KEY_UNUSABLE, TEMPER_STATE_CORRUPT, TEMPER_AUDIT_CHAIN_INVALID, TEMPER_SANDBOX_UNAVAILABLE or TEMPER_POLICY_DENIED, after it has stopped all started components. */
export async function openStandalone(options: StandaloneOptions): Promise<Standalone> {
  await using opening = new AsyncDisposableStack();
  const lock = await lockState(options.state, 'temper run');
  opening.defer(() => lock.release());
  const records = fileRecordStore(options.state);
  const key = await trustedKey({ folder: options.state, records, keys: options.keys });
  await ensureStateFormat(records, options.state);
  const { namespace = DEFAULT_NAMESPACE } = options.agent.metadata;
  await applyLevelDecisions(records, options.state);
  const trust = await evaluateLocalTrust({ ...options, records, namespace, now: systemClock.now() });
  const agent = engineAgent(options, trust.levels);
  const trace = new SessionTrace({ records, clock: systemClock, agent, next: options.events });
  opening.defer(() => trace.flush());
  const tasks = new LocalTaskRecorder({ records, clock: systemClock, ids: ulids, agent });
  const events = tasks.observing(trace.sink);
  const components = await openComponents(options, agent, { records, key }, opening);
  const { registry, audit, openFreshSandbox, withheld } = components;
  await trust.store(audit, ulids);
  const ownEngine = createEngine(
    {
      ...components,
      models: localModels(options.models, { ledger: components.ledger, ids: ulids }),
      clock: systemClock,
      ids: ulids,
      tools: registry,
      tempering: {
        registry,
        audit,
        records: withheld === undefined ? records : withheldRecords(records, withheld),
        canaries: localCanaries(records, audit, options.judges),
        openFreshSandbox,
        onUse: (digest, session) => tasks.used(digest, session),
      },
      workspace: options.workspace,
      protectedPaths: [options.state, options.keys.folder, ...options.protectedPaths],
      ...(await agentProvider(options.agentProgram, opening)),
    },
    agent,
    withheld === undefined ? events : (event) => events(withheld.event(event)),
  );
  const engine = await assessedEngine(ownEngine, tasks, { registry, events, agent, records });
  opening.defer(() => engine.stop());
  await storeManifests(records, options, agent);
  const parked = createParkedTurns({ records, sessions: components.sessions, agent });
  await expireAbandonedRequests(records, parked);
  await closeIdleSessions(components.sessions, parked, engine);
  await engine.resume();
  const decisionWatcher = new DecisionWatcher({ ...components, state: options.state, engine, agent, events });
  opening.defer(() => decisionWatcher.stop());
  await decisionWatcher.start();
  const open = opening.move();
  const forgedTools = (session: string): RegisteredTool[] => registry.resolve(agent.name, agent.namespace, session);
  const parkedTurn: ParkedTurnsOfAgent['find'] = (session) => parked.find(session);
  return { engine, agent, records, forgedTools, parkedTurn, [Symbol.asyncDispose]: () => open.disposeAsync() };
}

/** Assesses the tools of the agent now, because ratings may have come since the last run, and after each task. */
async function assessedEngine(
  engine: Engine,
  tasks: LocalTaskRecorder,
  { agent, records, ...deps }: { registry: Registry; events: EventSink; agent: EngineAgent; records: RecordStore },
): Promise<Engine> {
  const owner = { agent: agent.name, namespace: agent.namespace };
  const hygiene = { ...deps, owner, policy: agent.policy.spec };
  const assess = async () => deactivateHarmfulTools(hygiene, await localToolTasks(records, agent));
  await assess();
  return tasks.recorded(engine, assess);
}

async function openComponents(
  options: StandaloneOptions,
  agent: EngineAgent,
  { records: all, key }: { records: RecordStore; key: AuditKey },
  opening: AsyncDisposableStack,
) {
  const clock = systemClock;
  const withheld = agent.spec.forge?.persistSource === false ? new WithheldSources() : undefined;
  const chain = await openAudit({ records: all, clock, key });
  opening.defer(() => chain.flush());
  const audit: AuditTrail = withheld === undefined ? chain : withheldAudit(chain);
  const sources = await openSourceStore({ records: all, clock, derive: (purpose) => key.derive(purpose) });
  const tools = { records: all, audit, clock, builtIn: builtInNames(), sources };
  const registry: Registry = await openRegistry(withheld === undefined ? tools : { ...tools, withheld });
  const records = withheld === undefined ? all : withheldRecords(all, withheld);
  const calls = withheld === undefined ? undefined : createWithheldCalls(withheld, sources);
  const book = await openLedgerBook(all, clock);
  opening.defer(() => book.close());
  const sandbox = opening.use(await createSupervisor({ clock }));
  const { policy, redact, hasApprover } = options;
  return {
    audit,
    withheld,
    registry,
    sandbox,
    openFreshSandbox: async () => {
      const fresh = await createSupervisor({ clock, maxRunners: 1 });
      return { sandbox: fresh, close: async () => fresh[Symbol.asyncDispose]() };
    },
    ledger: book.ledger(accountsOf(agent, agent.policy)),
    sessions: createRecordSessionStore(all, clock, { agent: agent.name, namespace: agent.namespace }, calls),
    memory: createRecordMemory(records, `memory/${agent.namespace}/${agent.name}`, {
      records,
      // No agent has such a name.
      collection: `memory/${agent.namespace}/_shared`,
    }),
    approvals: createFileApprovals({
      records,
      clock,
      ids: ulids,
      namespace: agent.namespace,
      policy: { name: policy.metadata.name, rules: (risk) => approvalRules(policy.spec.approvals, risk) },
      redact,
      hasApprover,
    }),
    fetch: createSafeFetch({ clock }),
  };
}

function engineAgent(
  { agent, policy }: StandaloneOptions,
  { level, categories: categoryLevels }: EffectiveLevels,
): EngineAgent {
  return {
    name: agent.metadata.name,
    namespace: agent.metadata.namespace ?? DEFAULT_NAMESPACE,
    spec: agent.spec,
    policy: { name: policy.metadata.name, spec: policy.spec },
    level,
    categoryLevels,
  };
}

/** Stores the applied manifests for `temper get` and `temper describe`. */
async function storeManifests(
  records: RecordStore,
  { agent, policy }: StandaloneOptions,
  { level }: EngineAgent,
): Promise<void> {
  const storedForm = (resource: Agent | TrustPolicy, status: JsonObject): JsonObject => {
    const creationTimestamp = systemClock.now().toISOString();
    return { ...resource, metadata: { ...resource.metadata, creationTimestamp }, status } as unknown as JsonObject;
  };
  await records.put('trustpolicies', policy.metadata.name, storedForm(policy, {}));
  await records.put('agents', agent.metadata.name, storedForm(agent, { level }));
}

/** Closes sessions that were not used for long, with their tools. One whose last message has not ended stays. */
async function closeIdleSessions(
  sessions: RecordSessionStore,
  turns: Pick<ParkedTurnsOfAgent, 'unended'>,
  engine: Engine,
): Promise<void> {
  for (const session of await sessions.idle(SESSION_IDLE_MS))
    if ((await turns.unended(session)) === undefined) await engine.closeSession(session);
}
