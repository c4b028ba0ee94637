import { toCountedUse } from '../../tempering/use/use-store.ts';
import type { ToolUse } from '../../tempering/types.ts';
import type { NatsAudit } from '../../nats/audit.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import type { SessionToolUses } from '../../nats/sessions/session-uses.ts';
import type { ToolUseReports } from '../deps.ts';

export interface ToolUseReportsDeps {
  audit: NatsAudit;
  registry: Pick<SessionRegistry, 'digests'>;
  counts: Pick<SessionToolUses, 'count'>;
}

/**
 * Records tool uses in the audit log, each with the digest of its input, and counts those of tools that the session really has, so that
 * an agent cannot fill NATS with statistics of invented tools.
 */
export function createToolUseReports({ audit, registry, counts }: ToolUseReportsDeps): ToolUseReports {
  return {
    async record(agentUid, uses, key) {
      for (const [index, use] of uses.entries()) await auditUse(audit, agentUid, use, `${key}/use/${index}`);
      for (const [session, ofSession] of Map.groupBy(uses, (use) => use.session)) {
        const digests = await registry.digests(agentUid, session);
        for (const [digest, ofTool] of Map.groupBy(ofSession, (use) => use.digest)) {
          const [first] = ofTool;
          if (first === undefined || !digests.includes(digest)) continue;
          await counts.count(agentUid, { session, digest, namespace: first.namespace }, key, ofTool);
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
