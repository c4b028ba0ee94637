import type { StoredSchedule } from '../../nats/schedules/schedule-states.ts';
import type { ScheduleState, ScheduledRunOutcome } from '../../schedule/advance.ts';
import type { RunMessage } from '../../schedule/run-message.ts';

export interface RunEnd {
  readonly agentUid: string;
  readonly message: string;
  readonly outcome: ScheduledRunOutcome;
  /** Epoch milliseconds. */
  readonly endedAt: number;
}

interface ScheduledAgentId {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** The schedules of agents in NATS. Methods throw TEMPER_BUS_* while NATS is unreachable. */
export interface ScheduleStore {
  read(agentUid: string): Promise<StoredSchedule>;
  /** Returns the new revision; undefined when another writer changed the state. */
  write(agentUid: string, state: ScheduleState, revision: number): Promise<number | undefined>;
  remove(agentUid: string): Promise<void>;
  /** The id of the message of a run. */
  messageOf(agentUid: string, run: Pick<RunMessage, 'key'>): string;
  /** Puts the message of a run into the inbox of its agent. Idempotent for each due time. */
  send(agent: ScheduledAgentId, run: RunMessage): Promise<void>;
  /** How the run ended; undefined when no gateway saw its end. */
  end(agentUid: string, message: string): Promise<RunEnd | undefined>;
  /** Is the message in the inbox, or in work? */
  isPending(agentUid: string, session: string, message: string): Promise<boolean>;
  /**
   * The ends of runs from now on. Emits `undefined` first, and whenever earlier ends may have been passed over. Does not throw. Ends with
   * the signal.
   */
  ends(signal: AbortSignal): AsyncIterable<RunEnd | undefined>;
}
