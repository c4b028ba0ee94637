import { RELEASE_OBJECTS } from '../../api/cluster.ts';
import type { HeadKeys } from '../../audit/stream-chain.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { OperatorMetrics } from '../../telemetry/temper-metrics.ts';
import { ReleaseSecrets } from '../pki/release-secrets.ts';
import type { AuditStream } from '../../nats/audit-stream.ts';
import { AuditChain, HEAD_INTERVAL_MS } from './audit-chain.ts';
import { auditKeyData, auditKeysIn, headKeysOf, rotateAuditKeys } from './audit-key.ts';
import { configMapHeadStore } from './head-store.ts';

export interface ChainTaskDeps {
  readonly auditStream: AuditStream;
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly operatorMetrics: Pick<OperatorMetrics, 'gauge'> | undefined;
  /** Of the release. */
  readonly namespace: string;
}

/** One round of the leader: verifies and signs, and reports the result. Returns the time to the next round. */
export function auditChainRound(deps: ChainTaskDeps): (signal: AbortSignal) => Promise<number> {
  const { auditStream: stream, client, clock, log, operatorMetrics, namespace } = deps;
  const secrets = new ReleaseSecrets(client, namespace);
  const heads = configMapHeadStore(client, namespace);
  const chain = new AuditChain({ stream, heads, clock, keys: (signal) => readKeys(secrets, clock, signal) });
  let reported = '';
  return async (signal) => {
    const state = await chain.round(signal);
    operatorMetrics?.gauge('temper_audit_chain_intact', {}, state.intact ? 1 : 0);
    if (state.intact) {
      operatorMetrics?.gauge('temper_audit_chain_records', {}, state.records);
      reported = '';
      return HEAD_INTERVAL_MS;
    }
    const { sequence, problem } = state.problem;
    const text = `record ${sequence} of the audit stream ${problem}`;
    if (text !== reported) log.error({ sequence }, `${text}; no further record is signed`);
    reported = text;
    return HEAD_INTERVAL_MS;
  };
}

async function readKeys(secrets: ReleaseSecrets, clock: Clock, signal: AbortSignal): Promise<HeadKeys> {
  const stored = await secrets.read(RELEASE_OBJECTS.auditKey, signal);
  const known = auditKeysIn(stored, clock.now());
  const keys = rotateAuditKeys(known, clock.now());
  if (keys !== known) await secrets.apply(RELEASE_OBJECTS.auditKey, auditKeyData(keys), stored, signal);
  return headKeysOf(keys);
}
