import type { ErrorCode } from '../../lib/error-codes.ts';
import { TemperError } from '../../lib/errors.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { callableTools, INVOKE_NAME } from '../code/code-prompt.ts';
import { executeCode } from '../code/execute-code.ts';
import { answerOrStop, endTurn, reportAnswer, startTurn } from '../hooks/turn-hooks.ts';
import type { TurnOutcome } from '../message.ts';
import {
  requestAnswer,
  type AgentConversation,
  type AgentConversationDeps,
  storeAnswer,
  appendMessages,
  isRepeatable,
} from './conversation.ts';
import { PHANTOM_ACTION_NOTE, withTextCalls } from '../recovery/answer-recovery.ts';
import { claimsPhantomAction } from '../recovery/phantom-action.ts';
import { MAX_CONTINUATIONS } from './limits.ts';
import { originOfTool, withOrigin } from '../history/origins.ts';
import type { ModelAnswer } from './model-call.ts';
import { answerKey } from './resume.ts';
import { runToolCalls, type StoredResult } from './tool-calls.ts';

/** Runs turns until the model gives a final answer, or a hook ends the message. */
export async function runTurns(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  op: CallOptions,
): Promise<TurnOutcome> {
  const { limits, events, resumePoint } = conversation;
  if (resumePoint?.reply !== undefined) {
    const { reply } = resumePoint;
    const outcome = await endTurn(deps, conversation, reply, { reply, finishReason: 'complete' }, op);
    if (outcome !== undefined) return outcome;
  }
  if (resumePoint !== undefined && resumePoint.pending.length > 0) {
    const calls = { toolCalls: resumePoint.pending };
    const outcome = await callTools(deps, conversation, calls, deps.invoker.visible(conversation.caller), op);
    if (outcome !== undefined) return outcome;
  }
  while (conversation.turns < limits.turns) {
    const turn = conversation.turns + 1;
    await startTurn(deps, conversation, turn, op);
    const visible = deps.invoker.visible(conversation.caller);
    const answer = await answerOrStop(deps, conversation, visible, op);
    if ('stopped' in answer) return answer.stopped;
    const handled = await handleAnswer(deps, conversation, answer, visible, op);
    const { inputTokens, outputTokens } = answer.usage;
    events({ type: 'turn-end', turn, inputTokens, outputTokens });
    const outcome = await endTurn(deps, conversation, answer.text, handled, op);
    if (outcome !== undefined) return outcome;
  }
  return finishAtLimit(
    deps,
    conversation,
    'TEMPER_TURN_LIMIT',
    `all ${limits.turns} turns for this message are used`,
    op,
  );
}

/** Handles one answer. Returns undefined when the conversation continues. */
async function handleAnswer(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  given: ModelAnswer,
  visible: readonly ToolDescriptor[],
  op: CallOptions,
): Promise<TurnOutcome | undefined> {
  const { parts, events } = conversation;
  const answer = withTextCalls(given, callableTools(conversation, visible), conversation.messages, events);
  const { text, toolCalls, stopReason } = answer;
  await storeAnswer(deps, conversation, answer, visible);
  await reportAnswer(deps, conversation, answer, op);
  if (stopReason === 'length') return continueTruncated(deps, conversation, text);
  if (stopReason === 'refusal') {
    events({ type: 'warning', code: 'refusal', message: 'the model declined to answer' });
    return { reply: [...parts, text].join(''), finishReason: 'refusal' };
  }
  if (toolCalls.length > 0) {
    conversation.parts = [];
    conversation.emptyAnswers = 0;
    return callTools(deps, conversation, answer, visible, op);
  }
  if (text.trim() === '' && parts.length === 0 && conversation.emptyAnswers === 0) {
    conversation.emptyAnswers += 1;
    await appendMessages(deps, conversation, [
      { role: 'user', text: '[Your last answer was empty. Answer, or call a tool.]' },
    ]);
    return undefined;
  }
  if (isPhantomAction(conversation, text, visible)) {
    conversation.hasPhantomNote = true;
    events({ type: 'warning', code: 'phantom-action', message: 'the model claims an action without a tool call' });
    await appendMessages(deps, conversation, [{ role: 'user', text: PHANTOM_ACTION_NOTE }]);
    return undefined;
  }
  if (text.trim() === '' && parts.length === 0) {
    events({ type: 'warning', code: 'empty-answer', message: 'the model answered with nothing, twice' });
  }
  return { reply: [...parts, text].join(''), finishReason: 'complete' };
}

/** Once per message. An answer in several parts is already in front of the user. */
function isPhantomAction(
  { messages, parts, hasPhantomNote, code }: AgentConversation,
  text: string,
  visible: readonly ToolDescriptor[],
): boolean {
  if (hasPhantomNote || parts.length > 0) return false;
  const called = new Set(messages.flatMap((message) => (message.role === 'tool' ? [message.name] : [])));
  // A program can have done it.
  if (code !== undefined && called.has(INVOKE_NAME)) return false;
  return claimsPhantomAction(text, visible, called);
}

async function continueTruncated(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  text: string,
): Promise<TurnOutcome | undefined> {
  conversation.parts.push(text);
  if (conversation.parts.length > MAX_CONTINUATIONS) {
    const message = `the answer was cut at ${conversation.limits.maxOutputTokens} tokens, ${MAX_CONTINUATIONS} continuations included; raise spec.model.maxOutputTokens`;
    conversation.events({ type: 'warning', code: 'answer-cut', message });
    return { reply: conversation.parts.join(''), finishReason: 'truncated' };
  }
  const request =
    text === ''
      ? '[Your last answer was cut before it said anything. Be shorter; a tool call must be complete to be made.]'
      : '[Your last answer was cut. Continue exactly where it stopped; a tool call must be complete to be made.]';
  await appendMessages(deps, conversation, [{ role: 'user', text: request }]);
  return undefined;
}

async function callTools(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  answer: Pick<ModelAnswer, 'toolCalls'>,
  visible: readonly ToolDescriptor[],
  op: CallOptions,
): Promise<TurnOutcome | undefined> {
  if (conversation.code !== undefined) return runCode(deps, conversation, answer, op);
  const { caller, limits, events, historyWriter } = conversation;
  const allowed = Math.max(0, limits.steps - conversation.toolCalls);
  conversation.toolCalls += Math.min(allowed, answer.toolCalls.length);
  const persist = async ({ message, tool, isCalled, isApproved }: StoredResult): Promise<void> => {
    const origin = originOfTool(tool);
    if (isCalled && deps.isUntrusted(origin)) deps.taint.mark(caller.session, origin);
    const deferrable = !isCalled || (isRepeatable(tool) && !isApproved);
    await historyWriter.write([withOrigin(message, origin)], { tainted: deps.taint.has(caller.session), deferrable });
  };
  const { results, parked } = await runToolCalls(
    answer.toolCalls,
    allowed,
    { invoker: deps.invoker, caller, visible, outputCharacters: limits.outputCharacters, events, storeResult: persist },
    { ...op, key: answerKey(caller.session, conversation.base, conversation.answers) },
  );
  conversation.messages.push(...results.map(({ message }) => message));
  if (parked.length > 0) return parkTurn(conversation, [...new Set(parked.map((call) => call.parked))]);
  if (answer.toolCalls.length > allowed) {
    return finishAtLimit(
      deps,
      conversation,
      'TEMPER_STEP_LIMIT',
      `all ${limits.steps} tool calls for this message are used`,
      op,
    );
  }
  const loopBreak = results.find(({ failure }) => failure?.rule === LOOP_BREAK_RULE)?.failure;
  return loopBreak === undefined ? undefined : finishAtLimit(deps, conversation, loopBreak.code, loopBreak.message, op);
}

/** The same for an agent in code mode, whose calls are programs. */
async function runCode(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  { toolCalls }: Pick<ModelAnswer, 'toolCalls'>,
  op: CallOptions,
): Promise<TurnOutcome | undefined> {
  const key = answerKey(conversation.caller.session, conversation.base, conversation.answers);
  const ended = await executeCode(deps, conversation, toolCalls, { ...op, key });
  if (ended === undefined) return undefined;
  if ('parked' in ended) return parkTurn(conversation, ended.parked);
  if ('reply' in ended) return { reply: ended.reply, finishReason: 'complete' };
  return finishAtLimit(deps, conversation, ended.limit.code, ended.limit.message, op);
}

/** What is stored of the turn is enough to resume it: the answer with its calls, and the results of those that ended. */
function parkTurn({ events }: AgentConversation, requests: readonly string[]): TurnOutcome {
  events({ type: 'turn-parked', requests: [...requests] });
  return { reply: '', finishReason: 'complete', parked: requests };
}

/** The rule in a tool failure when the loop guard ends the processing of the message. */
const LOOP_BREAK_RULE = 'loop-guard.break';

/**
 * Asks the model for a final statement, then throws the limit as an error. The tools stay in the request, because providers reject a
 * history with calls but without tools, and to keep their prompt cache valid; calls in this answer are not executed.
 */
async function finishAtLimit(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  code: ErrorCode,
  reason: string,
  op: CallOptions,
): Promise<never> {
  const note = `[${code}: ${reason}. No further tool is called. Say what you found, and what is missing.]`;
  await appendMessages(deps, conversation, [{ role: 'user', text: note }]);
  const turn = conversation.turns + 1;
  conversation.events({ type: 'turn-start', turn });
  const visible = deps.invoker.visible(conversation.caller);
  const answer = await requestAnswer(deps, conversation, visible, op);
  await storeAnswer(deps, conversation, { ...answer, toolCalls: [] }, visible);
  const { text, usage } = answer;
  conversation.events({ type: 'turn-end', turn, inputTokens: usage.inputTokens, outputTokens: usage.outputTokens });
  throw new TemperError(code, `${reason}; ask for less at once or raise spec.limits`, {
    details: { reply: text },
  });
}
