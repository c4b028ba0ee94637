import type { BusConnection } from '../nats/connection.ts';
import { createSessionStore } from '../nats/session-store.ts';
import { createSessionTools } from '../nats/session-tools.ts';
import type { SessionReports } from './deps.ts';

/** What the bus keeps of sessions, for people and for policies that look at where content came from. */
export function createSessionReports(bus: BusConnection): SessionReports {
  const kept = createSessionTools(bus);
  return {
    sessions: (agentUid) => createSessionStore(bus, agentUid).list(),
    async tools(agentUid, session) {
      const tools = await kept.list(agentUid, session);
      return tools.map(({ artifact, digest, owner, acceptedAt }) => ({
        name: artifact.name,
        digest,
        session: owner.session,
        uses: 0,
        acceptedAt,
      }));
    },
    async tainted(agentUid, session) {
      return (await createSessionStore(bus, agentUid).load(session)).tainted;
    },
  };
}
