import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { OperatorMetrics } from '../../telemetry/temper-metrics.ts';
import type { AuditStream } from '../../nats/audit-stream.ts';
import { type AttestationDeps, type HeadSigner, ToolAttestations } from './attestations.ts';
import { AuditChain, type AuditChainState, HEAD_INTERVAL_MS } from './audit-chain.ts';
import { headKeysOf } from './audit-key.ts';
import { configMapHeadStore } from './head-store.ts';
import { auditKeyStore } from './key-store.ts';

export interface ChainTaskDeps {
  readonly auditStream: AuditStream;
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly operatorMetrics: Pick<OperatorMetrics, 'gauge'> | undefined;
  /** Of the release. */
  readonly namespace: string;
  /** The tools to attest; absent: none. */
  readonly attested?: Pick<AttestationDeps, 'sharedTools' | 'approvalOf' | 'requestOf'>;
}

/** One round of the leader: verifies and signs, and reports the result. Returns the time to the next round. */
export function auditChainRound(deps: ChainTaskDeps): (signal: AbortSignal) => Promise<number> {
  const { auditStream: stream, client, clock, log, operatorMetrics, namespace } = deps;
  const heads = configMapHeadStore(client, namespace);
  const readKeys = auditKeyStore(client, namespace, clock);
  const keys = async (isFirst: boolean, signal: AbortSignal) => headKeysOf(await readKeys(isFirst, signal));
  const chain = new AuditChain({ stream, heads, clock, keys });
  const attestations = new ToolAttestations({ client, clock, ...(deps.attested ?? NO_TOOLS) });
  const signer = async (signal: AbortSignal): Promise<HeadSigner | undefined> => {
    const head = (await heads.read(signal))?.heads.at(-1);
    return head === undefined ? undefined : { head, privateKey: (await readKeys(false, signal)).privateKey };
  };
  let reported = '';
  return async (signal) => {
    const state = await chain.round(signal).catch(invalidState);
    operatorMetrics?.gauge('temper_audit_chain_intact', {}, state.intact ? 1 : 0);
    if (state.intact) {
      operatorMetrics?.gauge('temper_audit_chain_records', {}, state.records);
      reported = '';
      await attestations.round(() => signer(signal), signal);
      return HEAD_INTERVAL_MS;
    }
    const text = textOf(state);
    if (text !== reported) log.error({}, `${text}; no further record is signed`);
    reported = text;
    return HEAD_INTERVAL_MS;
  };
}

const NO_TOOLS: Pick<AttestationDeps, 'sharedTools' | 'approvalOf' | 'requestOf'> = {
  sharedTools: () => [],
  approvalOf: () => undefined,
  requestOf: () => undefined,
};

/** The keys or the heads cannot be used: no record is known to be wrong, and none can be proven. */
interface UnprovenState {
  readonly intact: false;
  readonly reason: string;
}

function invalidState(error: unknown): UnprovenState {
  if (isTemperError(error, 'TEMPER_AUDIT_CHAIN_INVALID')) return { intact: false, reason: error.message };
  throw error;
}

function textOf(state: UnprovenState | Extract<AuditChainState, { intact: false }>): string {
  if ('reason' in state) return state.reason;
  const { sequence, problem } = state.problem;
  return `record ${sequence} of the audit stream ${problem}`;
}
