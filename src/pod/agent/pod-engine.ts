import { builtInNames } from '../../engine/built-in.ts';
import { createEngine, type Engine } from '../../engine/engine.ts';
import type { EngineModels, EnginePorts } from '../../engine/ports.ts';
import { type Digest, digestOf } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { Tool } from '../../tools/contract.ts';
import type { Logger } from '../../telemetry/log.ts';
import { textFetch } from '../../net/fetch.ts';
import { createWeb } from '../../toolbox/web/create-web.ts';
import { WEB_HEADERS } from '../../toolbox/web/deps.ts';
import type { WithheldSources } from '../../tempering/withheld/withheld-sources.ts';
import { RemoteApprovals } from '../../gateway-client/approvals.ts';
import { remoteBrokeredTools } from '../../gateway-client/brokered/brokered-tools.ts';
import { gatewayRepositories } from '../../gateway-client/repositories/gateway-repositories.ts';
import type { RemoteBus } from '../../gateway-client/bus.ts';
import type { ReportSender } from '../../gateway-client/report-sender.ts';
import { remoteChildren } from '../../gateway-client/children/remote-children.ts';
import { remoteSchedules } from '../../gateway-client/schedules/remote-schedules.ts';
import { remoteEvents } from '../../gateway-client/events/remote-events.ts';
import { remoteSkills } from '../../gateway-client/skills/remote-skills.ts';
import { remoteDiscovery, remoteRanking } from '../../gateway-client/discovery.ts';
import type { GatewayClient } from '../../gateway-client/gateway-client.ts';
import type { EgressEndpoints } from '../../gateway-client/endpoints/egress-endpoints.ts';
import { engineModels, remoteModel } from '../../gateway-client/model.ts';
import type { StagedItems } from '../../gateway-client/session/staged-items.ts';
import { remoteMemory, remoteSessions, storeAppend } from '../../gateway-client/stores.ts';
import { RemoteTools } from '../../gateway-client/tools.ts';
import type { Assignment, SessionAppend } from '../../gateway-api/pod-api.ts';
import {
  learnTools,
  withheldBus,
  withheldEvent,
  withheldEvents,
  withheldMemory,
  withheldSchedules,
  withheldSessions,
  withheldTasks,
} from './withheld-engine.ts';
import type { ToolCallCounter } from '../../tempering/hygiene/tool-calls.ts';
import type { ToolCallLimiter } from './tool-call-limiter.ts';
import { loggedTerminal } from './program/logged-terminal.ts';
import type { PodPrograms } from './program/pod-programs.ts';
import type { CloneLocation } from '../../toolbox/git/clone/clone-location.ts';
import { remoteTerminal } from '../../toolbox/terminal/local-terminal.ts';
import type { SandboxConnection } from './sandbox-connection.ts';
import type { CurrentMessage } from './current-message.ts';
import { egressFetch } from './egress-fetch.ts';

export interface PodEngineDeps {
  client: GatewayClient;
  /** The address of the egress proxy and the token for it. */
  egress: Pick<EgressEndpoints, 'current'>;
  bus: RemoteBus;
  reports: ReportSender;
  currentMessage: CurrentMessage;
  /** Items of the current message that the gateway does not have yet. */
  staged: StagedItems;
  /** Calls of forged tools for the current message. */
  toolCalls: ToolCallCounter;
  /** Of all messages of the pod. */
  toolCallLimiter: ToolCallLimiter;
  /** The sources that an agent with `forge.persistSource: false` withholds, of all its messages. */
  sources: WithheldSources;
  sandbox: SandboxConnection;
  /** Of all messages of the pod. */
  cloneLocation: CloneLocation;
  /** The agent program of the pod, of all its messages. */
  programs: PodPrograms;
  /** Folder of the agent's files, as a path in the sandbox container. */
  workspace: string;
  clock: Clock;
  ids: IdGenerator;
  log: Logger;
}

/** What works on the messages of an agent with an agent program; empty for every other one. */
type ProviderPort = Pick<EnginePorts, 'createProvider'>;

/** The engine of one assignment and one slot, with the tools of the session whose message is in work. */
export interface PodEngine {
  version: string;
  engine: Engine;
  tools: RemoteTools;
  /** What no reply may quote; absent when the agent stores its sources. */
  withheld?: WithheldSources | undefined;
}

/**
 * Creates the engine with adapters for the gateway and the sandbox container; the engine itself is the one `temper run` uses.
 * Throws TEMPER_POLICY_DENIED when the policy does not allow the agent's model.
 */
export function createPodEngine(deps: PodEngineDeps, assignment: Assignment, provider: ProviderPort): PodEngine {
  const { client, bus, reports, currentMessage, staged, sandbox, workspace, clock, ids, log } = deps;
  const { agent, policy, level, categoryLevels = {}, generation = 0 } = assignment;
  const { name, namespace, spec } = agent;
  const { deliveryToken, signal } = currentMessage;
  const stores = { client, clock, ids, deliveryToken, signal };
  const tools = new RemoteTools({
    client,
    clock,
    deliveryToken: currentMessage.deliveryToken,
    builtIn: new Set([...builtInNames(), ...(assignment.brokered ?? []).map(({ name: tool }) => tool)]),
    flush: (op) => reports.flush(op),
    onUnusable: (tool, problem) =>
      log.warn({ agent: name, ...currentMessage.stamp(), tool, problem }, 'cannot use a tool of the session'),
  });
  const withheld = spec.forge?.persistSource === false ? deps.sources : undefined;
  if (withheld !== undefined)
    tools.onChange(() => learnTools(tools.resolve(name, namespace, currentMessage.stamp().session), withheld));
  const sessions = remoteSessions({ ...stores, staged, delivered: currentMessage.takeHistory });
  const memory = remoteMemory({ ...stores, onAnswerSignature: currentMessage.addSignature });
  const engine = createEngine(
    {
      clock,
      ids,
      models: modelsOf(deps, assignment),
      sandbox,
      ledger: deps.toolCallLimiter.ledger(spec.quotas?.toolCallsPerMinute),
      sessions: withheld === undefined ? sessions : withheldSessions(sessions, withheld),
      memory: withheld === undefined ? memory : withheldMemory(memory, withheld),
      audit: reports.audit,
      approvals: new RemoteApprovals({
        ...stores,
        staged,
        storeAppend: (append) => storeAppend(currentMessage.stamp().session, stores)(append),
      }),
      tools,
      tempering: {
        review: tools.review,
        keepRejected: tools.keepRejected,
        reportUse: (use) => reports.use(use),
        onCall: countedCall(deps),
      },
      bus: () => (withheld === undefined ? bus : withheldBus(bus, withheld)),
      ...namespacePorts(deps, withheld, provider, assignment),
      tasks: () => (withheld === undefined ? bus : withheldTasks(bus, withheld)),
      ...discoveryOf(deps, assignment, tools),
      ...hostPorts(deps),
      ...workspacePorts(workspace, sandbox, { log, clock }),
      cloneLocation: deps.cloneLocation,
      ...repositoriesOf(deps, assignment),
    },
    { name, namespace, spec, policy, level, categoryLevels, generation },
    (event) => {
      const reported = withheld === undefined ? event : withheldEvent(event, withheld);
      if (reported === undefined) return;
      reports.event({ ...reported, time: clock.now().toISOString(), agent: name, ...currentMessage.stamp() });
    },
  );
  return { version: engineVersion(assignment), engine, tools, withheld };
}

/** The sandbox container, which has the files and runs the programs of the agent. */
function workspacePorts(
  workspace: string,
  sandbox: SandboxConnection,
  logging: Parameters<typeof loggedTerminal>[1],
): Pick<EnginePorts, 'workspace' | 'protectedPaths' | 'remoteWorkspace' | 'terminal'> {
  const terminal = loggedTerminal(remoteTerminal(sandbox), logging);
  return { workspace, protectedPaths: [], remoteWorkspace: sandbox, terminal };
}

/** Searches in the gateway, which ranks the tools for a message too where it has an embedder. */
function discoveryOf(
  { client, clock, currentMessage: { deliveryToken } }: PodEngineDeps,
  { hasEmbedder }: Assignment,
  tools: RemoteTools,
): Pick<EnginePorts, 'discovery' | 'rankByMeaning'> {
  return {
    discovery: remoteDiscovery({ client, deliveryToken, tools }),
    ...(hasEmbedder === true ? { rankByMeaning: remoteRanking({ client, clock, deliveryToken }) } : {}),
  };
}

/** The tools that the gateway executes. */
function brokeredTools(
  { client, clock, currentMessage: { deliveryToken, addSignature } }: PodEngineDeps,
  { brokered = [] }: Assignment,
): () => Tool[] {
  return () => remoteBrokeredTools(brokered, { client, clock, deliveryToken, onAnswerSignature: addSignature });
}

/** The repositories whose credentials the gateway has. */
function repositoriesOf(
  { client, clock, currentMessage: { deliveryToken, addSignature } }: PodEngineDeps,
  { repositories = [] }: Assignment,
): Pick<EnginePorts, 'gatewayRepositories'> {
  const options = { client, clock, deliveryToken, onAnswerSignature: addSignature };
  return { gatewayRepositories: gatewayRepositories(repositories, options) };
}

/** The other agents of the namespace, its events, skills and tools, and the agent program. */
function namespacePorts(
  deps: PodEngineDeps,
  withheld: WithheldSources | undefined,
  provider: ProviderPort,
  assignment: Assignment,
): Pick<EnginePorts, 'children' | 'events' | 'schedules' | 'createProvider' | 'skills' | 'externalTools'> {
  const { client, clock, currentMessage } = deps;
  const { deliveryToken } = currentMessage;
  const events = remoteEvents({ client, deliveryToken });
  const schedules = remoteSchedules({ client, deliveryToken });
  return {
    ...provider,
    ...(assignment.skills === undefined ? {} : { skills: remoteSkills({ client, deliveryToken }) }),
    externalTools: brokeredTools(deps, assignment),
    children: () => remoteChildren({ client, clock, deliveryToken }),
    events: () => (withheld === undefined ? events : withheldEvents(events, withheld)),
    schedules: () => (withheld === undefined ? schedules : withheldSchedules(schedules, withheld)),
  };
}

/** Hosts of the internet, for forged tools and for the tools for the web. */
function hostPorts({
  egress: files,
  currentMessage: { deliveryToken },
  clock,
}: PodEngineDeps): Pick<EnginePorts, 'fetch' | 'web'> {
  const deps = { files, deliveryToken, clock };
  const web = createWeb(egressFetch(deps, { sentHeaders: WEB_HEADERS }));
  return { fetch: textFetch(egressFetch(deps)), web };
}

function countedCall({ toolCalls, reports }: PodEngineDeps): (digest: Digest, succeeded: boolean) => void {
  return (digest, succeeded) => {
    toolCalls.add(digest, succeeded);
    reports.calls(toolCalls.counts());
  };
}

/** Without the tools, which change while the engine runs. */
export function engineVersion({ version: _version, tools: _tools, ...rest }: Assignment): string {
  return digestOf(rest as unknown as Json);
}

function modelsOf(deps: PodEngineDeps, { models }: Assignment): EngineModels {
  const { client, clock, ids, currentMessage, staged } = deps;
  const { deliveryToken, signal } = currentMessage;
  const store = (append: SessionAppend): Promise<void> =>
    storeAppend(currentMessage.stamp().session, { client, clock, ids, deliveryToken, signal })(append);
  const model = remoteModel({
    client,
    deliveryToken,
    append: () => staged.forModelCall(store),
    onStored: (append) => staged.stored(append),
    onAnswerSignature: currentMessage.addSignature,
  });
  return engineModels(models, model);
}
