import type { ScheduleId } from '../../nats/schedules/schedule-states.ts';
import type { ScheduleState } from '../../schedule/advance.ts';
import type { AgentSchedules, ScheduleOwner } from '../../schedule/agent-schedules.ts';
import { withoutSchedule } from '../../schedule/wanted-schedule.ts';
import { anAgent } from '../agent/observed.testing.ts';
import type { RunEnd, ScheduleStore } from './ports.ts';

/** NATS as the schedules of one agent see it; processes come and go. */
export class FakeScheduleStore implements ScheduleStore {
  /** By the id of a schedule that the agent made; the empty id is the schedule of its spec. */
  readonly states = new Map<string, { state: ScheduleState; revision: number }>();
  schedules: AgentSchedules | undefined;
  writes = 0;
  /** Texts by message, as the duplicate window of the inbox keeps them. */
  readonly inbox = new Map<string, string>();
  readonly tainted = new Set<string>();
  readonly ended = new Map<string, RunEnd>();
  sends = 0;
  #revision = 0;
  #changes = 0;
  /** Called before each send. */
  beforeSend = (): void => undefined;

  get state(): ScheduleState | undefined {
    return this.states.get('')?.state;
  }

  change(schedules: AgentSchedules): void {
    this.schedules = schedules;
    this.#changes += 1;
  }

  async read({ id = '' }: ScheduleId) {
    const { state, revision = 0 } = this.states.get(id) ?? {};
    return { state, revision };
  }

  async write({ id = '' }: ScheduleId, state: ScheduleState, revision: number): Promise<number | undefined> {
    if (revision !== (this.states.get(id)?.revision ?? 0)) return undefined;
    this.#revision += 1;
    this.writes += 1;
    this.states.set(id, { state, revision: this.#revision });
    return this.#revision;
  }

  async remove({ id = '' }: ScheduleId): Promise<void> {
    this.states.delete(id);
  }

  async removeOwn(_agent: ScheduleOwner, id: string): Promise<void> {
    if (this.schedules !== undefined) this.change(withoutSchedule(this.schedules, id));
    this.states.delete(id);
  }

  changes = async () => ({
    changed: this.schedules === undefined ? [] : [this.schedules],
    sequence: this.#changes,
  });

  revision = async () => this.#changes;

  messageOf = (_uid: string, { key }: { key: string }): string => `msg-${key}`;

  async send(_agent: object, run: { key: string; text: string; tainted?: boolean }): Promise<void> {
    this.beforeSend();
    this.sends += 1;
    this.inbox.set(`msg-${run.key}`, run.text);
    if (run.tainted === true) this.tainted.add(`msg-${run.key}`);
  }

  end = async (_uid: string, message: string) => this.ended.get(message);

  isPending = async (_uid: string, _session: string, message: string) => this.inbox.has(message);

  async *ends(): AsyncGenerator<RunEnd | undefined> {}

  finish(message: string, outcome: RunEnd['outcome'], endedAt: number): RunEnd {
    const end = { agentUid: anAgent().metadata.uid, message, outcome, endedAt };
    this.inbox.delete(message);
    this.ended.set(message, end);
    return end;
  }
}
