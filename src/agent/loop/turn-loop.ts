import type { CallOptions } from '../../lib/call-options.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, type TemperError } from '../../lib/errors.ts';
import type { ToolCall } from '../../models/port.ts';
import type { AgentProvider, TaskAnswer, ProviderDirective, ProviderOffer } from '../provider/port.ts';
import { PHANTOM_ACTION_NOTE, withTextCalls } from '../recovery/answer-recovery.ts';
import { claimsPhantomAction } from '../recovery/phantom-action.ts';
import {
  appendMessages,
  appendReply,
  type AgentConversation,
  type LoopDeps,
  openConversation,
  requestAnswer,
  seenMessages,
  storeAnswer,
} from './conversation.ts';
import { MAX_CONTINUATIONS } from './limits.ts';
import type { ModelAnswer } from './model-call.ts';

const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/** What follows an answer: the end of the message, a closing turn, or another turn. */
type Handled = { answer: TaskAnswer } | { conclude: string } | undefined;

/** The provider of Temper itself: it calls a model until the model gives a final answer, or the host ends the message. */
export function createLoopProvider(deps: LoopDeps): AgentProvider {
  return {
    async run(task, host, op) {
      const conversation = await openConversation(task, host);
      for (let ended = await resumed(conversation); ; ended = await runTurn(deps, conversation, op)) {
        if (ended === undefined) continue;
        return 'answer' in ended ? ended.answer : closingTurn(deps, conversation, ended.conclude, op);
      }
    },
  };
}

/** Completes what an earlier attempt at the message left: a reply, or calls without a result. */
async function resumed(conversation: AgentConversation): Promise<Handled> {
  const { resume } = conversation.task;
  if (resume?.reply !== undefined) {
    const { reply } = resume;
    const ended = await endTurn(conversation, reply, { answer: { reply, finishReason: 'complete' } });
    if (ended !== undefined) return ended;
  }
  return resume === undefined || resume.pending.length === 0 ? undefined : callTools(conversation, resume.pending);
}

async function runTurn(deps: LoopDeps, conversation: AgentConversation, op: CallOptions): Promise<Handled> {
  const { host } = conversation;
  const turn = conversation.turns + 1;
  const directive = await host.hook({ type: 'turn-start', turnNumber: turn });
  if (directive !== undefined && 'conclude' in directive) return directive;
  const offer = await host.offer();
  const given = await answerOrStop(deps, conversation, offer, op);
  if ('stopped' in given) return { answer: given.stopped };
  const handled = await handleAnswer(conversation, given, offer);
  if (handled !== undefined && 'conclude' in handled) return handled;
  const { inputTokens, outputTokens } = given.usage;
  host.report({ type: 'turn-end', turn, inputTokens, outputTokens });
  return endTurn(conversation, given.text, handled);
}

/** Asks the host what follows the turn. A parked turn has not ended. */
async function endTurn(conversation: AgentConversation, result: string, handled: Handled): Promise<Handled> {
  const answer = handled !== undefined && 'answer' in handled ? handled.answer : undefined;
  if (answer?.parked !== undefined) return handled;
  const { host, turns } = conversation;
  const ended = answer === undefined ? {} : { answer };
  const directive = await host.hook({ type: 'turn-end', turnNumber: turns, result, ...ended });
  if (directive === undefined) return handled;
  if ('conclude' in directive) return directive;
  if ('stop' in directive) return { answer: await stopWith(conversation, directive) };
  const { message } = directive;
  if (message !== undefined) await appendMessages(conversation, [{ role: 'user', text: message }]);
  return undefined;
}

async function stopWith(
  conversation: AgentConversation,
  { result }: Extract<ProviderDirective, { stop: true }>,
): Promise<TaskAnswer> {
  await appendReply(conversation, result);
  return { reply: result, finishReason: 'complete' };
}

/** The answer of the model. After a failure the host decides whether to try again or to end the message. */
async function answerOrStop(
  deps: LoopDeps,
  conversation: AgentConversation,
  offer: ProviderOffer,
  op: CallOptions,
): Promise<ModelAnswer | { stopped: TaskAnswer }> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await requestAnswer(deps, conversation, offer, op);
    } catch (error) {
      if (!isModelFailure(error) || op.signal.aborted) throw error;
      const { code, message } = error;
      const directive = await conversation.host.hook({ type: 'error', error: { code, message }, attempt });
      if (directive === undefined || 'conclude' in directive) throw error;
      if ('stop' in directive) return { stopped: await stopWith(conversation, directive) };
      await retryAfter(deps, conversation, code, attempt, op);
    }
  }
}

async function retryAfter(
  { clock }: LoopDeps,
  { host }: AgentConversation,
  code: ErrorCode,
  attempt: number,
  op: CallOptions,
): Promise<void> {
  const delayMs = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (attempt - 1));
  await host.hook({ type: 'retry', code, attempt: attempt + 1, delayMs });
  await clock.sleep(delayMs, op.signal);
}

function isModelFailure(error: unknown): error is TemperError {
  return isTemperError(error) && error.code.startsWith('TEMPER_MODEL_');
}

/** Handles one answer. Returns undefined when the conversation continues. */
async function handleAnswer(
  conversation: AgentConversation,
  given: ModelAnswer,
  offer: ProviderOffer,
): Promise<Handled> {
  const { parts, host } = conversation;
  const answer = withTextCalls(given, offer.tools, seenMessages(conversation), (note) => host.report(note));
  const { text, toolCalls, stopReason } = answer;
  await storeAnswer(conversation, answer, offer.tools);
  if (stopReason === 'length') return continueTruncated(conversation, text);
  if (stopReason === 'refusal') {
    host.report({ type: 'warning', code: 'refusal', message: 'the model declined to answer' });
    return { answer: { reply: [...parts, text].join(''), finishReason: 'refusal' } };
  }
  if (toolCalls.length > 0) {
    conversation.parts = [];
    conversation.emptyAnswers = 0;
    return callTools(conversation, toolCalls);
  }
  if (text.trim() === '' && parts.length === 0 && conversation.emptyAnswers === 0) {
    conversation.emptyAnswers += 1;
    await appendMessages(conversation, [
      { role: 'user', text: '[Your last answer was empty. Answer, or call a tool.]' },
    ]);
    return undefined;
  }
  if (isPhantomAction(conversation, text, offer)) {
    conversation.hasPhantomNote = true;
    const message = 'the model claims an action without a tool call';
    host.report({ type: 'warning', code: 'phantom-action', message });
    await appendMessages(conversation, [{ role: 'user', text: PHANTOM_ACTION_NOTE }]);
    return undefined;
  }
  if (text.trim() === '' && parts.length === 0) {
    host.report({ type: 'warning', code: 'empty-answer', message: 'the model answered with nothing, twice' });
  }
  return { answer: { reply: [...parts, text].join(''), finishReason: 'complete' } };
}

/** Once per message. An answer in several parts is already in front of the user. */
function isPhantomAction(
  { messages, parts, hasPhantomNote }: AgentConversation,
  text: string,
  { tools, programTools }: ProviderOffer,
): boolean {
  if (hasPhantomNote || parts.length > 0) return false;
  const called = new Set(messages.flatMap((message) => (message.role === 'tool' ? [message.name] : [])));
  // A program can have done it.
  if (programTools !== undefined && tools.some(({ name }) => called.has(name))) return false;
  return claimsPhantomAction(text, programTools ?? tools, called);
}

async function continueTruncated(conversation: AgentConversation, text: string): Promise<Handled> {
  const { parts, host, task } = conversation;
  parts.push(text);
  if (parts.length > MAX_CONTINUATIONS) {
    const message = `the answer was cut at ${task.config.maxOutputTokens} tokens, ${MAX_CONTINUATIONS} continuations included; raise spec.model.maxOutputTokens`;
    host.report({ type: 'warning', code: 'answer-cut', message });
    return { answer: { reply: parts.join(''), finishReason: 'truncated' } };
  }
  const request =
    text === ''
      ? '[Your last answer was cut before it said anything. Be shorter; a tool call must be complete to be made.]'
      : '[Your last answer was cut. Continue exactly where it stopped; a tool call must be complete to be made.]';
  await appendMessages(conversation, [{ role: 'user', text: request }]);
  return undefined;
}

async function callTools(conversation: AgentConversation, calls: ToolCall[]): Promise<Handled> {
  const { items, parked, reply, conclude } = await conversation.host.invoke(calls);
  conversation.messages.push(...items);
  // What is stored of a parked turn is enough to resume it: the answer with its calls, and the results of those that ended.
  if (parked !== undefined) return { answer: { reply: '', finishReason: 'complete', parked } };
  if (reply !== undefined) return { answer: { reply, finishReason: 'complete' } };
  return conclude === undefined ? undefined : { conclude };
}

/**
 * Asks the model for a final statement. The tools stay in the request, because providers reject a history with calls but without tools, and
 * to keep their prompt cache valid; calls in this answer are not executed.
 */
async function closingTurn(
  deps: LoopDeps,
  conversation: AgentConversation,
  note: string,
  op: CallOptions,
): Promise<TaskAnswer> {
  const { host } = conversation;
  await appendMessages(conversation, [{ role: 'user', text: note }]);
  const turn = conversation.turns + 1;
  await host.hook({ type: 'turn-start', turnNumber: turn });
  const offer = await host.offer();
  const answer = await requestAnswer(deps, conversation, offer, op);
  await storeAnswer(conversation, { ...answer, toolCalls: [] }, offer.tools);
  const { inputTokens, outputTokens } = answer.usage;
  host.report({ type: 'turn-end', turn, inputTokens, outputTokens });
  return { reply: answer.text, finishReason: 'complete' };
}
