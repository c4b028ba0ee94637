import { type AgentLoop, type AgentLoopDeps, createAgentLoop, type HandledMessage } from '../agent/loop/loop.ts';
import { createTaintTracker, isFromHost, type TaintTracker } from '../agent/loop/taint-tracker.ts';
import { MessagesInWork } from '../agent/host/messages-in-work.ts';
import { createLoopProvider } from '../agent/loop/turn-loop.ts';
import { withinRun } from '../agent/tools/run/run-context.ts';
import { type RunRuntime, runTool } from '../agent/tools/run/run-tool.ts';
import { skillBudget } from '../agent/disclosure/settings.ts';
import { originOfTool } from '../agent/history/origins.ts';
import type { CodeModeDeps } from '../agent/code/code-state.ts';
import type { RunningAgent } from '../agent/message.ts';
import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { Digest } from '../lib/canonical.ts';
import { isTemperError, messageOf } from '../lib/errors.ts';
import type { ItemOrigin } from '../models/item-origin.ts';
import type { Json } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { submitPendingImports } from '../tempering/packages/pending-imports.ts';
import type { CallerContext, Invoker, NestedCall, ToolResult } from '../tools/contract.ts';
import { type EventSink, inSession } from '../tools/events.ts';
import { IN_FORGE } from '../tools/forge-test-call.ts';
import { type CompletedCall, createInvoker } from '../tools/invoker.ts';
import { RunningCalls } from '../tools/running-calls.ts';
import { createSchemaCompiler } from '../tools/json-schema/compiler.ts';
import { type AgentModel, createAgentModel, resolveModelAliases } from './agent-model.ts';
import { createDropTool } from '../tempering/lifecycle/drop-tool.ts';
import { BackgroundTasks } from '../tempering/lifecycle/background-tasks.ts';
import { createDeciders } from './deciders.ts';
import {
  createRemoteLifecycle,
  createLocalLifecycle,
  type ToolLifecycle,
} from '../tempering/lifecycle/tool-lifecycle.ts';
import type { MessageCall, MessageSource } from '../bus/port.ts';
import { withApprovedConnections } from '../policy/private-data/approved-connections.ts';
import { isPrivateContent, isPrivateSource } from '../policy/private-data/sources.ts';
import { isUntrustedSource } from '../policy/untrusted-source.ts';
import { createEngineHooks, engineProvider, engineReturns } from './engine-hooks.ts';
import { assertForClients, type ClientCalls, createClientCalls } from './calls/client-calls.ts';
import { createOutputScanner } from './calls/output-scanner.ts';
import { LoopGuards } from './calls/loop-guards.ts';
import type { EngineAgent, EnginePorts } from './ports.ts';
import { builtInDescriptors, describedBuiltInTools } from './built-in.ts';
import { agentContext } from './settings/agent-context.ts';
import { compileToolSettings } from './settings/tool-settings.ts';
import { createCodeMode } from './code-mode.ts';
import {
  builtInTools,
  createForging,
  externalTools,
  type EngineContext,
  forgedToolDeps,
  type Forging,
} from './engine-context.ts';
import { exploringParts } from './tool-disclosure.ts';
import { createToolViews } from './tool-views.ts';

interface EngineMessage {
  session: string;
  text: string;
  /** Id of the root message of the chain; a new id when absent. */
  rootMessage?: string;
  /** Id of the message. The engine resumes a redelivered message where an earlier process stopped. */
  message?: string;
  /** Who caused the message; absent for a user. */
  source?: MessageSource;
  /** Name of the agent that sent it. */
  from?: string;
  /** The session that sent the message has untrusted content. */
  tainted?: boolean;
  /** The message is a call that a program of a user makes as the agent. Refused for tools that work for the model. */
  call?: MessageCall;
}

export interface Engine {
  /** Handles one message of a session. Throws the errors of the agent loop. */
  handle(message: EngineMessage, op: CallOptions): Promise<HandledMessage>;
  /** Calls one tool on behalf of the agent, with all checks. */
  invoke(tool: string, input: Json, session: string, op: CallOptions): Promise<ToolResult>;
  /** What programs of users call in place of the model. */
  readonly clientCalls: ClientCalls;
  /** Removes a tool from every view immediately. Throws TEMPER_POLICY_DENIED when the tool lifecycle is remote. */
  demote(digest: Digest, reason: string, actor: string): Promise<void>;
  /** Verifies a deactivated tool again and reactivates it; a failure is an event. Throws TEMPER_POLICY_DENIED when the tool lifecycle is remote. */
  reactivate(digest: Digest, reason: string, actor: string): Promise<void>;
  /** Submits the pending imports of this agent to the forge of a session. Call when a session starts. Does nothing when the tool lifecycle is remote. */
  submitPendingImports(session: string, op: CallOptions): Promise<void>;
  /** Closes the session and removes its session tools. */
  closeSession(session: string): Promise<void>;
  /** Resumes promotions that awaited an approval when the previous process ended, and starts the scheduled runs of tests. */
  resume(): Promise<void>;
  /** Waits for running promotions and runs of tests, but not for approvals. */
  settled(): Promise<void>;
  /** Aborts background work and waits until it has ended. */
  stop(): Promise<void>;
}

/**
 * Creates the engine of one agent by connecting its components; contains no logic of its own. Throws TEMPER_POLICY_DENIED when the
 * policy does not allow the agent's model.
 */
export function createEngine(ports: EnginePorts, agent: EngineAgent, events: EventSink): Engine {
  const components = createComponents(ports, agent, events);
  const { forge, lifecycle, invoker, loop, background, guards, runningAgent, code, taint } = components;
  const { name, namespace } = agent;
  const newMessage = (): string => ports.ids.next('message');
  const callerIn = (session: string, rootMessage: string): CallerContext => ({
    agent: name,
    namespace,
    session,
    rootMessage,
    stack: [],
    origin: 'Agent',
  });
  return {
    async handle({ tainted, ...message }, op) {
      if (message.call !== undefined) assertForClients(message.call.tool);
      const { source } = message;
      if (tainted === true || isUntrustedSource(source, agent.policy.spec))
        taint.mark(message.session, source ?? 'Agent');
      if (isPrivateContent({ source, tainted }, agent.policy.spec)) taint.markPrivate(message.session);
      return guards.withGuard(message.rootMessage ?? newMessage(), (rootMessage) =>
        loop.handle({ ...message, rootMessage }, runningAgent, inSession(events, message.session), op),
      );
    },
    invoke: (tool, input, session, op) =>
      guards.withGuard(newMessage(), (root) => invoker.invoke(tool, input, callerIn(session, root), op)),
    clientCalls: createClientCalls({ agent: name, namespace }, { invoker, guards }),
    demote: (digest, reason, actor) => lifecycle.demote(digest, reason, actor),
    reactivate: (digest, reason, actor) => lifecycle.reactivate(digest, reason, actor),
    async submitPendingImports(session, op) {
      if (!('registry' in ports.tempering)) return;
      const caller = callerIn(session, newMessage());
      const invoke: NestedCall = (tool, input, inner) => invoker.invoke(tool, input, { ...caller, ...IN_FORGE }, inner);
      await submitPendingImports(ports.tempering.records, { agent: name, namespace }, (request) =>
        forge.submitImport(request, caller, invoke, op),
      );
    },
    async closeSession(session) {
      await ports.tools.closeSession({ agent: name, namespace, session });
      await loop.closeSession(session);
    },
    resume: () => lifecycle.resume(),
    settled: () => background.settled(),
    async stop() {
      await background.stop();
      await code?.sessions.closeAll();
    },
  };
}

interface EngineComponents {
  forge: Forging;
  lifecycle: ToolLifecycle;
  invoker: Invoker;
  loop: AgentLoop;
  background: BackgroundTasks;
  guards: LoopGuards;
  runningAgent: RunningAgent;
  code: CodeModeDeps | undefined;
  taint: TaintTracker;
}

/**
 * Builds the components in the order of their dependencies:
 *
 *   context ──▶ described tools ──▶ forge, built-in tools ──▶ callable tools ──▶ invoker ──▶ loop
 *                                              └──▶ lifecycle ───────────────────────┘
 *
 * There are two views of the tools of a session, because built-in tools read the list of which they are a part: the forge and
 * discovery read descriptors from the described tools, and only the invoker gets the tools that it can call.
 */
function createComponents(ports: EnginePorts, configured: EngineAgent, events: EventSink): EngineComponents {
  const { clock, ledger, approvals, audit, tempering, tools } = ports;
  const messages = new MessagesInWork();
  const { taint, isUntrusted, markByCall } = trackTaint(configured.policy.spec, events);
  const context = createContext(ports, configured, taint, events);
  const { agent, schemas, decider } = context;
  const forged = forgedToolDeps(context);
  const external = externalTools(context);
  const described = createToolViews({ tools, builtIn: [...describedBuiltInTools(), ...external], forged });
  const forge = createForging(context, described, { ...forged, taken: external });
  const nested = runTool({ messages, schemas, resolve: ports.models.resolve, runtime: () => runtime });
  const { tools: exploring, disclosure } = exploringParts(context, described);
  const own = [...builtInTools(context, described), ...exploring, nested, forge.tool, createDropTool(tools)];
  const builtIn = [...own, ...external];
  const view = createToolViews({ tools, builtIn, forged });
  const background = new BackgroundTasks((error) => events(errorEvent(error)));
  const lifecycle =
    'registry' in tempering
      ? createLocalLifecycle(context, tempering, builtIn, background)
      : createRemoteLifecycle(tempering, clock);
  const guards = new LoopGuards();
  const hooks = createEngineHooks(context, { view, invoke: (...call) => invoker.invoke(...call) });
  const invoker: Invoker = createInvoker({
    view,
    hooks,
    decider,
    loopGuard: (caller) => guards.get(caller),
    ledger,
    approvals,
    audit,
    schemas,
    runningCalls: endsRunningCalls(agent)
      ? new RunningCalls({ view, onChange: (listener) => tools.onChange(listener) })
      : undefined,
    events,
    clock,
    resultScan: createOutputScanner(agent.policy.spec, events),
    ...compileToolSettings(agent.spec, builtInDescriptors(), schemas),
    observe(call) {
      markByCall(call);
      lifecycle.observe(call);
    },
  });
  const code = createCodeMode(context);
  const loop = createLoop(context, { invoker, taint, isUntrusted, hooks, code, messages, disclosure });
  const runningAgent = runningAgentOf(context);
  const { contextTokens } = ports.models;
  const provider = createLoopProvider({ model: context.model, clock, contextTokens, ...budgetOf(context) });
  const runtime: RunRuntime = { agent: runningAgent, clock, invoker, taint, isUntrusted, provider, code, disclosure };
  return { forge, lifecycle, invoker, loop, background, guards, runningAgent, code, taint };
}

/** The loop with the model, the provider and the value of the agent. */
function createLoop(
  context: EngineContext,
  parts: Pick<AgentLoopDeps, 'invoker' | 'taint' | 'isUntrusted' | 'hooks' | 'code' | 'messages' | 'disclosure'>,
): AgentLoop {
  const { ports, model } = context;
  const { clock, sessions, models } = ports;
  const { contextTokens } = models;
  const own = { returns: engineReturns(context), context: agentContext(context), ...engineProvider(context) };
  return createAgentLoop({ model, clock, sessions, contextTokens, ...budgetOf(context), ...own, ...parts });
}

function budgetOf({ ports, agent }: EngineContext): Pick<AgentLoopDeps, 'skillBudget'> {
  return ports.skills === undefined ? {} : { skillBudget: skillBudget(agent.spec) };
}

/** The sessions with untrusted content, by what the policy distrusts. */
function trackTaint(policy: EngineAgent['policy']['spec'], events: EventSink) {
  const taint = createTaintTracker(
    (origin, session) => events(taintedEvent(origin), session),
    (origin) => isPrivateSource(origin, policy),
  );
  const isUntrusted = (origin: ItemOrigin): boolean => isFromHost(origin) || isUntrustedSource(origin, policy);
  // Untrusted content that a composed tool fetched taints the session like a direct call of the agent.
  const markByCall = ({ tool, caller }: CompletedCall): void => {
    const origin = originOfTool(tool);
    if (isUntrusted(origin)) taint.mark(caller.session, origin);
    taint.read(caller.session, origin);
  };
  return { taint, isUntrusted, markByCall };
}

/** Resolves the models of the agent and compiles its policy. */
function createContext(
  ports: EnginePorts,
  configured: EngineAgent,
  taint: TaintTracker,
  events: EventSink,
): EngineContext & { level: string } {
  const { models, workspace } = ports;
  const agent = resolveModelAliases(configured, models.resolve);
  const deciders = createDeciders(agent, workspace);
  const agentModel = createAgentModel(agent, models.resolve, deciders(false));
  return {
    ports,
    agent,
    agentModel,
    model: models.withFallbacks(agentModel.fallbacks),
    reviewModel: models.model,
    events,
    schemas: createSchemaCompiler(),
    decider: ({ session, run, approved }) =>
      withApprovedConnections(withinRun(deciders(taint.has(session), taint.hasPrivate(session)), run), approved),
    taint,
    level: deciders(false).level,
  };
}

function runningAgentOf({ agent, agentModel, level }: EngineContext & { level: string }): RunningAgent {
  return { ...agent, spec: withRouting(agent.spec, agentModel.routing), policyName: agent.policy.name, level };
}

/** Only models that the policy allows are routed to. */
function withRouting(spec: AgentSpec, routing: AgentModel['routing']): AgentSpec {
  return spec.model.routing === undefined ? spec : { ...spec, model: { ...spec.model, routing } };
}

function endsRunningCalls({ policy }: EngineAgent): boolean {
  return policy.spec.forge?.runningCalls === 'End';
}

const TAINTED_BY: Readonly<Partial<Record<ItemOrigin, string>>> = {
  Memory: 'a memory value that another agent or a tainted session wrote',
  Web: 'content of a host',
  Mcp: 'content of an MCP server',
  File: 'a file of the workspace',
  Skill: 'the text of an imported skill',
};

function taintedEvent(origin: ItemOrigin): Parameters<EventSink>[0] {
  const what = TAINTED_BY[origin] ?? `a message of source ${origin}`;
  const message = `the session has untrusted content from now on: ${what}; tainted of the TrustPolicy applies`;
  return { type: 'warning', code: 'session-tainted', message };
}

function errorEvent(error: unknown): Parameters<EventSink>[0] {
  const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
  return { type: 'error', code, message: messageOf(error), attempt: 1 };
}
