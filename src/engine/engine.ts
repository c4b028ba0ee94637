import { createAgentLoop, type Handled } from '../agent/loop.ts';
import { bringsUntrustedContent, createTaintMarks } from '../agent/taint.ts';
import { parseDuration } from '../api/quantities.ts';
import type { Digest } from '../lib/canonical.ts';
import { isTemperError, messageOf } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import type { Op } from '../lib/operation.ts';
import { admitImports } from '../tempering/imports.ts';
import type { CallerContext, NestedCall, ToolDescriptor, ToolResult } from '../tools/contract.ts';
import type { EventSink } from '../tools/events.ts';
import { createInvoker } from '../tools/invoker.ts';
import { createSchemaCompiler } from '../tools/schemas.ts';
import { createAgentModel, withRealModels } from './agent-model.ts';
import { Background } from './background.ts';
import { createDeciders } from './deciders.ts';
import { keepElsewhere, keepHere } from './keeping.ts';
import { LoopGuards } from './loop-guards.ts';
import { meteredModel } from './metered-model.ts';
import type { EngineAgent, EnginePorts } from './ports.ts';
import { builtInTools, forging, type Workshop } from './workshop.ts';
import { createToolViews } from './tool-views.ts';

/** Forging asks a judge, who may take a minute. */
const FORGE_MILLISECONDS = 5 * 60_000;
const DEFAULT_TOOL_TIMEOUT = '60s';

interface EngineMessage {
  session: string;
  text: string;
  /** The message that began it all, where it is known; a new one when absent. */
  rootMessage?: string;
  /** Id of the delivery. A message that is delivered again goes on where the work on it was lost. */
  message?: string;
}

export interface Engine {
  /** Answers one message of a session. Throws what the agent loop throws. */
  handle(message: EngineMessage, op: Op): Promise<Handled>;
  /** Calls one tool as the agent would, through every check. */
  invoke(tool: string, input: Json, session: string, op: Op): Promise<ToolResult>;
  /** Takes a tool out of every view at once. Throws TEMPER_POLICY_DENIED where others keep the tools. */
  demote(digest: Digest, reason: string, actor: string): Promise<void>;
  /** Puts tools that wait in packages for this agent through the forge of a session. Call it when a session begins. None wait where others keep the tools. */
  admitImports(session: string, op: Op): Promise<void>;
  closeSession(session: string): Promise<void>;
  /** Takes up what waited for a person when the last process ended. */
  resume(): Promise<void>;
  /** Waits for promotions under way, but for no person. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * One agent, wired to the place it runs in. Nothing is decided here. Throws TEMPER_POLICY_DENIED when the policy does not allow
 * the agent's model.
 */
export function createEngine(ports: EnginePorts, agent: EngineAgent, events: EventSink): Engine {
  const { forge, keeping, invoker, loop, background, guards, speaker } = wire(ports, agent, events);
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
      guards.during(message.rootMessage ?? newMessage(), (rootMessage) =>
        loop.handle({ ...message, rootMessage }, speaker, events, op),
      ),
    invoke: (tool, input, session, op) =>
      guards.during(newMessage(), (root) => invoker.invoke(tool, input, callerIn(session, root), op)),
    demote: (digest, reason, actor) => keeping.demote(digest, reason, actor),
    async admitImports(session, op) {
      if (!('registry' in ports.tempering)) return;
      const caller = callerIn(session, newMessage());
      const invoke: NestedCall = (tool, input, inner) =>
        invoker.invoke(tool, input, { ...caller, stack: ['forge_tool'] }, inner);
      await admitImports(ports.tempering.records, { agent: name, namespace }, (request) =>
        forge.admit(request, caller, invoke, op),
      );
    },
    async closeSession(session) {
      await ports.tools.closeSession(session);
      await loop.closeSession(session);
    },
    resume: () => keeping.resume(),
    settled: () => background.settled(),
    stop: () => background.stop(),
  };
}

function wire(ports: EnginePorts, given: EngineAgent, events: EventSink) {
  const agent = withRealModels(given, ports.models);
  const taint = createTaintMarks();
  const deciders = createDeciders(agent, ports.workspace);
  const agentModel = createAgentModel(agent, ports.models, deciders(false));
  const background = new Background((error) => events(errorEvent(error)));
  const guards = new LoopGuards();
  const workshop: Workshop = {
    ports,
    agent,
    agentModel,
    events,
    examiner: meteredModel(ports),
    schemas: createSchemaCompiler(),
    decider: (caller: Pick<CallerContext, 'session'>) => deciders(taint.has(caller.session)),
    view: (caller) => views(caller),
  };
  const forge = forging(workshop);
  const builtIn = [...builtInTools(workshop), forge.tool];
  const views = createToolViews({ tools: ports.tools, builtIn, forged: forge.forgedDeps });
  const { tempering } = ports;
  const keeping =
    'registry' in tempering
      ? keepHere(workshop, tempering, builtIn, background)
      : keepElsewhere(tempering, ports.clock);
  const invoker = createInvoker({
    ...ports,
    ...workshop,
    loopGuard: (caller) => guards.of(caller),
    timeoutOf: timeouts(agent),
    observe(call) {
      // What a chain let in taints its session as what the agent called itself.
      if (bringsUntrustedContent(call.tool)) taint.mark(call.caller.session);
      keeping.observe(call);
    },
  });
  const { costOf, contextTokens } = ports.models;
  const loop = createAgentLoop({ ...ports, model: agentModel.model, costOf, contextTokens, invoker, taint });
  const speaker = { ...agent, policyName: agent.policy.name, level: deciders(false).level };
  return { forge, keeping, invoker, loop, background, guards, speaker };
}

function timeouts(agent: EngineAgent): (tool: ToolDescriptor) => number {
  const ordinary = parseDuration(agent.spec.limits?.toolTimeout ?? DEFAULT_TOOL_TIMEOUT);
  return ({ name }) => (name === 'forge_tool' ? Math.max(ordinary, FORGE_MILLISECONDS) : ordinary);
}

function errorEvent(error: unknown): Parameters<EventSink>[0] {
  const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
  return { type: 'error', code, message: messageOf(error), attempt: 1 };
}
