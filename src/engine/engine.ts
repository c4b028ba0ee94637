import { createAgentLoop, type HandledMessage } from '../agent/loop/loop.ts';
import { bringsUntrustedContent, createTaintTracker } from '../agent/loop/taint-tracker.ts';
import { parseDuration } from '../api/quantities.ts';
import type { Digest } from '../lib/canonical.ts';
import { isTemperError, messageOf } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { submitPendingImports } from '../tempering/packages/pending-imports.ts';
import type { CallerContext, NestedCall, ToolDescriptor, ToolResult } from '../tools/contract.ts';
import type { EventSink } from '../tools/events.ts';
import { FORGE_STACK, FORGE_TOOL_NAME } from '../tools/forge-test-call.ts';
import { createInvoker } from '../tools/invoker.ts';
import { createSchemaCompiler } from '../tools/json-schema/compiler.ts';
import { createAgentModel, resolveModelAliases } from './agent-model.ts';
import { BackgroundTasks } from '../tempering/lifecycle/background-tasks.ts';
import { createDeciders } from './deciders.ts';
import { createRemoteLifecycle, createLocalLifecycle } from '../tempering/lifecycle/tool-lifecycle.ts';
import { LoopGuards } from './loop-guards.ts';
import type { EngineAgent, EnginePorts } from './ports.ts';
import { builtInTools, createForging, type EngineContext } from './engine-context.ts';
import { createToolViews } from './tool-views.ts';

/** Minimum timeout of `forge_tool`: a judge may take a minute. */
const FORGE_TIMEOUT_MS = 5 * 60_000;
const DEFAULT_TOOL_TIMEOUT = '60s';

interface EngineMessage {
  session: string;
  text: string;
  /** Id of the root message of the chain; a new id when absent. */
  rootMessage?: string;
  /** Id of the message. The engine resumes a redelivered message where an earlier process stopped. */
  message?: string;
}

export interface Engine {
  /** Handles one message of a session. Throws the errors of the agent loop. */
  handle(message: EngineMessage, op: CallOptions): Promise<HandledMessage>;
  /** Calls one tool on behalf of the agent, with all checks. */
  invoke(tool: string, input: Json, session: string, op: CallOptions): Promise<ToolResult>;
  /** Removes a tool from every view immediately. Throws TEMPER_POLICY_DENIED when the tool lifecycle is remote. */
  demote(digest: Digest, reason: string, actor: string): Promise<void>;
  /** Submits the pending imports of this agent to the forge of a session. Call when a session starts. Does nothing when the tool lifecycle is remote. */
  submitPendingImports(session: string, op: CallOptions): Promise<void>;
  /** Closes the session and removes its session tools. */
  closeSession(session: string): Promise<void>;
  /** Resumes promotions that awaited an approval when the previous process ended. */
  resume(): Promise<void>;
  /** Waits for running promotions, but not for approvals. */
  settled(): Promise<void>;
  /** Aborts background work and waits until it has ended. */
  stop(): Promise<void>;
}

/**
 * Creates the engine of one agent by connecting its components; contains no logic of its own. Throws TEMPER_POLICY_DENIED when the
 * policy does not allow the agent's model.
 */
export function createEngine(ports: EnginePorts, agent: EngineAgent, events: EventSink): Engine {
  const { forge, lifecycle, invoker, loop, background, guards, runningAgent } = createComponents(ports, agent, events);
  const { name, namespace } = agent;
  const newMessage = (): string => ports.ids.next('message');
  const callerIn = (session: string, rootMessage: string): CallerContext => ({
    agent: name,
    namespace,
    session,
    rootMessage,
    stack: [],
  });
  return {
    handle: (message, op) =>
      guards.withGuard(message.rootMessage ?? newMessage(), (rootMessage) =>
        loop.handle({ ...message, rootMessage }, runningAgent, events, op),
      ),
    invoke: (tool, input, session, op) =>
      guards.withGuard(newMessage(), (root) => invoker.invoke(tool, input, callerIn(session, root), op)),
    demote: (digest, reason, actor) => lifecycle.demote(digest, reason, actor),
    async submitPendingImports(session, op) {
      if (!('registry' in ports.tempering)) return;
      const caller = callerIn(session, newMessage());
      const invoke: NestedCall = (tool, input, inner) =>
        invoker.invoke(tool, input, { ...caller, stack: FORGE_STACK }, inner);
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
    stop: () => background.stop(),
  };
}

/**
 * Builds the components in the order of their dependencies. One dependency is cyclic:
 *
 *   context ──▶ forge ──▶ views
 *      ▲                    │
 *      └──── view(caller) ──┘
 *
 * The forge and the built-in tools need the tool view of a session, and a view contains the tools of the forge. `view` therefore
 * reads `views` lazily, at the first call, when all components exist.
 */
function createComponents(ports: EnginePorts, configured: EngineAgent, events: EventSink) {
  const agent = resolveModelAliases(configured, ports.models.resolve);
  const taint = createTaintTracker();
  const deciders = createDeciders(agent, ports.workspace);
  const agentModel = createAgentModel(agent, ports.models.resolve, deciders(false));
  const model = ports.models.withFallbacks(agentModel.fallbacks);
  const background = new BackgroundTasks((error) => events(errorEvent(error)));
  const guards = new LoopGuards();
  const context: EngineContext = {
    ports,
    agent,
    agentModel,
    model,
    events,
    reviewModel: ports.models.model,
    schemas: createSchemaCompiler(),
    decider: (caller: Pick<CallerContext, 'session'>) => deciders(taint.has(caller.session)),
    view: (caller) => views(caller),
  };
  const forge = createForging(context);
  const builtIn = [...builtInTools(context), forge.tool];
  const views = createToolViews({ tools: ports.tools, builtIn, forged: forge.forgedDeps });
  const { tempering } = ports;
  const lifecycle =
    'registry' in tempering
      ? createLocalLifecycle(context, tempering, builtIn, background)
      : createRemoteLifecycle(tempering, ports.clock);
  const invoker = createInvoker({
    ...ports,
    ...context,
    loopGuard: (caller) => guards.get(caller),
    timeoutOf: timeouts(agent),
    observe(call) {
      // Untrusted content that a composed tool fetched taints the session like a direct call of the agent.
      if (bringsUntrustedContent(call.tool)) taint.mark(call.caller.session);
      lifecycle.observe(call);
    },
  });
  const { contextTokens } = ports.models;
  const loop = createAgentLoop({ ...ports, model, contextTokens, invoker, taint });
  const runningAgent = { ...agent, policyName: agent.policy.name, level: deciders(false).level };
  return { forge, lifecycle, invoker, loop, background, guards, runningAgent };
}

function timeouts(agent: EngineAgent): (tool: ToolDescriptor) => number {
  const configuredMs = parseDuration(agent.spec.limits?.toolTimeout ?? DEFAULT_TOOL_TIMEOUT);
  return ({ name }) => (name === FORGE_TOOL_NAME ? Math.max(configuredMs, FORGE_TIMEOUT_MS) : configuredMs);
}

function errorEvent(error: unknown): Parameters<EventSink>[0] {
  const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
  return { type: 'error', code, message: messageOf(error), attempt: 1 };
}
