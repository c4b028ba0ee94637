import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import type { FinishReason } from '../../bus/port.ts';
import type { ItemOrigin } from '../../models/item-origin.ts';
import { type CallOptions, remainingMs, withTimeout } from '../../lib/call-options.ts';
import { ATTRIBUTES, inSpan, SPANS } from '../../telemetry/spans.ts';
import type { Invoker } from '../../tools/contract.ts';
import type { EventSink } from '../../tools/events.ts';
import type { CodeModeDeps } from '../code/code-state.ts';
import type { ContextReader } from '../context/read-context.ts';
import type { DisclosureDeps } from '../disclosure/disclosure.ts';
import type { AgentHooks } from '../hooks/agent-hooks.ts';
import type { RequiredValue } from '../returns/finish.ts';
import { withMessageResult } from '../returns/message-result.ts';
import { createCallProvider } from '../call/call-provider.ts';
import { pinnedInvoker } from '../call/pinned-invoker.ts';
import { MessageHost } from '../host/message-host.ts';
import { MessagesInWork } from '../host/messages-in-work.ts';
import { type MessageHostDeps, type MessageState, openMessage } from '../host/message-state.ts';
import type { AgentProvider } from '../provider/port.ts';
import { createLoopProvider } from './turn-loop.ts';
import type { IncomingMessage, RunningAgent } from '../message.ts';
import { type MessageUsage, withUsage } from './message-usage.ts';
import type { ModelCallDeps } from './model-call.ts';
import type { SessionStore } from '../ports.ts';
import { assertSessionId } from '../session/session-id.ts';
import { createSessionLocks } from '../session/session-locks.ts';
import type { SkillBudget } from '../skills/loaded-skills.ts';
import { createTaintTracker, isFromHost, type TaintTracker } from './taint-tracker.ts';
import { createTrace, type TraceEntry } from './trace.ts';

export interface AgentLoopDeps extends ModelCallDeps {
  invoker: Invoker;
  sessions: SessionStore;
  /** Shared with other components that observe untrusted content; the loop marks sessions for its own calls. */
  taint?: TaintTracker;
  /** Default: what comes from hosts. */
  isUntrusted?: (origin: ItemOrigin) => boolean;
  /** Context window of a model in tokens. Default 128,000. */
  contextTokens?: (model: string) => number;
  /** For agents in code mode. */
  code?: CodeModeDeps | undefined;
  hooks?: AgentHooks | undefined;
  /** Absent for an agent whose model always gets all tools. */
  disclosure?: DisclosureDeps | undefined;
  /** Absent for an agent without `spec.prompt.context`. */
  context?: ContextReader | undefined;
  /** Absent for an agent that has no skills. */
  skillBudget?: SkillBudget;
  /** The value that every answer must have; absent for an agent without `spec.returns`. */
  returns?: RequiredValue | undefined;
  /** What loops over the model. Default: the loop of this module. */
  provider?: AgentProvider;
  /** Shared with the tools that belong to a message in work. */
  messages?: MessagesInWork;
}

interface HandlerDeps extends MessageHostDeps {
  messages: MessagesInWork;
  provider: AgentProvider;
}

export interface HandledMessage extends MessageUsage {
  reply: string;
  /** `refusal`: the model declined. `truncated`: at a limit. */
  finishReason: FinishReason;
  /** The reply is JSON that matches `spec.returns`. */
  format?: 'json';
  /** The requests that the message waits for. It has no reply yet: handle it again, with its id, after a decision. */
  parked?: readonly string[];
  trace: TraceEntry[];
}

export interface AgentLoop {
  /**
   * Handles one message. Messages of one session are handled one after another. Throws TEMPER_SESSION_INVALID, TEMPER_TURN_LIMIT and
   * TEMPER_STEP_LIMIT (with the partial reply in `details.reply`), TEMPER_LOOP_DETECTED, TEMPER_QUOTA_EXCEEDED, TEMPER_MODEL_*,
   * TEMPER_TIMEOUT, TEMPER_CANCELLED. The error has the usage of the message in `details.used`. Items reported before the error stay in the session.
   */
  handle(message: IncomingMessage, agent: RunningAgent, events: EventSink, op: CallOptions): Promise<HandledMessage>;
  /** Whether untrusted content has entered the session. Known after the first message that this process handles. */
  isTainted(session: string): boolean;
  /** Waits for the running message, then deletes the history of the session. */
  closeSession(session: string): Promise<void>;
}

export function createAgentLoop(deps: AgentLoopDeps): AgentLoop {
  const locks = createSessionLocks();
  const taint = deps.taint ?? createTaintTracker();
  const contextTokens = deps.contextTokens ?? ((): number => 128_000);
  const { model, clock, invoker, sessions, code, hooks, context, disclosure, isUntrusted = isFromHost } = deps;
  const { messages = new MessagesInWork() } = deps;
  const budget = deps.skillBudget === undefined ? {} : { skillBudget: deps.skillBudget };
  const provider = deps.provider ?? createLoopProvider({ model, clock, contextTokens, ...budget });
  const shared: HandlerDeps = {
    clock,
    invoker,
    sessions,
    taint,
    isUntrusted,
    code,
    hooks,
    disclosure,
    context,
    provider,
    messages,
  };
  return {
    async handle(message, agent, events, op) {
      assertSessionId(message.session);
      return withTimeout(op, deps.clock, remainingMs(op, deps.clock), (bounded) =>
        locks.run(message.session, bounded.signal, () =>
          handleTraced(depsFor(message, shared, deps.returns), message, agent, events, bounded),
        ),
      );
    },
    isTainted: (session) => taint.has(session),
    async closeSession(session) {
      await locks.run(session, new AbortController().signal, () => deps.sessions.close(session));
      await deps.code?.sessions.close(session);
      taint.clear(session);
    },
  };
}

/** A call is made without what belongs to the turns of a model. */
function depsFor({ call }: IncomingMessage, deps: HandlerDeps, returns: RequiredValue | undefined): HandlerDeps {
  if (call === undefined) return withMessageResult(deps, returns);
  const { code: _code, hooks: _hooks, disclosure: _disclosure, context: _context, ...rest } = deps;
  return { ...rest, provider: createCallProvider(call), invoker: pinnedInvoker(deps.invoker, call) };
}

function handleTraced(
  deps: HandlerDeps,
  message: IncomingMessage,
  agent: RunningAgent,
  events: EventSink,
  op: CallOptions,
): Promise<HandledMessage> {
  const attributes = {
    [ATTRIBUTES.operation]: 'invoke_agent',
    [ATTRIBUTES.agent]: agent.name,
    [ATTRIBUTES.conversation]: message.session,
    [ATTRIBUTES.rootMessage]: message.rootMessage,
  };
  return inSpan(SPANS.invokeAgent(agent.name), { attributes }, async (span) => {
    const handled = await handleMessage(deps, message, agent, events, op);
    span.setAttribute(ATTRIBUTES.inputTokens, handled.usage.inputTokens);
    span.setAttribute(ATTRIBUTES.outputTokens, handled.usage.outputTokens);
    return handled;
  });
}

async function handleMessage(
  deps: HandlerDeps,
  message: IncomingMessage,
  agent: RunningAgent,
  events: EventSink,
  op: CallOptions,
): Promise<HandledMessage> {
  const trace = createTrace(deps.clock, events);
  const { sink } = trace;
  const { session } = message;
  const model = agent.spec.model.primary;
  sink({ type: 'session-start', session, model, policy: agent.policyName, level: agent.level });
  let state: MessageState | undefined;
  try {
    state = await openMessage(deps, message, agent, trace, { op });
    const { task, historyWriter, usage } = state;
    const host = new MessageHost(deps, state, op);
    const answer = await deps.messages.during(session, { historyWriter, events: sink, usage }, () =>
      deps.provider.run(task, host, op),
    );
    const outcome = host.outcomeOf(answer);
    reportEnd(state, outcome, sink);
    return { ...usageFigures(state), ...outcome, trace: trace.entries() };
  } catch (error) {
    const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
    sink({ type: 'error', code, message: messageOf(error), attempt: 1 });
    if (state === undefined) throw error;
    reportEnd(state, { reply: replyIn(error) }, sink);
    throw withUsage(error, state);
  }
}

function reportEnd(
  state: MessageState,
  { reply, format }: Pick<HandledMessage, 'reply' | 'format'>,
  sink: EventSink,
): void {
  const { turns, toolCalls, usage } = usageFigures(state);
  const { inputTokens, outputTokens } = usage;
  const formatted = format === undefined ? {} : { format };
  sink({ type: 'session-end', turns, toolCalls, inputTokens, outputTokens, reply, ...formatted });
}

function usageFigures({ turns, toolCalls, usage }: MessageState): MessageUsage {
  return { turns, toolCalls, usage };
}

function replyIn(error: unknown): string {
  const reply = error instanceof TemperError ? error.details.reply : undefined;
  return typeof reply === 'string' ? reply : '';
}
