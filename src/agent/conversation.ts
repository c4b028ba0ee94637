import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import type { Op } from '../lib/operation.ts';
import type { ModelMessage, ModelRequest, TokenUsage } from '../models/port.ts';
import type { CallerContext, Invoker, ToolDescriptor } from '../tools/contract.ts';
import type { EventSink } from '../tools/events.ts';
import { charactersOf, charactersOfTools, type ContextBudget, fitContext, shrinkContext } from './context.ts';
import { type LoopLimits, MAXIMUM_CONTINUATIONS } from './limits.ts';
import type { IncomingMessage, RunningAgent } from './message.ts';
import { callModel, type ModelAnswer, type ModelCallDeps } from './model-call.ts';
import type { SessionStore } from './ports.ts';
import { systemPrompt } from './prompt.ts';
import { createRecorder, type Recorder } from './recorder.ts';
import { repairHistory } from './repair.ts';
import type { TaintMarks } from './taint.ts';
import { runToolCalls } from './tool-calls.ts';
import { createToolOrder, type ToolOrder } from './tool-order.ts';

export interface ConversationDeps extends ModelCallDeps {
  invoker: Invoker;
  sessions: SessionStore;
  taint: TaintMarks;
  contextTokens: (model: string) => number;
}

/** The work on one message. */
export interface Conversation {
  readonly agent: RunningAgent;
  readonly message: IncomingMessage;
  readonly caller: CallerContext;
  readonly limits: LoopLimits;
  readonly system: string;
  readonly recorder: Recorder;
  readonly order: ToolOrder;
  readonly events: EventSink;
  /** Items stored before this message; makes the keys of its calls unlike those of any other try. */
  readonly base: number;
  /** What the model is sent: the stored history, repaired and trimmed. */
  messages: ModelMessage[];
  turns: number;
  toolCalls: number;
  usage: TokenUsage;
  /** Parts of an answer that was cut and is being continued. */
  parts: string[];
  emptyAnswers: number;
}

interface Finish {
  reply: string;
  ending: 'complete' | 'cut' | 'refusal';
}

/** Loads and repairs the history and makes the new message part of it. */
export async function openConversation(
  deps: ConversationDeps,
  message: IncomingMessage,
  agent: RunningAgent,
  limits: LoopLimits,
  events: EventSink,
): Promise<Conversation> {
  const { session, rootMessage, text } = message;
  const history = await deps.sessions.load(session);
  if (history.tainted) deps.taint.mark(session);
  const conversation: Conversation = {
    agent,
    message,
    limits,
    events,
    caller: { agent: agent.name, namespace: agent.namespace, session, rootMessage, stack: [] },
    system: systemPrompt(agent.spec.prompt.system),
    recorder: createRecorder(deps.sessions, session, history.seq),
    order: createToolOrder(),
    base: history.seq,
    messages: repairHistory(history.items),
    turns: 0,
    toolCalls: 0,
    usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 },
    parts: [],
    emptyAnswers: 0,
  };
  await say(deps, conversation, [{ role: 'user', text }]);
  events({ type: 'message-received', text });
  return conversation;
}

/**
 * Turns until there is an answer. Here is the place for what may later decide over a turn: hooks, structured returns,
 * a persistent agent.
 */
export async function converse(deps: ConversationDeps, conversation: Conversation, op: Op): Promise<Finish> {
  const { limits, events } = conversation;
  while (conversation.turns < limits.turns) {
    const turn = conversation.turns + 1;
    events({ type: 'turn-start', turn });
    const visible = deps.invoker.visible(conversation.caller);
    const answer = await ask(deps, conversation, visible, op);
    const finish = await take(deps, conversation, answer, visible, op);
    const { inputTokens, outputTokens } = answer.usage;
    events({ type: 'turn-end', turn, inputTokens, outputTokens });
    if (finish !== undefined) return finish;
  }
  return close(deps, conversation, 'TEMPER_TURN_LIMIT', `all ${limits.turns} turns for this message are used`, op);
}

/** One answer, handled. Nothing when the conversation goes on. */
async function take(
  deps: ConversationDeps,
  conversation: Conversation,
  answer: ModelAnswer,
  visible: readonly ToolDescriptor[],
  op: Op,
): Promise<Finish | undefined> {
  const { text, toolCalls, stopReason } = answer;
  const { parts, events } = conversation;
  await keepAnswer(deps, conversation, answer);
  if (stopReason === 'length') return continueCut(deps, conversation, text);
  if (stopReason === 'refusal') {
    events({ type: 'warning', code: 'refusal', message: 'the model declined to answer' });
    return { reply: [...parts, text].join(''), ending: 'refusal' };
  }
  if (toolCalls.length > 0) {
    conversation.parts = [];
    conversation.emptyAnswers = 0;
    return callTools(deps, conversation, answer, visible, op);
  }
  if (text.trim() === '' && parts.length === 0 && conversation.emptyAnswers === 0) {
    conversation.emptyAnswers += 1;
    await say(deps, conversation, [{ role: 'user', text: '[Your last answer was empty. Answer, or call a tool.]' }]);
    return undefined;
  }
  if (text.trim() === '' && parts.length === 0) {
    events({ type: 'warning', code: 'empty-answer', message: 'the model answered with nothing, twice' });
  }
  return { reply: [...parts, text].join(''), ending: 'complete' };
}

/** Kept first and told afterwards, so that nothing is reported that a crash would lose. */
async function keepAnswer(deps: ConversationDeps, conversation: Conversation, answer: ModelAnswer): Promise<void> {
  const { text, reasoning, toolCalls } = answer;
  const { events } = conversation;
  if (text !== '' || toolCalls.length > 0) await say(deps, conversation, [{ role: 'assistant', text, toolCalls }]);
  if (reasoning !== '') events({ type: 'reasoning', text: reasoning });
  if (text !== '') events({ type: 'message', text, delta: false });
}

async function continueCut(
  deps: ConversationDeps,
  conversation: Conversation,
  text: string,
): Promise<Finish | undefined> {
  conversation.parts.push(text);
  if (conversation.parts.length > MAXIMUM_CONTINUATIONS) {
    const message = `the answer was cut at ${conversation.limits.maxOutputTokens} tokens, ${MAXIMUM_CONTINUATIONS} continuations included; raise spec.model.maxOutputTokens`;
    conversation.events({ type: 'warning', code: 'answer-cut', message });
    return { reply: conversation.parts.join(''), ending: 'cut' };
  }
  const request =
    text === ''
      ? '[Your last answer was cut before it said anything. Be shorter; a tool call must be complete to be made.]'
      : '[Your last answer was cut. Continue exactly where it stopped; a tool call must be complete to be made.]';
  await say(deps, conversation, [{ role: 'user', text: request }]);
  return undefined;
}

async function callTools(
  deps: ConversationDeps,
  conversation: Conversation,
  answer: ModelAnswer,
  visible: readonly ToolDescriptor[],
  op: Op,
): Promise<Finish | undefined> {
  const { caller, limits, events, recorder } = conversation;
  const allowed = Math.max(0, limits.steps - conversation.toolCalls);
  conversation.toolCalls += Math.min(allowed, answer.toolCalls.length);
  const keep = async (message: ModelMessage, tainted: boolean): Promise<void> => {
    if (tainted) deps.taint.mark(caller.session);
    await recorder.write([message], { tainted: deps.taint.has(caller.session) });
  };
  const { results } = await runToolCalls(
    answer.toolCalls,
    allowed,
    { invoker: deps.invoker, caller, visible, outputCharacters: limits.outputCharacters, events, keep },
    { ...op, key: `${caller.session}/${conversation.base}/${conversation.turns}` },
  );
  conversation.messages.push(...results.map(({ message }) => message));
  if (answer.toolCalls.length > allowed) {
    return close(
      deps,
      conversation,
      'TEMPER_STEP_LIMIT',
      `all ${limits.steps} tool calls for this message are used`,
      op,
    );
  }
  const broken = results.find(({ failure }) => failure?.rule === LOOP_BREAK_RULE)?.failure;
  return broken === undefined ? undefined : close(deps, conversation, broken.code, broken.message, op);
}

/** The rule a tool failure carries when the loop guard ends the whole message. */
const LOOP_BREAK_RULE = 'loop-guard.break';

/**
 * A last word of the model, then the limit as an error. The tools stay listed, because providers refuse a history with
 * calls and no tools and because their cache would be lost; what the model calls now is not called.
 */
async function close(
  deps: ConversationDeps,
  conversation: Conversation,
  code: ErrorCode,
  reason: string,
  op: Op,
): Promise<never> {
  const note = `[${code}: ${reason}. No further tool is called. Say what you found, and what is missing.]`;
  await say(deps, conversation, [{ role: 'user', text: note }]);
  const turn = conversation.turns + 1;
  conversation.events({ type: 'turn-start', turn });
  const visible = deps.invoker.visible(conversation.caller);
  const answer = await ask(deps, conversation, visible, op);
  await keepAnswer(deps, conversation, { ...answer, toolCalls: [] });
  const { text, usage } = answer;
  conversation.events({ type: 'turn-end', turn, inputTokens: usage.inputTokens, outputTokens: usage.outputTokens });
  const { turns, toolCalls } = conversation;
  throw new TemperError(code, `${reason}; ask for less at once or raise spec.limits`, {
    details: { reply: text, turns, toolCalls },
  });
}

/** One model call, with one more try on a smaller history when the provider finds this one too long. */
async function ask(
  deps: ConversationDeps,
  conversation: Conversation,
  visible: readonly ToolDescriptor[],
  op: Op,
): Promise<ModelAnswer> {
  const { agent, system, limits, events, order } = conversation;
  const { model } = agent.spec;
  const tools = order.specs(visible);
  const budget: ContextBudget = {
    windowTokens: Math.max(1_000, deps.contextTokens(model.primary) - limits.maxOutputTokens),
    fixedCharacters: system.length + charactersOfTools(tools),
    task: conversation.message.text,
  };
  conversation.messages = fitContext(conversation.messages, budget);
  const request = (): ModelRequest => ({
    model: model.primary,
    system,
    messages: conversation.messages,
    tools,
    maxOutputTokens: limits.maxOutputTokens,
    ...(model.temperature === undefined ? {} : { temperature: Number(model.temperature) }),
  });
  let answer: ModelAnswer;
  try {
    answer = await callModel(deps, request(), limits.modelMilliseconds, events, op);
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_MODEL_CONTEXT_OVERFLOW')) throw error;
    const smaller = shrinkContext(conversation.messages, budget.task);
    if (charactersOf(smaller) >= charactersOf(conversation.messages)) throw error;
    conversation.messages = smaller;
    events({ type: 'error', code: error.code, message: error.message, attempt: 1 });
    answer = await callModel(deps, request(), limits.modelMilliseconds, events, op);
  }
  conversation.turns += 1;
  addUsage(conversation.usage, answer.usage);
  return answer;
}

function addUsage(sum: TokenUsage, more: TokenUsage): void {
  sum.inputTokens += more.inputTokens;
  sum.outputTokens += more.outputTokens;
  sum.cachedInputTokens += more.cachedInputTokens;
}

/** Adds to the session first and then to what the model is sent, so that nothing is reported that a crash would lose. */
async function say(deps: ConversationDeps, conversation: Conversation, items: ModelMessage[]): Promise<void> {
  const tainted = deps.taint.has(conversation.caller.session);
  await conversation.recorder.write(items, { tainted });
  conversation.messages.push(...items);
  // A user message closes what came before: neighbours are merged. Calls are still waiting for their results otherwise.
  if (items.at(-1)?.role === 'user') conversation.messages = repairHistory(conversation.messages);
}
