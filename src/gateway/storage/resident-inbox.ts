import type { NatsInbox } from '../../nats/inbox/inbox.ts';
import type { AgentQuota } from '../../nats/residents/storage-quota.ts';

export interface ResidentInboxDeps {
  /** Counts the bytes of an agent; writes the entry of the agent in the list of agents with data. */
  quotaOf: (agentUid: string) => Pick<AgentQuota, 'reserve' | 'release'>;
}

/** Bytes of an envelope besides the members of a message: ids, names of members, headers. */
const ENVELOPE_BYTES = 256;

/** Each agent that gets a message is listed, and its waiting bytes are counted, before the message is stored. */
export function withResidents(inbox: NatsInbox, { quotaOf }: ResidentInboxDeps): NatsInbox {
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
  };
}
