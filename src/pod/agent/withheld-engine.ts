import type { MessageOutcome } from '../../agent/messages/message-outcome.ts';
import type { Events } from '../../agent/tools/events/port.ts';
import type { Memory, SessionStore } from '../../agent/ports.ts';
import type { OwnSchedules } from '../../agent/tools/schedules/port.ts';
import type { MessageSender, TaskSender } from '../../bus/port.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import { withheldTexts } from '../../tempering/withheld/withheld-calls.ts';
import type { AgentEvent } from '../../tools/events.ts';
import type { WithheldSources } from '../../tempering/withheld/withheld-sources.ts';

/*
 * What an agent with `forge.persistSource: false` sends to its gateway to be stored, without the lines of its sources. The gateway puts
 * markers in the place of the arguments and results of forges itself, whatever a pod sends; only the pod knows the sources of a session.
 */

export function withheldSessions(sessions: SessionStore, sources: WithheldSources): SessionStore {
  return {
    async load(session) {
      const history = await sessions.load(session);
      learnFrom(history.items, sources);
      return history;
    },
    append: (session, afterSeq, items, marks) =>
      sessions.append(session, afterSeq, withheldTexts(sources, items), marks),
    close: (session) => sessions.close(session),
  };
}

/** The arguments of a forge that has no result yet are part of the history that the gateway gives. */
function learnFrom(items: readonly ModelMessage[], sources: WithheldSources): void {
  withheldTexts(sources, items);
}

export function withheldMemory(memory: Memory, sources: WithheldSources): Memory {
  return {
    get: (key) => memory.get(key),
    set: (key, value, marks) => memory.set(key, sources.json(value), marks),
    delete: (key) => memory.delete(key),
    list: (prefix, limit, isReadable) => memory.list(prefix, limit, isReadable),
    search: (query, limit, isReadable) => memory.search(query, limit, isReadable),
  };
}

export function withheldBus(bus: MessageSender, sources: WithheldSources): MessageSender {
  return { send: (draft, op) => bus.send({ ...draft, text: sources.text(draft.text) }, op) };
}

export function withheldSchedules(schedules: OwnSchedules, sources: WithheldSources): OwnSchedules {
  return {
    create: (input, op) => schedules.create(sources.json(input), op),
    delete: (name, op) => schedules.delete(name, op),
    list: (op) => schedules.list(op),
  };
}

export function withheldTasks(tasks: TaskSender, sources: WithheldSources): TaskSender {
  return {
    ask: (draft, wait, op) => tasks.ask({ ...draft, text: sources.text(draft.text) }, wait, op),
    task: (ticket, waitMs, op) => tasks.task(ticket, waitMs, op),
  };
}

export function withheldEvents(events: Events, sources: WithheldSources): Events {
  return {
    ...events,
    publish: (input, op) => events.publish(sources.json(input), op),
    subscribe: (input, op) => events.subscribe(sources.json(input), op),
  };
}

/** Undefined for a part of an answer: it may have a part of a line, and the whole answer follows. */
export function withheldEvent(event: AgentEvent, sources: WithheldSources): AgentEvent | undefined {
  return event.type === 'message' && event.delta ? undefined : sources.event(event);
}

export function learnTools(tools: readonly RegisteredTool[], sources: WithheldSources): void {
  for (const { sourceWithheld, artifact } of tools)
    if (sourceWithheld) sources.learn(artifact.implementation.source ?? '');
}

/** The outcome without the lines of sources that the agent withholds. */
export function withheldOutcome(outcome: MessageOutcome, sources: WithheldSources | undefined): MessageOutcome {
  if (sources === undefined) return outcome;
  if (outcome.end === 'answer') return { ...outcome, reply: sources.text(outcome.reply) };
  return outcome.end === 'reject' ? { ...outcome, message: sources.text(outcome.message) } : outcome;
}
