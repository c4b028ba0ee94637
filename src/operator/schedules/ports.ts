import type { ScheduleId, StoredSchedule } from '../../nats/schedules/schedule-states.ts';
import type { AgentSchedules, ScheduleOwner } from '../../schedule/agent-schedules.ts';
import type { ScheduleState, ScheduledRunOutcome } from '../../schedule/advance.ts';
import type { RunMessage } from '../../schedule/run-message.ts';

export interface RunEnd {
  readonly agentUid: string;
  readonly message: string;
  readonly outcome: ScheduledRunOutcome;
  /** Epoch milliseconds. */
  readonly endedAt: number;
}

/** The schedules of agents in NATS. Methods throw TEMPER_BUS_* while NATS is unreachable. */
export interface ScheduleStore {
  read(schedule: ScheduleId): Promise<StoredSchedule>;
  /** Returns the new revision; undefined when another writer changed the state. */
  write(schedule: ScheduleId, state: ScheduleState, revision: number): Promise<number | undefined>;
  remove(schedule: ScheduleId): Promise<void>;
  /** The id of the message of a run. */
  messageOf(agentUid: string, run: Pick<RunMessage, 'key'>): string;
  /** Puts the message of a run into the inbox of its agent. Idempotent for each due time. */
  send(agent: ScheduleOwner, run: RunMessage & { readonly tainted?: boolean }): Promise<void>;
  /** Removes a schedule that the agent made, with its state. Idempotent. */
  removeOwn(agent: ScheduleOwner, id: string): Promise<void>;
  /** The schedules that agents made and users decided about, changed after this sequence. */
  changes(after: number): Promise<{ changed: AgentSchedules[]; sequence: number }>;
  /** Changes when `changes` has something new. */
  revision(): Promise<number>;
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
