import type { BusConnection } from '../nats/connection.ts';
import type { SessionRegistry } from '../nats/session-registry.ts';
import { createSessionStore } from '../nats/session-store.ts';
import type { SessionUses } from '../nats/session-uses.ts';
import type { RegisteredTool } from '../tempering/types.ts';
import type { SessionToolSummary } from '../remote/people.ts';
import { inBatches } from './batches.ts';
import type { SessionReports } from './deps.ts';

export interface SessionReportsDeps {
  bus: BusConnection;
  registry: Pick<SessionRegistry, 'tools' | 'allTools'>;
  uses: Pick<SessionUses, 'statistics'>;
}

/** Stored facts about sessions, for users and for policy decisions that depend on taint. */
export function createSessionReports({ bus, registry, uses }: SessionReportsDeps): SessionReports {
  const summaryOf = async (agentUid: string, tool: RegisteredTool): Promise<SessionToolSummary> => {
    const { artifact, digest, owner, acceptedAt } = tool;
    const { totalUses } = await uses.statistics(agentUid, { ...owner, digest });
    return { name: artifact.name, digest, session: owner.session, uses: totalUses, acceptedAt };
  };
  return {
    sessions: (agentUid) => createSessionStore(bus, agentUid).list(),
    async tools(agentUid, session) {
      const tools = await (session === undefined ? registry.allTools(agentUid) : registry.tools(agentUid, session));
      return inBatches(tools, (tool) => summaryOf(agentUid, tool));
    },
    async tainted(agentUid, session) {
      return (await createSessionStore(bus, agentUid).load(session)).tainted;
    },
  };
}
