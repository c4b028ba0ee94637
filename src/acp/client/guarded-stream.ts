import { type AnyMessage, methods, type Stream } from '@agentclientprotocol/sdk';
import { isJsonObject, type Json, member } from '../../lib/json.ts';

/** Requests of the agent that are in work at the same time. */
const MAX_REQUESTS = 64;

/**
 * Lets through what a client of Temper acts on: answers to its requests, requests within a limit, and what the agent says. Everything else is
 * dropped, because the SDK would write it to the terminal of the user. `onViolation` is called for a stream that must end.
 */
export function guardedStream({ readable, writable }: Stream, onViolation: (reason: string) => void): Stream {
  const asked = new Set<unknown>();
  const inWork = new Set<unknown>();
  const outgoing = new TransformStream<AnyMessage, AnyMessage>({
    transform(message, controller) {
      if ('method' in message) {
        if ('id' in message) asked.add(message.id);
      } else inWork.delete(message.id);
      controller.enqueue(message);
    },
  });
  const isWanted = (message: Json): boolean => {
    if (!isJsonObject(message)) return false;
    const id = member(message, 'id');
    const method = member(message, 'method');
    if (method === undefined) return asked.delete(id);
    if (typeof method !== 'string') return false;
    if (id === undefined) return method === methods.client.session.update && isSaid(member(message, 'params'));
    if (typeof id !== 'string' && typeof id !== 'number') return false;
    inWork.add(id);
    if (inWork.size > MAX_REQUESTS) onViolation(`it has more than ${MAX_REQUESTS} requests in work`);
    return inWork.size <= MAX_REQUESTS;
  };
  const incoming = new TransformStream<AnyMessage, AnyMessage>({
    transform(message, controller) {
      if (isWanted(message as unknown as Json)) controller.enqueue(message);
    },
  });
  outgoing.readable.pipeTo(writable).catch(() => undefined);
  readable.pipeTo(incoming.writable).catch(() => undefined);
  return { readable: incoming.readable, writable: outgoing.writable };
}

const SAID: readonly unknown[] = ['agent_message_chunk', 'agent_thought_chunk'];

function isSaid(params: Json | undefined): boolean {
  const update = member(params, 'update');
  const content = member(update, 'content');
  return (
    typeof member(params, 'sessionId') === 'string' &&
    SAID.includes(member(update, 'sessionUpdate')) &&
    member(content, 'type') === 'text' &&
    typeof member(content, 'text') === 'string'
  );
}
