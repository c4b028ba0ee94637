import type { CallOptions } from '../../lib/call-options.ts';
import { isTemperError, type TemperError } from '../../lib/errors.ts';
import type { CountedRequest, ModelMessage, ModelRequest, ToolSpec } from '../../models/port.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { withContext } from '../context/with-context.ts';
import { type CompactionState, compactHistory } from '../compaction/compact.ts';
import { itemsForModel } from '../compaction/summary-item.ts';
import { withNote } from '../disclosure/with-note.ts';
import { type ContextBudget, estimateRequest, fitContext } from '../history/context-window.ts';
import { repairHistory } from '../history/repair-history.ts';
import { isRepeatable } from '../history/repeatable.ts';
import { afterAnswer, afterRefusal, lastCount } from '../history/request-tokens.ts';
import type { ProviderHost, ProviderOffer, ProviderTask } from '../provider/port.ts';
import { type SkillBudget, unloadSkills } from '../skills/loaded-skills.ts';
import { callModel, type ModelAnswer, type ModelCallDeps } from './model-call.ts';

export interface LoopDeps extends ModelCallDeps {
  /** Context window of a model in tokens. */
  contextTokens: (model: string) => number;
  /** Absent for an agent that has no skills. */
  skillBudget?: SkillBudget;
}

/** What the loop keeps while it works on one message. */
export interface AgentConversation {
  readonly task: ProviderTask;
  readonly host: ProviderHost;
  /** The messages for the model: the stored history, repaired and trimmed. */
  messages: ModelMessage[];
  /** What the provider counted for the last request of the session, for the size of the next one. */
  counted: CountedRequest | undefined;
  turns: number;
  /** Parts of a truncated answer that the model is continuing. */
  parts: string[];
  emptyAnswers: number;
  readonly compaction: CompactionState;
  /** The model was asked about an action that it claimed without a call. */
  hasPhantomNote: boolean;
}

/** Reads and repairs the history of the session, which ends with the message. */
export async function openConversation(task: ProviderTask, host: ProviderHost): Promise<AgentConversation> {
  const items = await host.history();
  const { resume, config } = task;
  return {
    task,
    host,
    messages: (resume?.messages ?? repairHistory(itemsForModel(items))).map(asSent),
    counted: lastCount(items, config.model),
    turns: resume?.turns ?? 0,
    parts: [],
    emptyAnswers: 0,
    compaction: { isCounted: resume !== undefined, hasFailed: false },
    hasPhantomNote: false,
  };
}

/**
 * Stores the answer first and reports it afterwards, so that no reported answer is lost in a crash. A final answer, and one whose calls
 * have no effect that a repeated call would double, may be stored with the next items or with the end of the message.
 */
export async function storeAnswer(
  conversation: AgentConversation,
  { text, reasoning, toolCalls }: ModelAnswer,
  tools: readonly ToolDescriptor[],
): Promise<void> {
  const { host, counted } = conversation;
  const request = counted === undefined ? {} : { request: counted };
  if (text !== '' || toolCalls.length > 0) {
    await appendMessages(conversation, [{ role: 'assistant', text, toolCalls, ...request }], {
      deferrable: toolCalls.every(({ name }) => isRepeatable(tools.find((tool) => tool.name === name))),
    });
  }
  if (reasoning !== '') await host.hook({ type: 'reasoning', text: reasoning });
  if (text !== '') await host.hook({ type: 'message', text });
}

/** The messages as the model sees them. */
export function seenMessages({ task, messages }: AgentConversation): ModelMessage[] {
  return withContext(task.context, messages);
}

/** Calls the model; retries once with a smaller history when the provider rejects the request as too long. */
export async function requestAnswer(
  deps: LoopDeps,
  conversation: AgentConversation,
  { prompt, tools, note }: ProviderOffer,
  op: CallOptions,
): Promise<ModelAnswer> {
  const { host, task } = conversation;
  const { model, maxOutputTokens } = task.config;
  const fixed = { system: prompt, tools: tools.map(asSpec) };
  const windowTokens = Math.max(1_000, deps.contextTokens(model) - maxOutputTokens);
  // Context and note take their part of the window, and no trimming removes them.
  const counted = { ...fixed, system: `${prompt}${task.context ?? ''}${note ?? ''}` };
  const budget = (): ContextBudget => ({
    windowTokens,
    fixed: counted,
    task: task.message,
    ...lastOf(conversation),
  });
  const fit = (): ModelMessage[] => fitContext(conversation.messages, budget());
  const call = (): Promise<ModelAnswer> => callOnce(deps, conversation, { fixed, windowTokens, note }, op);
  if (await compactHistory(deps, conversation, budget(), op)) {
    conversation.messages = repairHistory(itemsForModel(await host.history())).map(asSent);
  }
  conversation.messages = withoutOldSkills(deps, conversation.messages, counted, windowTokens);
  conversation.messages = fit();
  const answer = await call().catch((error: unknown) => {
    if (!isOverflow(error)) throw error;
    conversation.messages = fitAfterRefusal(fit, error);
    host.report({ type: 'error', code: error.code, message: error.message, attempt: 1 });
    return call();
  });
  conversation.turns += 1;
  host.report({ type: 'usage', turns: 1, ...answer.usage });
  return answer;
}

/** Instructions of skills leave before messages do: they can be loaded again. */
function withoutOldSkills(
  { skillBudget }: LoopDeps,
  messages: ModelMessage[],
  fixed: ContextBudget['fixed'],
  windowTokens: number,
): ModelMessage[] {
  if (skillBudget === undefined) return messages;
  const { bodyTokens, unloadShare } = skillBudget;
  const excess = estimateRequest(messages, fixed) - unloadShare * windowTokens;
  return unloadSkills(messages, { bodyTokens, excess });
}

async function callOnce(
  deps: LoopDeps,
  conversation: AgentConversation,
  { fixed, windowTokens, note }: Pick<ContextBudget, 'fixed' | 'windowTokens'> & { note: string | undefined },
  op: CallOptions,
): Promise<ModelAnswer> {
  const { host, task } = conversation;
  const messages = [...withNote(note, task.message, seenMessages(conversation))];
  const { model, maxOutputTokens, temperature, modelTimeoutMs } = task.config;
  const warmth = temperature === undefined ? {} : { temperature };
  const request: ModelRequest = { model, ...fixed, messages, maxOutputTokens, ...warmth };
  const sent = { model, estimated: estimateRequest(messages, fixed) };
  try {
    const answer = await callModel(deps, request, modelTimeoutMs, (note) => host.report(note), op);
    conversation.counted = afterAnswer(sent, answer.usage.inputTokens, conversation.counted);
    return answer;
  } catch (error) {
    if (isOverflow(error)) conversation.counted = afterRefusal(sent, windowTokens, conversation.counted);
    throw error;
  }
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

/** Adds items to the session first and then to the messages for the model. Items that a user or the loop wrote can wait for the answer. */
export async function appendMessages(
  conversation: AgentConversation,
  items: ModelMessage[],
  { deferrable }: { deferrable: boolean } = { deferrable: true },
): Promise<void> {
  await conversation.host.append(items, deferrable);
  conversation.messages.push(...items.map(asSent));
  // Repair only after a user message, which is merged with its neighbour; after other items, calls may still await results.
  if (items.at(-1)?.role === 'user') conversation.messages = repairHistory(conversation.messages);
}

/** Stores a reply that the model did not write as its last answer, so that the history of the session ends with it. */
export async function appendReply(conversation: AgentConversation, reply: string): Promise<void> {
  const last = conversation.messages.at(-1);
  if (reply === '' || (last?.role === 'assistant' && last.text === reply)) return;
  await appendMessages(conversation, [{ role: 'assistant', text: reply, toolCalls: [] }]);
}

function asSpec({ name, description, inputSchema }: ToolDescriptor): ToolSpec {
  return { name, description, inputSchema };
}

/** Removes members that are internal to the engine. */
function asSent(item: ModelMessage): ModelMessage {
  if (item.role === 'user') return { role: 'user', text: item.text };
  if (item.role === 'assistant') return { role: 'assistant', text: item.text, toolCalls: item.toolCalls };
  const { toolCallId, name, text, isError } = item;
  return { role: 'tool', toolCallId, name, text, isError };
}
