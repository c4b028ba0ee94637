import {
  type Ask,
  type AskEnd,
  endOfAsk,
  expiredTask,
  laterDeadline,
  replyText,
  taskOf,
} from '../../agent/messages/ask.ts';
import type { Envelope, FinishReason, Task } from '../../bus/port.ts';
import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { StoredDeadLetter } from '../../nats/dead-letters/dead-letter-writer.ts';
import type { NatsInbox } from '../../nats/inbox/inbox.ts';
import type { Asks } from '../../nats/tasks/asks.ts';
import type { NatsSessionStore } from '../../nats/sessions/port.ts';
import { isPrivateContent } from '../../policy/private-data/sources.ts';
import { isUntrustedSource } from '../../policy/untrusted-source.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';
import type { AgentState } from '../agent-state.ts';

export interface AnswersDeps {
  asks: Asks;
  inbox: Pick<NatsInbox, 'publish'>;
  /** The agent with this UID, from the cache. */
  agent: (uid: string) => AgentState | undefined;
  /** The record of what the sessions of an agent have read. */
  sessionsOf: (agentUid: string) => Pick<NatsSessionStore, 'isTainted' | 'taint' | 'markPrivate'>;
  /** Requests a pod for an agent without one. */
  wake: (state: AgentState) => Promise<void>;
  /** Ends the asked agent when it is a specialist, which lives for one task. Idempotent. */
  endSpecialist: (asking: AgentState, name: string, ticket: string) => Promise<void>;
  clock: Clock;
  log: Logger;
}

/**
 * Brings answers back to the agents that asked:
 *
 *   answer of the asked agent ──► message in the inbox of the asking agent ──► record: answered
 *   a waiting call, or `task_get` ──► swap: taken by its message ──► result of the call
 *   delivery of the answer ──► swap: taken by the answer ──► delivered;  taken before ──► acknowledged, not delivered
 *
 * A call that is repeated after a crash has the same message, so it gets the answer again.
 */
export class Answers {
  readonly #deps: AnswersDeps;

  constructor(deps: AnswersDeps) {
    this.#deps = deps;
  }

  /** Before the message of these claims is acknowledged with its answer. Idempotent. */
  async answered(claims: DeliveryTokenClaims, text: string, finishReason: FinishReason) {
    const { asker, message, deadline, agentUid, session } = claims;
    if (asker === undefined) return;
    const tainted = await this.#deps.sessionsOf(agentUid).isTainted(session);
    await this.#end(asker, message, deadline, { state: 'Answered', text, finishReason, tainted });
  }

  /** The asked agent will not answer. An error is logged: a dead letter must not wait for it. */
  async deadLettered({ agentUid, message, code, reason }: StoredDeadLetter): Promise<void> {
    if (message?.asker === undefined) return;
    try {
      const tainted = await this.#deps.sessionsOf(agentUid).isTainted(message.session);
      await this.#end(message.asker, message.id, message.deadline, { state: 'Failed', text: reason, code, tainted });
    } catch (error) {
      this.#deps.log.warn(
        { error, messageId: message.id },
        'the failure of a question was not recorded at the agent that asked',
      );
    }
  }

  /** False when the session has this answer already. Other messages are always delivered. */
  async mayDeliver(agentUid: string, { source, answers, id }: Envelope): Promise<boolean> {
    if (source !== 'Reply' || answers === undefined) return true;
    const stored = await this.#deps.asks.update(agentUid, answers, (ask) =>
      ask.takenBy === undefined ? { ...ask, takenBy: id } : ask,
    );
    return stored === undefined || stored.takenBy === id;
  }

  /** Opens the record of a message that asks. */
  async open(claims: DeliveryTokenClaims, ticket: string, agent: string): Promise<void> {
    const { session, message, root, depth, deadline, ancestors = [] } = claims;
    const ask: Ask = { agent, session, message, root, depth, deadline, ancestors, state: 'Pending' };
    await this.#deps.asks.open(claims.agentUid, ticket, ask);
  }

  /** The state of a task of this session, at the latest after the time. Throws TEMPER_NOT_FOUND. */
  async task(claims: DeliveryTokenClaims, ticket: string, waitMs: number, signal: AbortSignal): Promise<Task> {
    const { agentUid, session, message } = claims;
    const { asks, clock } = this.#deps;
    const isOver = ({ deadline }: Ask): boolean => Date.parse(deadline) <= clock.now().getTime();
    const found = await asks.wait(agentUid, ticket, {
      isDone: (ask) => ask.session !== session || ask.state !== 'Pending' || isOver(ask),
      milliseconds: waitMs,
      signal,
    });
    if (found === undefined || found.session !== session) {
      throw new TemperError('TEMPER_NOT_FOUND', `session "${session}" has no ticket "${ticket}"`);
    }
    if (found.state === 'Pending') return isOver(found) ? expiredTask(ticket, found) : taskOf(ticket, found);
    const taken = await asks.update(agentUid, ticket, (ask) =>
      ask.takenBy === undefined ? { ...ask, takenBy: message } : ask,
    );
    const ask = taken ?? found;
    const text = ask.takenBy === message ? await asks.answerOf(agentUid, ask) : undefined;
    await this.#markBy(ask, agentUid);
    return taskOf(ticket, ask, text);
  }

  /** Before the pod gets the answer: the session that asked has what the answering session had. */
  async #markBy({ session, tainted }: Ask, agentUid: string): Promise<void> {
    const policy = this.#deps.agent(agentUid)?.policy?.spec ?? {};
    const sessions = this.#deps.sessionsOf(agentUid);
    if (isPrivateContent({ source: 'Reply', tainted }, policy)) await sessions.markPrivate(session);
    if (tainted === true || isUntrustedSource('Reply', policy)) await sessions.taint(session);
  }

  async #end(asker: string, ticket: string, deadline: string, end: AskEnd): Promise<void> {
    const { asks, agent, endSpecialist } = this.#deps;
    const [ask, state] = [await asks.get(asker, ticket), agent(asker)];
    // The asking agent is gone, or its record is older than NATS keeps it, so no session waits.
    if (ask === undefined || state === undefined) return;
    if (ask.state === 'Pending') await this.#store(state, ticket, deadline, ask, end);
    await endSpecialist(state, ask.agent, ticket);
  }

  async #store(state: AgentState, ticket: string, deadline: string, ask: Ask, end: AskEnd): Promise<void> {
    const { asks, wake, log } = this.#deps;
    const asker = state.uid;
    let stored: Partial<Ask> = endOfAsk(end);
    try {
      const { sequence } = await this.#publish(asker, ticket, deadline, ask, end);
      stored = { ...stored, sequence };
    } catch (error) {
      // The asked agent must not wait for space in the inbox of another one.
      if (!isFull(error)) throw error;
      log.warn({ agent: state.agent.metadata.name, ticket, error: messageOf(error, 200) }, 'an answer found no space');
      stored = { state: 'Failed', code: 'TEMPER_BUS_FULL', reason: 'your inbox is full; the answer was not delivered' };
    }
    await asks.update(asker, ticket, (found) => (found.state === 'Pending' ? { ...found, ...stored } : found));
    await wake(state);
  }

  #publish(asker: string, ticket: string, deadline: string, ask: Ask, end: AskEnd) {
    const { inbox, clock } = this.#deps;
    const { session, root, depth, ancestors, agent } = ask;
    return inbox.publish(
      asker,
      { uid: asker, key: `answer ${ticket}` },
      {
        to: this.#deps.agent(asker)?.agent.metadata.name ?? '',
        from: agent,
        session,
        text: replyText(end),
        root,
        depth,
        // The time that a message waited for an approval does not count, for the answer either.
        deadline: laterDeadline(deadline, ask.deadline),
        time: clock.now().toISOString(),
        source: 'Reply',
        ...(end.tainted ? { tainted: true } : {}),
        answers: ticket,
        ancestors,
      },
    );
  }
}

function isFull(error: unknown): boolean {
  return isTemperError(error, 'TEMPER_BUS_FULL') || isTemperError(error, 'TEMPER_STORAGE_LIMIT_EXCEEDED');
}
