import type { CallOptions } from '../../lib/call-options.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, type TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import {
  type AgentConversation,
  type AgentConversationDeps,
  appendMessages,
  appendReply,
  requestAnswer,
} from '../loop/conversation.ts';
import type { ModelAnswer } from '../loop/model-call.ts';
import type { TurnOutcome } from '../message.ts';
import { requireResult, resultOf, withResult } from '../returns/end-with-result.ts';
import type { HookDirective, HookEvent } from './hook-event.ts';

/** Further attempts at one model call that hooks can ask for. */
const MAX_RETRIES = 5;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;
/** Characters of the trace that a hook gets: the last entries that fit. */
const MAX_TRACE_CHARACTERS = 32_768;
const CONTINUE = 'Continue.';

export async function startTurn(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  turn: number,
  op: CallOptions,
): Promise<void> {
  conversation.events({ type: 'turn-start', turn });
  await ask(deps, conversation, { type: 'turn-start', turnNumber: turn }, op);
}

/** Shows the hooks what the model said, before its calls run. */
export async function reportAnswer(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  { reasoning, text }: ModelAnswer,
  op: CallOptions,
): Promise<void> {
  if (reasoning !== '') await ask(deps, conversation, { type: 'reasoning', text: reasoning }, op);
  if (text !== '') await ask(deps, conversation, { type: 'message', text, delta: false }, op);
}

/**
 * The outcome of a turn after its hooks and with the value that the agent returns: undefined when another turn follows. A parked turn has
 * not ended.
 */
export async function endTurn(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  text: string,
  handled: TurnOutcome | undefined,
  op: CallOptions,
): Promise<TurnOutcome | undefined> {
  if (handled?.parked !== undefined) return handled;
  const outcome = withResult(deps, handled);
  const said = outcome?.reply ?? text;
  const directive = await askAtEnd(deps, conversation, said, op);
  if (directive === undefined) return requireResult(deps, conversation, outcome);
  if ('stop' in directive) {
    const stopped = await stopWith(deps, conversation, directive, said);
    return stopped ?? requireResult(deps, conversation, outcome);
  }
  deps.result?.reset();
  const message = 'continue' in directive ? (directive.message ?? (outcome === undefined ? '' : CONTINUE)) : '';
  if (message !== '') await appendMessages(deps, conversation, [{ role: 'user', text: message, origin: 'Hook' }]);
  return undefined;
}

async function askAtEnd(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  result: string,
  op: CallOptions,
): Promise<HookDirective | undefined> {
  if (deps.hooks?.has('turn-end') !== true) return undefined;
  const trace = recentTrace(conversation.trace());
  return ask(deps, conversation, { type: 'turn-end', turnNumber: conversation.turns, result, trace }, op);
}

/** The answer of the model. After a failure, hooks decide whether to try again or to end the message. */
export async function answerOrStop(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  visible: readonly ToolDescriptor[],
  op: CallOptions,
): Promise<ModelAnswer | { stopped: TurnOutcome }> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await requestAnswer(deps, conversation, visible, op);
    } catch (error) {
      if (!isModelFailure(error) || op.signal.aborted) throw error;
      const { code, message } = error;
      const directive = await ask(deps, conversation, { type: 'error', error: { code, message }, attempt }, op);
      if (directive === undefined || attempt > MAX_RETRIES) throw error;
      conversation.events({ type: 'error', code, message, attempt });
      if ('stop' in directive) {
        const stopped = await stopWith(deps, conversation, directive, message);
        if (stopped === undefined) throw error;
        return { stopped };
      }
      await retryAfter(deps, conversation, code, attempt, op);
    }
  }
}

async function retryAfter(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  code: ErrorCode,
  attempt: number,
  op: CallOptions,
): Promise<void> {
  const delayMs = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (attempt - 1));
  const { model } = conversation;
  conversation.events({ type: 'retry', model, attempt: attempt + 1, code, milliseconds: delayMs });
  await ask(deps, conversation, { type: 'retry', attempt: attempt + 1, delayMs }, op);
  await deps.clock.sleep(delayMs, op.signal);
}

/**
 * Ends the message with the result of the directive, which the session gets as the last answer. Undefined when it is not the value that the
 * agent must return.
 */
async function stopWith(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  { result }: Extract<HookDirective, { stop: true }>,
  said: string,
): Promise<TurnOutcome | undefined> {
  const reply = result === undefined ? said : typeof result === 'string' ? result : JSON.stringify(result);
  const outcome = resultOf(deps, reply);
  if (outcome !== undefined) await appendReply(deps, conversation, reply);
  else conversation.events({ type: 'warning', code: 'TEMPER_HOOK_FAILED', message: NO_RESULT });
  return outcome;
}

const NO_RESULT =
  'a hook ended the message with a result that does not match spec.returns; the directive has no effect';

async function ask(
  { hooks }: AgentConversationDeps,
  { caller, turns }: AgentConversation,
  event: HookEvent,
  op: CallOptions,
): Promise<HookDirective | undefined> {
  if (hooks?.has(event.type) !== true) return undefined;
  return hooks.ask(event, caller, { ...op, key: `${op.key}/turn-${turns}` });
}

function isModelFailure(error: unknown): error is TemperError {
  return isTemperError(error) && error.code.startsWith('TEMPER_MODEL_');
}

function recentTrace(entries: readonly object[]): Json[] {
  const recent: Json[] = [];
  let characters = 0;
  for (const entry of entries.toReversed()) {
    characters += JSON.stringify(entry).length;
    if (characters > MAX_TRACE_CHARACTERS) break;
    recent.unshift(entry as Json);
  }
  return recent;
}
