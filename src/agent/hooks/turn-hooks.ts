import type { CallOptions } from '../../lib/call-options.ts';
import type { Json } from '../../lib/json.ts';
import type { MessageHostDeps, MessageState } from '../host/message-state.ts';
import type { TurnDirective } from '../host/turn-directive.ts';
import type { ProviderEvent } from '../provider/port.ts';
import { requireResult, resultOf, withResult } from '../returns/end-with-result.ts';
import type { HookDirective, HookEvent } from './hook-event.ts';

/** Further attempts at one model call that hooks can ask for. */
const MAX_RETRIES = 5;
/** Characters of the trace that a hook gets: the last entries that fit. */
const MAX_TRACE_CHARACTERS = 32_768;
const CONTINUE = 'Continue.';

export type EndedTurn = Extract<ProviderEvent, { type: 'turn-end' }>;

/** Shows an event to the hooks. */
export async function askAtTurn(
  { hooks }: MessageHostDeps,
  { caller, turns }: MessageState,
  event: HookEvent,
  op: CallOptions,
): Promise<HookDirective | undefined> {
  if (hooks?.has(event.type) !== true) return undefined;
  return hooks.ask(event, caller, { ...op, key: `${op.key}/turn-${turns}` });
}

/** What follows a turn: the hooks decide first, then the value that the agent returns. */
export async function endTurn(
  deps: MessageHostDeps,
  state: MessageState,
  { result: text, answer }: EndedTurn,
  op: CallOptions,
): Promise<TurnDirective> {
  const outcome = withResult(deps, answer);
  const said = outcome?.reply ?? text;
  const directive = await askAtEnd(deps, state, said, op);
  if (directive === undefined) return requireResult(deps, outcome);
  if ('stop' in directive) return stopWith(deps, state, directive, said) ?? requireResult(deps, outcome);
  deps.result?.reset();
  const message = 'continue' in directive ? (directive.message ?? (outcome === undefined ? '' : CONTINUE)) : '';
  return { directive: { continue: true, ...(message === '' ? {} : { message }) } };
}

async function askAtEnd(
  deps: MessageHostDeps,
  state: MessageState,
  result: string,
  op: CallOptions,
): Promise<HookDirective | undefined> {
  if (deps.hooks?.has('turn-end') !== true) return undefined;
  const trace = recentTrace(state.trace());
  return askAtTurn(deps, state, { type: 'turn-end', turnNumber: state.turns, result, trace }, op);
}

/** After a failure of the model, hooks decide whether to try again or to end the message. Undefined: the failure ends it. */
export async function answerError(
  deps: MessageHostDeps,
  state: MessageState,
  event: Extract<ProviderEvent, { type: 'error' }>,
  op: CallOptions,
): Promise<TurnDirective> {
  const directive = await askAtTurn(deps, state, event, op);
  if (directive === undefined || event.attempt > MAX_RETRIES) return {};
  const { error, attempt } = event;
  state.events({ type: 'error', ...error, attempt });
  return 'stop' in directive
    ? (stopWith(deps, state, directive, error.message) ?? {})
    : { directive: { continue: true } };
}

/** Ends the message with the result of the directive. Undefined when it is not the value that the agent must return. */
function stopWith(
  deps: MessageHostDeps,
  { events }: MessageState,
  { result }: Extract<HookDirective, { stop: true }>,
  said: string,
): TurnDirective | undefined {
  const reply = result === undefined ? said : typeof result === 'string' ? result : JSON.stringify(result);
  const outcome = resultOf(deps, reply);
  if (outcome !== undefined) {
    const { format } = outcome;
    return { directive: { stop: true, result: outcome.reply }, ...(format === undefined ? {} : { format }) };
  }
  events({ type: 'warning', code: 'TEMPER_HOOK_FAILED', message: NO_RESULT });
  return undefined;
}

const NO_RESULT =
  'a hook ended the message with a result that does not match spec.returns; the directive has no effect';

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
