import { measuredUse } from '../tempering/use-store.ts';
import type { ToolUse } from '../tempering/types.ts';
import type { BusAudit } from '../nats/audit.ts';
import type { SessionRegistry } from '../nats/session-registry.ts';
import type { SessionUses } from '../nats/session-uses.ts';
import type { ClaimedUses } from './deps.ts';

export interface ClaimedUsesDeps {
  audit: BusAudit;
  registry: Pick<SessionRegistry, 'digests'>;
  counts: Pick<SessionUses, 'count'>;
}

/**
 * Records tool uses in the audit log, each with the digest of its input, and counts those of tools that the session really has, so that
 * an agent cannot fill NATS with statistics of invented tools.
 */
export function claimedUses({ audit, registry, counts }: ClaimedUsesDeps): ClaimedUses {
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

async function auditUse(audit: BusAudit, agentUid: string, use: ToolUse, key: string): Promise<void> {
  const { agent, namespace, digest, session, rootMessage, succeeded, milliseconds } = use;
  const { inputDigest } = measuredUse(use);
  await audit.append(
    namespace,
    {
      action: 'tool.used',
      actor: `agent/${agent}`,
      evidence: 'claimed',
      subject: digest,
      facts: { agentUid, session, rootMessage, inputDigest, succeeded, milliseconds },
    },
    key,
  );
}
