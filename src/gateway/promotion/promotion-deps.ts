import type { Clock } from '../../lib/clock.ts';
import type { NatsAudit } from '../../nats/audit.ts';
import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import { createToolEvidence } from '../../nats/promotion/evidence.ts';
import { createPromotionRequests } from '../../nats/promotion/promotion-requests.ts';
import { createPromotionStates } from '../../nats/promotion/promotion-states.ts';
import { createVerifications } from '../../nats/promotion/verifications.ts';
import type { StorageQuota } from '../../nats/residents/storage-quota.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Demotions } from '../cluster/demotions.ts';
import type { AgentDirectory, GatewayDeps } from '../deps.ts';
import { createSessionReports } from '../pods/session-reports.ts';
import type { GatewaySources } from '../storage/sources.ts';
import { createToolUseReports } from '../pods/tool-use-reports.ts';
import { closeSessionTools } from './close-session-tools.ts';
import { createPromotionOpener } from './promotion-opener.ts';
import { createPromotionReports } from './promotion-reports.ts';

/** What the core routes need for uses of tools, their promotion and their verification. */
export function createPromotionDeps(context: {
  bus: JetStreamConnection;
  storage: Pick<StorageQuota, 'of'>;
  sources: Pick<GatewaySources, 'cipher'>;
  directory: AgentDirectory;
  registry: SessionRegistry;
  audit: NatsAudit;
  demotions: Demotions;
  /** The release runs an egress proxy. */
  hasEgress: boolean;
  clock: Clock;
  log: Logger;
}): Pick<GatewayDeps, 'uses' | 'sessions' | 'closeTools' | 'verifications'> {
  const { bus, storage, sources, directory, registry, audit, demotions, hasEgress, clock, log } = context;
  const quotaOf = (agentUid: string) => storage.of(agentUid);
  const evidence = createToolEvidence(bus, quotaOf);
  const states = createPromotionStates(bus);
  const promotionOf = createPromotionReports({ states, directory, hasEgress });
  const sessions = createSessionReports({ bus, registry, evidence, promotionOf, demotions });
  const isTainted = (agentUid: string, session: string) => sessions.tainted(agentUid, session);
  const requests = createPromotionRequests(bus);
  const onCounted = createPromotionOpener({ directory, registry, states, requests, quotaOf, isTainted, clock, log });
  return {
    uses: createToolUseReports({ audit, registry, evidence, onCounted }),
    sessions,
    closeTools: (agentUid, session) => closeSessionTools({ registry, evidence }, agentUid, session),
    verifications: createVerifications(bus, sources.cipher),
  };
}
