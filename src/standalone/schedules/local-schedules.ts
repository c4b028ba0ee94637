import { Notifier } from '../../lib/async/notifier.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isFailing, MAX_FAILURES, type ScheduleState } from '../../schedule/advance.ts';
import type { LocalInboxes } from '../messages/local-inbox.ts';
import { inboxOf, type MessageEntry } from '../messages/message-entries.ts';
import { type Member, memberKey } from '../team/member.ts';
import type { TeamEvents } from '../team/team-events.ts';
import { type LocalSchedule, memberSchedules } from './member-schedules.ts';
import { plannedRun } from './planned-run.ts';
import { SPEC_SCHEDULE } from './schedule-entries.ts';

export interface LocalSchedulesDeps {
  readonly inboxes: LocalInboxes;
  readonly clock: Clock;
  readonly workspace: string;
  readonly events: TeamEvents;
  /** The agents of now: they may start and end others. */
  readonly members: () => readonly Member[];
  readonly isSuspended: (key: string) => boolean;
}

/** Due times are computed again after this time: the wall clock may have changed, or the machine may have been suspended. */
const MAX_WAIT_MS = 60_000;

/**
 * Starts the runs of the schedules of all agents, as the leader of the operator does on a cluster. The state of a schedule and the message
 * of its run are stored in one change, so a crash at any moment leaves no run without its message, and none twice.
 */
export class LocalSchedules {
  readonly #deps: LocalSchedulesDeps;
  readonly #changes = new Notifier();
  readonly #failing = new Set<string>();
  #version = 0;

  constructor(deps: LocalSchedulesDeps) {
    this.#deps = deps;
  }

  /** Starts runs until the signal aborts. `beside`: what else is looked at in each round, at least every minute. */
  async run(signal: AbortSignal, beside: () => void = () => undefined): Promise<void> {
    while (!signal.aborted) {
      const [version, messages] = [this.#version, this.#deps.inboxes.version];
      const { waitMs, awaitsEnd } = await this.#round();
      beside();
      const isChanged = this.#version !== version || (awaitsEnd && this.#deps.inboxes.version !== messages);
      if (!isChanged) await this.#wait(waitMs, awaitsEnd, signal);
    }
  }

  /** Looks again: schedules were made or deleted. */
  wake(): void {
    this.#version += 1;
    this.#changes.notifyAll();
  }

  /** Starts what is due now. Returns the milliseconds until the next round. */
  async round(): Promise<number> {
    return (await this.#round()).waitMs;
  }

  /** `awaitsEnd`: the end of an active run makes the next one due. */
  async #round(): Promise<{ waitMs: number; awaitsEnd: boolean }> {
    let next = Number.POSITIVE_INFINITY;
    let awaitsEnd = false;
    for (const member of this.#deps.members()) {
      const started = await this.#start(member);
      next = Math.min(next, started.next);
      awaitsEnd ||= started.awaitsEnd;
    }
    return { waitMs: Math.min(Math.max(next - this.#now(), 1), MAX_WAIT_MS), awaitsEnd };
  }

  /** Starts what is due of one agent, in one change. Returns when the next run is due. */
  async #start(member: Member): Promise<{ next: number; awaitsEnd: boolean }> {
    const { inboxes, members, isSuspended, workspace } = this.#deps;
    const key = memberKey(member);
    const now = this.#now();
    const { next, notes } = await inboxes.change((all) => {
      // The agent was ended meanwhile.
      if (!members().includes(member)) return { entries: [], result: { next: Number.POSITIVE_INFINITY, notes: [] } };
      const records = inboxOf(all, key).schedules;
      const schedules = memberSchedules(member, records, { isSuspended: isSuspended(key), workspace });
      const entries: MessageEntry[] = removed(key, records.states, schedules);
      let earliest = Number.POSITIVE_INFINITY;
      const found: { schedule: LocalSchedule; state: ScheduleState; isFull: boolean }[] = [];
      for (const schedule of schedules) {
        const planned = plannedRun(inboxes, { all, agent: { key, name: member.name }, schedule, now });
        entries.push(...planned.entries);
        earliest = Math.min(earliest, planned.next ?? earliest);
        found.push({ schedule, state: planned.state, isFull: planned.isFull });
      }
      return { entries, result: { next: earliest, notes: found } };
    });
    for (const { schedule, state, isFull } of notes) this.#note(member, schedule, state, isFull);
    const awaitsEnd = notes.some(({ state }) => state.persistent === true && state.active !== undefined);
    return { next, awaitsEnd };
  }

  /** Says once that a schedule does not run any more, and each time that its inbox was full. */
  #note(member: Member, { id }: LocalSchedule, state: ScheduleState, isFull: boolean): void {
    const key = `${memberKey(member)}/${id}`;
    const { name, namespace } = member;
    const own = inboxOf(this.#deps.inboxes.inboxes, memberKey(member)).schedules.own.get(id);
    const which = id === SPEC_SCHEDULE ? 'its schedule' : `its schedule "${own?.name ?? id}"`;
    const warn = (code: ErrorCode, message: string): void =>
      this.#deps.events({ type: 'warning', code, message: `${which} ${message}` }, { name, namespace });
    if (isFull) warn('TEMPER_BUS_FULL', 'missed a run, because the inbox of the agent is full');
    if (!isFailing(state)) this.#failing.delete(key);
    else if (!this.#failing.has(key)) {
      this.#failing.add(key);
      warn('TEMPER_SCHEDULE_STOPPED', `starts no further run, because the last ${MAX_FAILURES} failed`);
    }
  }

  async #wait(milliseconds: number, awaitsEnd: boolean, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    const ended = AbortSignal.any([signal, woken.signal]);
    const slept = this.#deps.clock.sleep(milliseconds, ended).catch(() => undefined);
    const messages = awaitsEnd ? [this.#deps.inboxes.changes.wait(ended)] : [];
    await Promise.race([slept, this.#changes.wait(ended), ...messages]);
    woken.abort();
  }

  #now(): number {
    return this.#deps.clock.now().getTime();
  }
}

/** Schedules that are gone: when that of a spec comes back, it does not catch up. */
function removed(
  agent: string,
  states: ReadonlyMap<string, ScheduleState>,
  schedules: readonly LocalSchedule[],
): MessageEntry[] {
  const known = new Set(schedules.map(({ id }) => id));
  return [...states.keys()].flatMap((schedule) =>
    known.has(schedule) ? [] : [{ op: 'unscheduled' as const, agent, schedule }],
  );
}
