import type { SessionHistory } from '../../agent/ports.ts';
import type { EncryptedTexts } from '../../nats/sources/encrypted-texts.ts';
import { createCallSources, removeCallSources } from '../../nats/sources/tool-sources.ts';
import type { NatsSessionStore } from '../../nats/sessions/port.ts';
import { createWithheldCalls, type WithheldCalls } from '../../tempering/withheld/withheld-calls.ts';
import { WithheldSources } from '../../tempering/withheld/withheld-sources.ts';
import type { AgentState } from '../agent-state.ts';

/** Whether the sources of tools that the agent forges are stored encrypted only. */
export function withholdsSources({ agent }: Pick<AgentState, 'agent'>): boolean {
  return agent.spec.forge?.persistSource === false;
}

/**
 * The sessions of an agent that withholds its sources, whatever its pod sends: a history has a marker in the place of the arguments of each
 * forge. Those of a forge without a result are stored encrypted, and are part of the history that the pod gets.
 */
export function withheldSessions(store: NatsSessionStore, texts: EncryptedTexts, agentUid: string): NatsSessionStore {
  // Each append alone: it must have the same form when it is repeated at another gateway.
  const callsOf = (session: string): WithheldCalls =>
    createWithheldCalls(new WithheldSources(), createCallSources(texts, agentUid, session));
  const restored = async (session: string, history: SessionHistory): Promise<SessionHistory> => ({
    ...history,
    items: await callsOf(session).restored(session, history.items),
  });
  return {
    load: async (session) => restored(session, await store.load(session)),
    loadFor: async (session, reader) => restored(session, await store.loadFor(session, reader)),
    async loadBelow(session, bytes) {
      const history = await store.loadBelow(session, bytes);
      return history === undefined ? undefined : restored(session, history);
    },
    async append(session, afterSeq, items, marks, admitted) {
      // The sources are stored apart from the session.
      await admitted;
      return store.append(session, afterSeq, await callsOf(session).toStored(session, items), marks);
    },
    async close(session) {
      await store.close(session);
      await removeCallSources(texts, agentUid, session);
    },
    async closePermanently(session) {
      const isNew = await store.closePermanently(session);
      await removeCallSources(texts, agentUid, session);
      return isNew;
    },
    isTainted: (session) => store.isTainted(session),
    marks: (session) => store.marks(session),
    taint: (session) => store.taint(session),
    markPrivate: (session) => store.markPrivate(session),
    open: (session) => store.open(session),
    exists: (session) => store.exists(session),
    isClosed: (session) => store.isClosed(session),
    list: () => store.list(),
    idle: (milliseconds) => store.idle(milliseconds),
    unused: (since) => store.unused(since),
    discard: (session, since, removeRest) =>
      store.discard(session, since, async () => {
        await removeCallSources(texts, agentUid, session);
        await removeRest();
      }),
  };
}
