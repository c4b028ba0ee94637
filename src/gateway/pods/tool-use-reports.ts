import type { Digest } from '../../lib/canonical.ts';
import type { NatsAudit } from '../../nats/audit.ts';
import type { ToolEvidence } from '../../nats/promotion/evidence.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import type { ToolStatistics, ToolUse } from '../../tempering/types.ts';
import { toCountedUse } from '../../tempering/use/use-store.ts';
import type { ToolUseReports } from '../deps.ts';

/** A tool that a session has, and the statistics of its reported uses. */
export interface UsedSessionTool {
  agentUid: string;
  session: string;
  digest: Digest;
  statistics: ToolStatistics;
}

export interface ToolUseReportsDeps {
  audit: NatsAudit;
  registry: Pick<SessionRegistry, 'digests'>;
  evidence: Pick<ToolEvidence, 'count'>;
  /** Called after successful uses were counted. */
  onCounted: (tool: UsedSessionTool) => Promise<void>;
}

/**
 * Records tool uses in the audit log, each with the digest of its input, and counts those of tools that the session really has, so that
 * an agent cannot fill NATS with statistics of invented tools.
 */
export function createToolUseReports({ audit, registry, evidence, onCounted }: ToolUseReportsDeps): ToolUseReports {
  return {
    async record(agentUid, uses, key, isDelivered) {
      for (const [index, use] of uses.entries()) await auditUse(audit, agentUid, use, `${key}/use/${index}`);
      if (!isDelivered) return;
      for (const [session, ofSession] of Map.groupBy(uses, (use) => use.session)) {
        const digests = await registry.digests(agentUid, session);
        for (const [digest, ofTool] of Map.groupBy(ofSession, (use) => use.digest)) {
          const [first] = ofTool;
          if (first === undefined || !digests.includes(digest)) continue;
          const tool = { digest, namespace: first.namespace };
          const statistics = await evidence.count(agentUid, tool, key, ofTool);
          if (ofTool.some(({ succeeded }) => succeeded)) await onCounted({ agentUid, session, digest, statistics });
        }
      }
    },
  };
}

async function auditUse(audit: NatsAudit, agentUid: string, use: ToolUse, key: string): Promise<void> {
  const { agent, namespace, digest, session, rootMessage, succeeded, milliseconds } = use;
  const { inputDigest } = toCountedUse(use);
  await audit.append(
    { namespace, agentUid },
    {
      action: 'tool.used',
      actor: `agent/${agent}`,
      evidence: 'reported',
      subject: digest,
      facts: { agentUid, session, rootMessage, inputDigest, succeeded, milliseconds },
    },
    key,
  );
}
