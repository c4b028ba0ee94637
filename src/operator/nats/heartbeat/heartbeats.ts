import { EMPTY_STATE } from '../../../nats/inbox/delivery-state.ts';
import type { StoredDeliveries } from '../../../nats/inbox/nats-inbox-store.ts';
import type { StoredAgent, StoredPolicy } from '../../kube/types.ts';
import type { AgentHeartbeat } from '../../ports.ts';
import { HEARTBEAT_TIMEOUT_MS, heartbeatOf, type ObservedDeliveries } from './heartbeat.ts';

/** Reads the delivery states of these agents. */
type ReadDeliveries = (agentUids: readonly string[]) => Promise<readonly StoredDeliveries[]>;

/** After a longer time without a look NATS was unavailable, so no pod could report. */
const MAX_PAUSE_MS = 60_000;

const MISSED: AgentHeartbeat = {
  type: 'Responsive',
  status: 'False',
  reason: 'HeartbeatMissed',
  message:
    'messages wait, and for three minutes no pod of the agent took one or reported its work; see Ready, and the log of the pod',
};

/** The heartbeats of all agents that have messages, in memory. An agent that works is read every three minutes. */
export class Heartbeats {
  #observed: ReadonlyMap<string, ObservedDeliveries> = new Map();
  /** Epoch milliseconds of the last look. While NATS is unreachable nothing changes. */
  #now: number | undefined;

  /** `queues`: the messages of each agent, by its UID. */
  async refresh(queues: Readonly<Record<string, number>>, now: number, read: ReadDeliveries): Promise<void> {
    const working = Object.keys(queues).filter((uid) => (queues[uid] ?? 0) > 0);
    const before = this.#observed;
    const isInterrupted = this.#now !== undefined && now - this.#now > MAX_PAUSE_MS;
    const isSilent = (uid: string): boolean => now - (before.get(uid)?.writtenAt ?? 0) >= HEARTBEAT_TIMEOUT_MS;
    const silent = working.filter(isSilent);
    const stored = new Map(silent.length === 0 ? [] : (await read(silent)).map((one) => [one.agentUid, one]));
    const after = (uid: string): ObservedDeliveries => {
      const known = before.get(uid);
      const { state, writtenAt } = (isSilent(uid) ? stored.get(uid) : known) ?? { state: EMPTY_STATE, writtenAt: 0 };
      return { state, writtenAt, knownSince: isInterrupted ? now : (known?.knownSince ?? now) };
    };
    this.#observed = new Map(working.map((uid) => [uid, after(uid)]));
    this.#now = now;
  }

  /** Undefined while it is unknown. No run of a suspended agent is expected. */
  of({ metadata, spec }: StoredAgent, policy: StoredPolicy | undefined): AgentHeartbeat | undefined {
    if (this.#now === undefined) return undefined;
    const observed = this.#observed.get(metadata.uid);
    if (observed === undefined || spec.suspend === true || policy?.spec.suspend === true) return 'Reported';
    const heartbeat = heartbeatOf(observed, this.#now);
    if (heartbeat === 'Unknown') return undefined;
    return heartbeat === 'Missed' ? MISSED : 'Reported';
  }
}
