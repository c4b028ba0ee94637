import type { BusAudit } from '../nats/audit.ts';
import type { ClaimedUses } from './deps.ts';

/** Uses as provenance: that a tool was used and how it went. Their inputs are not part of it. */
export function claimedUses(audit: BusAudit): ClaimedUses {
  return {
    async record(agentUid, { agent, namespace, digest, session, rootMessage, succeeded, milliseconds }) {
      await audit.append(namespace, {
        action: 'tool.used',
        actor: `agent/${agent}`,
        evidence: 'claimed',
        subject: digest,
        facts: { agentUid, session, rootMessage, succeeded, milliseconds },
      });
    },
  };
}
