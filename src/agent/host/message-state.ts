import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { ItemOrigin } from '../../models/item-origin.ts';
import type { ModelMessage, TokenUsage } from '../../models/port.ts';
import type { CallerContext, Invoker } from '../../tools/contract.ts';
import type { EventSink } from '../../tools/events.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import { MAX_OUTPUT_CHARACTERS } from '../call/call-reply.ts';
import { type CodeModeDeps, type CodeState, openCodeState } from '../code/code-state.ts';
import { type AgentContext, contextEvent } from '../context/context-text.ts';
import type { ContextReader } from '../context/read-context.ts';
import { itemsForModel } from '../compaction/summary-item.ts';
import { originsOf } from '../history/origins.ts';
import { createDisclosure, type Disclosure, type DisclosureDeps } from '../disclosure/disclosure.ts';
import type { AgentHooks } from '../hooks/agent-hooks.ts';
import { type LoopLimits, loopLimits } from '../loop/limits.ts';
import { systemPrompt } from '../loop/system-prompt.ts';
import type { TaintTracker } from '../loop/taint-tracker.ts';
import { createToolOrder, type ToolOrder } from '../loop/tool-order.ts';
import type { Trace, TraceEntry } from '../loop/trace.ts';
import type { IncomingMessage, RunningAgent } from '../message.ts';
import type { SessionHistory, SessionStore } from '../ports.ts';
import type { ProviderTask } from '../provider/port.ts';
import type { MessageResult } from '../returns/message-result.ts';
import { routeMessage } from '../routing/route-message.ts';
import { createHistoryWriter, type HistoryWriter } from '../session/history-writer.ts';
import { findResumePoint, type ResumePoint } from '../session/resume.ts';

export interface MessageHostDeps {
  clock: Clock;
  invoker: Invoker;
  sessions: SessionStore;
  taint: TaintTracker;
  /** Whether the policy distrusts items of this origin. Items of a session may be older than the policy. */
  isUntrusted: (origin: ItemOrigin) => boolean;
  /** For agents in code mode. */
  code?: CodeModeDeps | undefined;
  /** Absent for an agent without hooks. */
  hooks?: AgentHooks | undefined;
  /** Absent for an agent whose model always gets all tools. */
  disclosure?: DisclosureDeps | undefined;
  /** Absent for an agent without a context, and in nested runs. */
  context?: ContextReader | undefined;
  /** Absent for an agent without `spec.returns`. */
  result?: MessageResult | undefined;
}

/** What the policy keeps while a message is processed. */
export interface MessageState {
  readonly agent: RunningAgent;
  readonly caller: CallerContext;
  /** The beginning of the idempotency keys of the calls. */
  readonly key: string;
  /** The name under which the runner of programs is kept. */
  readonly runner: string;
  readonly limits: LoopLimits;
  readonly task: ProviderTask;
  readonly prompt: string;
  readonly historyWriter: HistoryWriter;
  readonly order: ToolOrder;
  readonly events: EventSink;
  /** What happened so far. */
  readonly trace: () => readonly TraceEntry[];
  turns: number;
  /** Stored answers of this message, those of earlier attempts included; a part of the idempotency keys of their calls. */
  answers: number;
  toolCalls: number;
  /** A limit is reached: no further call is made. */
  isConcluding: boolean;
  usage: TokenUsage;
  /** Undefined when the model calls tools itself. */
  readonly code: CodeState | undefined;
  /** Undefined when the model always gets all tools. */
  readonly disclosure: Disclosure | undefined;
}

/** The place of a run of `agent_run` in the message that it belongs to. */
export type NestedIn = Pick<MessageState, 'caller' | 'key' | 'runner'>;

/** Loads the history and adds the new message, whose words the sender's inbox has until the message ends. */
export async function openMessage(
  deps: MessageHostDeps,
  message: IncomingMessage,
  agent: RunningAgent,
  trace: Trace,
  { op, nested }: { op: CallOptions; nested?: NestedIn },
): Promise<MessageState> {
  const { sink: events } = trace;
  const { session, text, message: id, from, call } = message;
  const history = await loadHistory(deps, session);
  const resume = findResumePoint(history.items, history.seq, id);
  const code = call === undefined ? openCodeState(agent.spec, history.items, resume) : undefined;
  const base = resume?.base ?? history.seq;
  const { spec } = agent;
  const { caller, key, runner } = nested ?? { caller: callerOf(message, agent), key: session, runner: session };
  // Before the message is stored: what the session reads may taint it.
  const context = await deps.context?.(caller, op);
  const { system } = spec.prompt;
  const limits = limitsOf(spec, message);
  const before = itemsForModel(history.items.slice(0, base));
  const tools = deps.invoker.visible(caller).length;
  const route = routeMessage(spec.model, { system, before, text, tools });
  const config = configOf(spec, route.model, limits);
  const prompt = systemPrompt(system);
  const { maxOutputTokens } = limits;
  const disclosed = { caller, text, prompt, model: route.model, maxOutputTokens };
  const historyWriter = createHistoryWriter(deps.sessions, session, history);
  const origin = message.source ?? 'User';
  const added: ModelMessage = { role: 'user', text, origin, ...(id === undefined ? {} : { message: id }) };
  if (resume === undefined) {
    await historyWriter.write([added], { ...deps.taint.marks(session), deferrable: true });
  }
  events({ type: 'message-received', text, ...(from === undefined ? {} : { from }) });
  for (const event of route.events) events(event);
  if (context !== undefined) events(contextEvent(context));
  return {
    agent,
    caller,
    key,
    runner,
    limits,
    task: taskOf({ session, message: text, config, base }, { context, resume }),
    prompt,
    historyWriter,
    order: createToolOrder(),
    events,
    trace: () => trace.entries(),
    ...progressOf(resume),
    ...(code === undefined ? {} : { toolCalls: code.steps }),
    isConcluding: false,
    usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 },
    code,
    disclosure: createDisclosure(deps.disclosure, spec, disclosed),
  };
}

function configOf(
  { model: { temperature } }: AgentSpec,
  model: string,
  { maxOutputTokens, modelTimeoutMs }: LoopLimits,
): ProviderTask['config'] {
  const warmth = temperature === undefined ? {} : { temperature: Number(temperature) };
  return { model, ...warmth, maxOutputTokens, modelTimeoutMs };
}

function callerOf({ session, rootMessage, call }: IncomingMessage, { name, namespace }: RunningAgent): CallerContext {
  return { agent: name, namespace, session, rootMessage, stack: [], origin: call === undefined ? 'Agent' : 'Client' };
}

/** A program gets the whole output, which is JSON. */
function limitsOf(spec: AgentSpec, { source, call }: IncomingMessage): LoopLimits {
  const limits = loopLimits(spec, source);
  return call === undefined ? limits : { ...limits, outputCharacters: MAX_OUTPUT_CHARACTERS };
}

async function loadHistory(
  { sessions, taint, isUntrusted }: MessageHostDeps,
  session: string,
): Promise<SessionHistory> {
  const history = await sessions.load(session);
  const origins = originsOf(history.items);
  if (history.tainted || origins.some(isUntrusted)) taint.mark(session);
  if (history.private === true) taint.markPrivate(session);
  for (const origin of origins) taint.read(session, origin);
  return history;
}

function taskOf(
  task: ProviderTask,
  { context, resume }: { context: AgentContext | undefined; resume: ResumePoint | undefined },
): ProviderTask {
  return {
    ...task,
    ...(context === undefined || context.text === '' ? {} : { context: context.text }),
    ...(resume === undefined ? {} : { resume }),
  };
}

/** What earlier attempts used of the limits. Calls without a result are counted when they are repeated. */
function progressOf(point: ResumePoint | undefined): Pick<MessageState, 'turns' | 'answers' | 'toolCalls'> {
  if (point === undefined) return { turns: 0, answers: 0, toolCalls: 0 };
  return { turns: point.turns, answers: point.turns, toolCalls: point.toolCalls - point.pending.length };
}
