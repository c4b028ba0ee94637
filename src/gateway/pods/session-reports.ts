import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import { createSessionStore } from '../../nats/sessions/session-store.ts';
import type { ToolEvidence } from '../../nats/promotion/evidence.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { SessionToolSummary } from '../../gateway-api/user-api.ts';
import { mapInBatches } from '../concurrency-limit.ts';
import type { Demotions } from '../cluster/demotions.ts';
import type { SessionReports } from '../deps.ts';
import type { ReportPromotion } from '../promotion/promotion-reports.ts';

export interface SessionReportsDeps {
  bus: JetStreamConnection;
  registry: Pick<SessionRegistry, 'tools' | 'allTools'>;
  evidence: Pick<ToolEvidence, 'statistics'>;
  promotionOf: ReportPromotion;
  demotions: Demotions;
}

/** A report of a pod that flushes often does not read the session each time. */
const CACHE_MS = 60_000;
const MAX_CACHED = 20_000;

/** Stored facts about sessions, for users and for policy decisions that depend on taint. */
export function createSessionReports(deps: SessionReportsDeps): SessionReports {
  const { bus, registry, evidence, promotionOf, demotions } = deps;
  const summaryOf = async (agentUid: string, tool: RegisteredTool): Promise<SessionToolSummary> => {
    const { artifact, digest, owner, acceptedAt } = tool;
    const statistics = await evidence.statistics(agentUid, { namespace: owner.namespace, digest });
    const promotion = await promotionOf(agentUid, tool, statistics);
    const outOfService = demotions.reason({ namespace: owner.namespace, agentUid }, digest);
    return {
      name: artifact.name,
      digest,
      session: owner.session,
      uses: statistics.totalUses,
      acceptedAt,
      promotion,
      ...(outOfService === undefined ? {} : { outOfService }),
    };
  };
  const existing = new LRUCache<string, true>({ ...entries(MAX_CACHED), ttl: CACHE_MS });
  return {
    async sessions(agentUid) {
      const sessions = await createSessionStore(bus, agentUid).list();
      // A session is opened by its first delivery, before it has a history.
      return sessions.filter(({ items }) => items > 0);
    },
    async tools(agentUid, session) {
      const tools = await (session === undefined ? registry.allTools(agentUid) : registry.tools(agentUid, session));
      return mapInBatches(tools, (tool) => summaryOf(agentUid, tool));
    },
    tainted: (agentUid, session) => createSessionStore(bus, agentUid).isTainted(session),
    marks: (agentUid, session) => createSessionStore(bus, agentUid).marks(session),
    async exists(agentUid, session) {
      const key = `${agentUid}/${session}`;
      if (existing.has(key)) return true;
      const exists = await createSessionStore(bus, agentUid).exists(session);
      if (exists) existing.set(key, true);
      return exists;
    },
  };
}
