import { isTemperError, type TemperError } from '../../lib/errors.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { ItemOrigin } from '../../models/item-origin.ts';
import type { CountedRequest, ModelMessage, ModelRequest, TokenUsage } from '../../models/port.ts';
import type { CallerContext, Invoker, ToolDescriptor } from '../../tools/contract.ts';
import type { EventSink } from '../../tools/events.ts';
import type { AgentHooks } from '../hooks/agent-hooks.ts';
import type { MessageResult } from '../returns/message-result.ts';
import { type ResumePoint, findResumePoint } from './resume.ts';
import { type ContextBudget, estimateRequest, fitContext } from '../history/context-window.ts';
import { afterAnswer, afterRefusal, lastCount } from '../history/request-tokens.ts';
import { codeRequest } from '../code/code-prompt.ts';
import { type CodeModeDeps, type CodeState, openCodeState } from '../code/code-state.ts';
import { type CompactionState, compactHistory } from '../compaction/compact.ts';
import { itemsForModel } from '../compaction/summary-item.ts';
import { routeMessage } from '../routing/route-message.ts';
import type { LoopLimits } from './limits.ts';
import type { IncomingMessage, RunningAgent } from '../message.ts';
import { callModel, type ModelAnswer, type ModelCallDeps } from './model-call.ts';
import { addUsage } from './message-usage.ts';
import type { SessionStore } from '../ports.ts';
import { systemPrompt } from './system-prompt.ts';
import { createHistoryWriter, type HistoryWriter } from '../session/history-writer.ts';
import { originsOf, withOrigin } from '../history/origins.ts';
import { repairHistory } from '../history/repair-history.ts';
import type { TaintTracker } from './taint-tracker.ts';
import { createToolOrder, type ToolOrder } from './tool-order.ts';
import type { Trace, TraceEntry } from './trace.ts';

export interface AgentConversationDeps extends ModelCallDeps {
  invoker: Invoker;
  sessions: SessionStore;
  taint: TaintTracker;
  /** Whether the policy distrusts items of this origin. Items of a session may be older than the policy. */
  isUntrusted: (origin: ItemOrigin) => boolean;
  contextTokens: (model: string) => number;
  /** For agents in code mode. */
  code?: CodeModeDeps | undefined;
  /** Absent for an agent without hooks. */
  hooks?: AgentHooks | undefined;
  /** Absent for an agent without `spec.returns`. */
  result?: MessageResult | undefined;
}

/** State of the processing of one message. */
export interface AgentConversation {
  readonly agent: RunningAgent;
  readonly message: IncomingMessage;
  readonly caller: CallerContext;
  readonly limits: LoopLimits;
  /** The model of this message, as the request names it. */
  readonly model: string;
  readonly system: string;
  readonly historyWriter: HistoryWriter;
  readonly order: ToolOrder;
  readonly events: EventSink;
  /** What happened so far. */
  readonly trace: () => readonly TraceEntry[];
  /** Number of items stored before this message; makes the idempotency keys of its calls unique in the session. */
  readonly base: number;
  /** The messages for the model: the stored history, repaired and trimmed. */
  messages: ModelMessage[];
  /** What the provider counted for the last request of the session, for the size of the next one. */
  counted: CountedRequest | undefined;
  turns: number;
  /** Stored answers of this message, those of earlier attempts included; a part of the idempotency keys of their calls. */
  answers: number;
  toolCalls: number;
  usage: TokenUsage;
  /** Parts of a truncated answer that the model is continuing. */
  parts: string[];
  emptyAnswers: number;
  readonly compaction: CompactionState;
  /** The model was asked about an action that it claimed without a call. */
  hasPhantomNote: boolean;
  /** Progress of an earlier, interrupted attempt at this message. */
  readonly resumePoint: ResumePoint | undefined;
  /** Undefined when the model calls tools itself. */
  readonly code: CodeState | undefined;
}

/** Loads and repairs the history and appends the new message, whose words the sender's inbox has until the message ends. */
export async function openConversation(
  deps: AgentConversationDeps,
  message: IncomingMessage,
  agent: RunningAgent,
  limits: LoopLimits,
  trace: Trace,
): Promise<AgentConversation> {
  const { session, rootMessage, text, message: id } = message;
  const { sink: events } = trace;
  const history = await deps.sessions.load(session);
  const resumePoint = findResumePoint(history.items, history.seq, id);
  if (history.tainted || originsOf(history.items).some(deps.isUntrusted)) deps.taint.mark(session);
  const code = openCodeState(agent.spec, history.items, resumePoint);
  const base = resumePoint?.base ?? history.seq;
  const caller: CallerContext = {
    agent: agent.name,
    namespace: agent.namespace,
    session,
    rootMessage,
    stack: [],
    origin: 'Agent',
  };
  const system = agent.spec.prompt.system;
  const before = itemsForModel(history.items.slice(0, base));
  const tools = deps.invoker.visible(caller).length;
  const route = routeMessage(agent.spec.model, { system, before, text, tools });
  const { model } = route;
  const conversation: AgentConversation = {
    agent,
    message,
    limits,
    events,
    model,
    trace: () => trace.entries(),
    caller,
    system: systemPrompt(system),
    historyWriter: createHistoryWriter(deps.sessions, session, history),
    order: createToolOrder(),
    base,
    messages: (resumePoint?.messages ?? repairHistory(itemsForModel(history.items))).map(asSent),
    counted: lastCount(history.items, model),
    ...progressOf(resumePoint),
    ...(code === undefined ? {} : { toolCalls: code.steps }),
    code,
    usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 },
    parts: [],
    emptyAnswers: 0,
    compaction: { isCounted: resumePoint !== undefined, hasFailed: false },
    hasPhantomNote: false,
    resumePoint,
  };
  const origin = message.source ?? 'User';
  const userMessage: ModelMessage = { role: 'user', text, origin, ...(id === undefined ? {} : { message: id }) };
  if (resumePoint === undefined) await appendMessages(deps, conversation, [userMessage]);
  events({ type: 'message-received', text });
  route.events.forEach(events);
  return conversation;
}

/** What earlier attempts used of the limits. Calls without a result are counted when they are repeated. */
function progressOf(point: ResumePoint | undefined): Pick<AgentConversation, 'turns' | 'answers' | 'toolCalls'> {
  if (point === undefined) return { turns: 0, answers: 0, toolCalls: 0 };
  return { turns: point.turns, answers: point.turns, toolCalls: point.toolCalls - point.pending.length };
}

/**
 * Stores the answer first and reports it afterwards, so that no reported answer is lost in a crash. A final answer, and one whose calls
 * have no effect that a repeated call would double, may be stored with the next append or with the end of the message.
 */
export async function storeAnswer(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  answer: ModelAnswer,
  visible: readonly ToolDescriptor[],
): Promise<void> {
  const { text, reasoning, toolCalls } = answer;
  const { events, counted } = conversation;
  const request = counted === undefined ? {} : { request: counted };
  if (text !== '' || toolCalls.length > 0) {
    conversation.answers += 1;
    await appendMessages(deps, conversation, [{ role: 'assistant', text, toolCalls, ...request }], {
      deferrable: toolCalls.every(({ name }) => isRepeatable(visible.find((tool) => tool.name === name))),
    });
  }
  if (reasoning !== '') events({ type: 'reasoning', text: reasoning });
  if (text !== '') events({ type: 'message', text, delta: false });
}

/** Calls the model; retries once with a smaller history when the provider rejects the request as too long. */
export async function requestAnswer(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  visible: readonly ToolDescriptor[],
  op: CallOptions,
): Promise<ModelAnswer> {
  const { agent, model, system, limits, events, order } = conversation;
  const { temperature } = agent.spec.model;
  const fixed =
    conversation.code === undefined
      ? { system, tools: order.specs(visible) }
      : codeRequest(agent.spec, system, order, visible);
  const windowTokens = Math.max(1_000, deps.contextTokens(model) - limits.maxOutputTokens);
  const budget = (): ContextBudget => ({
    windowTokens,
    fixed,
    task: conversation.message.text,
    ...lastOf(conversation),
  });
  const fit = (): ModelMessage[] => fitContext(conversation.messages, budget());
  const call = async (): Promise<ModelAnswer> => {
    const request: ModelRequest = {
      model,
      ...fixed,
      messages: conversation.messages,
      maxOutputTokens: limits.maxOutputTokens,
      ...(temperature === undefined ? {} : { temperature: Number(temperature) }),
    };
    const sent = { model, estimated: estimateRequest(conversation.messages, fixed) };
    try {
      const answer = await callModel(deps, request, limits.modelTimeoutMs, events, op);
      conversation.counted = afterAnswer(sent, answer.usage.inputTokens, conversation.counted);
      return answer;
    } catch (error) {
      if (isOverflow(error)) conversation.counted = afterRefusal(sent, windowTokens, conversation.counted);
      throw error;
    }
  };
  const isTainted = deps.taint.has(conversation.caller.session);
  if (await compactHistory(deps, conversation, { budget: budget(), isTainted }, op)) {
    conversation.messages = repairHistory(itemsForModel(conversation.historyWriter.items)).map(asSent);
  }
  conversation.messages = fit();
  const answer = await call().catch((error: unknown) => {
    if (!isOverflow(error)) throw error;
    conversation.messages = fitAfterRefusal(fit, error);
    events({ type: 'error', code: error.code, message: error.message, attempt: 1 });
    return call();
  });
  conversation.turns += 1;
  addUsage(conversation.usage, answer.usage);
  return answer;
}

function isOverflow(error: unknown): error is TemperError {
  return isTemperError(error, 'TEMPER_MODEL_CONTEXT_OVERFLOW');
}

function lastOf({ counted }: AgentConversation): Pick<ContextBudget, 'last'> {
  return counted === undefined ? {} : { last: counted };
}

/** A smaller history; throws the error of the provider when nothing is left to remove. */
function fitAfterRefusal(fit: () => ModelMessage[], refusal: TemperError): ModelMessage[] {
  try {
    return fit();
  } catch (error) {
    throw isOverflow(error) ? refusal : error;
  }
}

/** Appends items to the session first and then to the messages for the model. Items that a user or the loop wrote can wait for the answer. */
export async function appendMessages(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  items: ModelMessage[],
  { deferrable }: { deferrable: boolean } = { deferrable: true },
): Promise<void> {
  const tainted = deps.taint.has(conversation.caller.session);
  const stored = items.map((item) => withOrigin(item, 'Engine'));
  await conversation.historyWriter.write(stored, { tainted, deferrable });
  conversation.messages.push(...items.map(asSent));
  // Repair only after a user message, which is merged with its neighbour; after other items, calls may still await results.
  if (items.at(-1)?.role === 'user') conversation.messages = repairHistory(conversation.messages);
}

/** Stores a reply that the model did not write as its last answer, so that the history of the session ends with it. */
export async function appendReply(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  reply: string,
): Promise<void> {
  const last = conversation.messages.at(-1);
  if (reply === '' || (last?.role === 'assistant' && last.text === reply)) return;
  await appendMessages(deps, conversation, [{ role: 'assistant', text: reply, toolCalls: [] }]);
}

/** A call that has no effect outside the pod may run again after a crash. */
export function isRepeatable(tool: ToolDescriptor | undefined): boolean {
  return tool !== undefined && tool.locality === 'Local' && !tool.sideEffects;
}

/** Removes members that are internal to the engine. */
function asSent(item: ModelMessage): ModelMessage {
  if (item.role === 'user') return { role: 'user', text: item.text };
  if (item.role === 'assistant') return { role: 'assistant', text: item.text, toolCalls: item.toolCalls };
  const { toolCallId, name, text, isError } = item;
  return { role: 'tool', toolCallId, name, text, isError };
}
