import type { NatsInbox } from '../../nats/inbox/inbox.ts';
import type { AgentQuota } from '../../nats/residents/storage-quota.ts';
import type { NatsSessionStore } from '../../nats/sessions/session-store.ts';

export interface ResidentInboxDeps {
  /** Counts the bytes of an agent; writes the entry of the agent in the list of agents with data. */
  quotaOf: (agentUid: string) => Pick<AgentQuota, 'reserve' | 'release'>;
  sessionsOf: (agentUid: string) => Pick<NatsSessionStore, 'open'>;
  /** Called when the session of a delivery could not be opened. */
  onError: (error: unknown) => void;
}

/** Bytes of an envelope besides the members of a message: ids, names of members, headers. */
const ENVELOPE_BYTES = 256;

/** Each agent that gets a message is listed and its waiting bytes are counted before the message is stored, and each session of a delivered message exists from then on. */
export function withResidents(inbox: NatsInbox, { quotaOf, sessionsOf, onError }: ResidentInboxDeps): NatsInbox {
  return {
    ...inbox,
    async publish(agentUid, sender, message) {
      const quota = quotaOf(agentUid);
      const bytes = ENVELOPE_BYTES + Buffer.byteLength(JSON.stringify(message));
      await quota.reserve('inbox', bytes);
      let stored = false;
      try {
        const receipt = await inbox.publish(agentUid, sender, message);
        stored = !receipt.duplicate;
        return receipt;
      } finally {
        if (!stored) quota.release('inbox', bytes);
      }
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
