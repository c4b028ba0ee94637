import type { NatsInbox } from '../../nats/inbox/inbox.ts';

export interface ResidentInboxDeps {
  /** Writes the entry of the agent in the list of agents with data. */
  ensureResident: (agentUid: string) => Promise<unknown>;
}

/** Each agent that gets a message is listed before it is stored. */
export function withResidents(inbox: NatsInbox, { ensureResident }: ResidentInboxDeps): NatsInbox {
  return {
    ...inbox,
    async publish(agentUid, sender, message) {
      await ensureResident(agentUid);
      return inbox.publish(agentUid, sender, message);
    },
  };
}
