import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import { createSessionStore } from '../../nats/sessions/session-store.ts';
import type { SessionToolUses } from '../../nats/sessions/session-uses.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { SessionToolSummary } from '../../gateway-api/user-api.ts';
import { mapInBatches } from '../concurrency-limit.ts';
import type { SessionReports } from '../deps.ts';

export interface SessionReportsDeps {
  bus: JetStreamConnection;
  registry: Pick<SessionRegistry, 'tools' | 'allTools'>;
  uses: Pick<SessionToolUses, 'statistics'>;
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
      return mapInBatches(tools, (tool) => summaryOf(agentUid, tool));
    },
    async tainted(agentUid, session) {
      return (await createSessionStore(bus, agentUid).load(session)).tainted;
    },
  };
}
