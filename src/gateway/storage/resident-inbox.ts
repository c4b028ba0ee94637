import type { NatsInbox } from '../../nats/inbox/inbox.ts';
import type { NatsSessionStore } from '../../nats/sessions/session-store.ts';

export interface ResidentInboxDeps {
  /** Writes the entry of the agent in the list of agents with data. */
  ensureResident: (agentUid: string) => Promise<unknown>;
  sessionsOf: (agentUid: string) => Pick<NatsSessionStore, 'open'>;
  /** Called when the session of a delivery could not be opened. */
  onError: (error: unknown) => void;
}

/** Each agent that gets a message is listed before it is stored, and each session of a delivered message exists from then on. */
export function withResidents(inbox: NatsInbox, { ensureResident, sessionsOf, onError }: ResidentInboxDeps): NatsInbox {
  return {
    ...inbox,
    async publish(agentUid, sender, message) {
      await ensureResident(agentUid);
      return inbox.publish(agentUid, sender, message);
    },
    async fetchNext(agentUid, waitMs, signal) {
      const delivery = await inbox.fetchNext(agentUid, waitMs, signal);
      if (delivery === undefined) return undefined;
      try {
        await sessionsOf(agentUid).open(delivery.message.session);
      } catch (error) {
        // The first append opens the session as well; until then events of it are refused.
        onError(error);
      }
      return delivery;
    },
  };
}
