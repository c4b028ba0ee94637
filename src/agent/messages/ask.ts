import type { Envelope, FinishReason, Task } from '../../bus/port.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';

/** A message that asked for an answer, as a record of the agent that asked. */
export interface Ask {
  /** Name of the asked agent. */
  readonly agent: string;
  /** The session and the message that asked, with its place in the chain. */
  readonly session: string;
  readonly message: string;
  readonly root: string;
  readonly depth: number;
  /** RFC 3339. */
  readonly deadline: string;
  readonly ancestors: readonly string[];
  readonly state: 'Pending' | 'Answered' | 'Failed';
  readonly finishReason?: FinishReason;
  readonly code?: ErrorCode;
  readonly reason?: string;
  /** The session that ended it has untrusted content. */
  readonly tainted?: true;
  /** Of the answer in the inbox of the agent that asked. */
  readonly sequence?: number;
  /** The message of the session that took the answer: one that waited for it, or the answer itself. */
  readonly takenBy?: string;
}

/** How the work on a message that asked for an answer ended. */
export type AskEnd = { tainted: boolean } & (
  | { state: 'Answered'; text: string; finishReason: FinishReason }
  | { state: 'Failed'; text: string; code: ErrorCode }
);

/** The text of the message that brings the answer. */
export function replyText(end: AskEnd): string {
  return end.state === 'Answered' ? end.text : `It gave no answer: ${end.text} (${end.code})`;
}

/** The text that the asking session gets, so that its model knows which of its questions is answered. */
export function answerText({ from, answers, text }: Pick<Envelope, 'from' | 'answers' | 'text'>): string {
  return `Answer of agent "${from}" to your message with ticket ${answers}:\n\n${text}`;
}

export function endOfAsk(end: AskEnd): Partial<Ask> {
  const tainted = end.tainted ? { tainted: true as const } : {};
  return end.state === 'Answered'
    ? { state: end.state, finishReason: end.finishReason, ...tainted }
    : { state: end.state, code: end.code, reason: end.text, ...tainted };
}

/** The answer comes in the time of the question or of the message that asked, whichever ends later. */
export function laterDeadline(a: string, b: string): string {
  return Date.parse(a) > Date.parse(b) ? a : b;
}

/** `text`: the answer, when the caller took it. */
export function taskOf(ticket: string, ask: Ask, text?: string): Task {
  const { agent, state, takenBy, finishReason, code, reason } = ask;
  const tainted = ask.tainted === true ? { tainted: true } : {};
  if (state === 'Failed')
    return { ticket, agent, state, code: code ?? 'TEMPER_INTERNAL', reason: reason ?? '', ...tainted };
  if (state === 'Pending') return { ticket, agent, state };
  if (takenBy !== undefined && text === undefined) return { ticket, agent, state: 'Delivered' };
  return { ticket, agent, state, text: text ?? '', finishReason: finishReason ?? 'complete', ...tainted };
}

export function expiredTask(ticket: string, { agent }: Ask): Task {
  const reason = `agent "${agent}" did not answer before the deadline of the chain of messages`;
  return { ticket, agent, state: 'Failed', code: 'TEMPER_TIMEOUT', reason };
}
