import type { MessageHostDeps } from '../host/message-state.ts';
import type { TurnOutcome } from '../message.ts';
import type { TurnDirective } from '../host/turn-directive.ts';
import { finishWithText } from './message-result.ts';

type Deps = Pick<MessageHostDeps, 'result'>;

/** The outcome of a turn whose model has given the value of the message; otherwise the outcome as it is. */
export function withResult({ result }: Deps, outcome: TurnOutcome | undefined): TurnOutcome | undefined {
  if (result === undefined) return outcome;
  if (result.reply() === undefined && outcome?.finishReason === 'complete') finishWithText(result, outcome.reply);
  const reply = result.reply();
  return reply === undefined ? outcome : { reply, finishReason: 'complete', format: 'json' };
}

/** The outcome with this reply; undefined when it is not the value that the agent must return. */
export function resultOf({ result }: Deps, reply: string): TurnOutcome | undefined {
  if (result === undefined) return { reply, finishReason: 'complete' };
  result.reset();
  return finishWithText(result, reply) ? { reply, finishReason: 'complete', format: 'json' } : undefined;
}

/** Ends the message with the value, or asks for it when the model has answered without one. */
export function requireResult({ result }: Deps, outcome: TurnOutcome | undefined): TurnDirective {
  if (result === undefined || outcome?.finishReason !== 'complete') return {};
  const { reply, format } = outcome;
  if (format === 'json') return { directive: { stop: true, result: reply }, format };
  return { directive: { continue: true, message: result.reminder() } };
}
