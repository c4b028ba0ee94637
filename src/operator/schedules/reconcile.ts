import type { ReconcileContext } from '../../kube/controller/controller.ts';
import { PRIORITY } from '../../kube/controller/priority-fifo.ts';
import type { ReconcileResult } from '../../kube/controller/result.ts';
import type { WorkQueue } from '../../kube/controller/work-queue.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { advance, ended, keepsFailing, type ScheduleState } from '../../schedule/advance.ts';
import type { AgentSchedules, ScheduleOwner } from '../../schedule/agent-schedules.ts';
import type { OperatorMetrics } from '../../telemetry/temper-metrics.ts';
import { NUMBERS_INTERVAL_MS } from '../agent/deferral/status-throttle.ts';
import type { ValidationCache } from '../agent/validation-cache.ts';
import type { Cache } from '../kube/cache.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { StartTimes } from '../pods/start-times.ts';
import type { RunEnd, ScheduleStore } from './ports.ts';
import { ScheduleIndex } from './schedule-index.ts';
import { hasSchedule } from './schedule-facts.ts';
import { ownSchedule, parseScheduleKey, runOf, type Scheduled, scheduleKeyOf, specSchedule } from './scheduled.ts';

export interface ScheduleReconcilerDeps {
  readonly store: ScheduleStore;
  readonly clock: Clock;
  readonly agents: Cache<StoredAgent>;
  readonly policies: Cache<StoredPolicy>;
  readonly validation: Pick<ValidationCache, 'specError'>;
  readonly queues: { readonly agents: WorkQueue; readonly schedules: WorkQueue };
  readonly starts: Pick<StartTimes, 'begin'>;
  readonly metrics: OperatorMetrics | undefined;
}

/** What this process knows of a schedule. */
interface Entry {
  readonly state: ScheduleState | undefined;
  readonly revision: number;
  /** The message of a run that is known to be in the inbox, or in work. */
  readonly confirmed?: string | undefined;
}

/** A run that takes longer than its message may take has ended without a record. */
const RUN_TIMEOUT_MS = 3_900_000;
const OUTAGE_RETRY_MS = 1_000;
/** Later due times are computed again, because the clock may change. */
const MAX_WAIT_MS = 3_600_000;

/**
 * Starts the runs of the schedules of agents, one key per schedule:
 *
 *   read state ─▶ end of the active run ─▶ advance (pure) ─▶ write state ─▶ send message ─▶ wait for the next due time
 *
 * The state with the run is written before its message is sent. Of two leaders only one writes it; the message of a run that a leader did
 * not send any more is sent by the next one, under the same id. The key of the agent is that of the schedule of its spec, and brings those
 * that the agent made with it.
 */
export class ScheduleReconciler {
  readonly #deps: ScheduleReconcilerDeps;
  readonly #own: ScheduleIndex;
  /** By agent, and by the id of a schedule that the agent made; the empty id is the schedule of its spec. */
  readonly #entries = new Map<string, Map<string, Entry>>();
  readonly #ends = new Map<string, RunEnd>();

  constructor(deps: ScheduleReconcilerDeps) {
    this.#deps = deps;
    this.#own = new ScheduleIndex(deps.store);
  }

  async reconcile(key: string, _context: ReconcileContext): Promise<ReconcileResult> {
    const { namespace, name, id } = parseScheduleKey(key);
    const agent = this.#deps.agents.get(namespace, name);
    if (agent === undefined || agent.metadata.deletionTimestamp !== undefined) return { kind: 'done' };
    // Every schedule comes again once it is read.
    if (!this.#own.isRead) return { kind: 'done' };
    try {
      return await this.#reconcile(agent, id);
    } catch (error) {
      if (!isTemperError(error, 'TEMPER_BUS_UNAVAILABLE')) throw error;
      return { kind: 'requeueAfter', afterMs: OUTAGE_RETRY_MS };
    }
  }

  /** Reads what agents and users changed about schedules. Returns the milliseconds until the next round. */
  async readChanges(): Promise<number> {
    try {
      return await this.#readChanges();
    } catch (error) {
      if (!isTemperError(error, 'TEMPER_BUS_UNAVAILABLE')) throw error;
      return OUTAGE_RETRY_MS;
    }
  }

  async #readChanges(): Promise<number> {
    const isFirst = !this.#own.isRead;
    const afterMs = await this.#own.round((before, after) => {
      for (const agent of this.#deps.agents.byIndex('uid', after.agent.uid)) {
        this.#requeue(agent);
        // A schedule that was deleted has a state to remove.
        for (const { id } of before?.own ?? []) this.#requeue(agent, id);
        this.#deps.queues.agents.add(scheduleKeyOf(agent), PRIORITY.resync);
      }
    });
    if (isFirst) this.#requeueAll();
    return afterMs;
  }

  /** Reads from memory. Undefined until the state of the schedule of the spec is read. */
  state({ metadata }: StoredAgent): ScheduleState | undefined {
    return this.#entry(metadata.uid, undefined)?.state;
  }

  /** What the agent and users decided about schedules. Reads from memory. */
  schedules({ metadata }: StoredAgent): AgentSchedules | undefined {
    return this.#own.of(metadata.uid);
  }

  forget({ metadata: { uid } }: StoredAgent): void {
    for (const { state } of this.#entries.get(uid)?.values() ?? [])
      if (state?.active !== undefined) this.#ends.delete(state.active.message);
    this.#entries.delete(uid);
    this.#own.forget(uid);
  }

  /** A run ended. `undefined`: ends may have been passed over, so every active run is looked up. */
  onEnd(end: RunEnd | undefined): void {
    if (end === undefined) {
      for (const entries of this.#entries.values())
        for (const [id, { state, revision }] of entries) entries.set(id, { state, revision });
      this.#requeueAll();
      return;
    }
    for (const [id, { state }] of this.#entries.get(end.agentUid) ?? []) {
      if (state?.active?.message !== end.message) continue;
      this.#ends.set(end.message, end);
      for (const agent of this.#deps.agents.byIndex('uid', end.agentUid)) this.#requeue(agent, id || undefined);
    }
  }

  #requeueAll(): void {
    for (const agent of this.#deps.agents.list())
      if (hasSchedule(agent) || this.#own.of(agent.metadata.uid) !== undefined) this.#requeue(agent);
  }

  #requeue(agent: StoredAgent, id?: string): void {
    this.#deps.queues.schedules.add(scheduleKeyOf(agent, id));
  }

  async #reconcile(agent: StoredAgent, id: string | undefined): Promise<ReconcileResult> {
    const { policies, validation } = this.#deps;
    const { uid, namespace } = agent.metadata;
    // No run of a spec that cannot be read; the change that corrects it is reconciled.
    if (validation.specError(agent) !== undefined) return { kind: 'done' };
    if (id === undefined) for (const own of this.#own.of(uid)?.own ?? []) this.#requeue(agent, own.id);
    const policy = policies.get(namespace, agent.spec.trustPolicyRef.name);
    const scheduled =
      id === undefined ? specSchedule(agent, policy, this.#own) : ownSchedule(agent, policy, id, this.#own);
    return scheduled === undefined ? this.#remove(uid, id) : this.#advance(scheduled);
  }

  async #advance(scheduled: Scheduled): Promise<ReconcileResult> {
    const { clock, store } = this.#deps;
    const { agent, id, definition, own } = scheduled;
    const before = this.#entry(id.agentUid, id.id) ?? (await store.read(id));
    const settled = await this.#settle(scheduled, before);
    const now = clock.now().getTime();
    const next = advance(definition, settled.state, now, (due) => this.#messageOf(scheduled, due));
    const entry = await this.#write(scheduled, { ...settled, state: next.state }, before);
    if (entry === undefined) return { kind: 'requeueAfter', afterMs: 0 };
    if (next.run !== undefined) await this.#start(scheduled, next.run, entry);
    this.#report(scheduled, before.state, next.state, next.run === undefined ? undefined : now - next.run);
    if (own !== undefined && next.state.next === undefined && next.state.active === undefined) {
      await store.removeOwn(ownerOf(agent), own.id);
      return { kind: 'done' };
    }
    const wait = next.state.next === undefined ? MAX_WAIT_MS : next.state.next - clock.now().getTime();
    return { kind: 'requeueAfter', afterMs: Math.min(Math.max(wait, 1), MAX_WAIT_MS) };
  }

  /** The schedule was removed: when that of a spec comes back, it does not catch up. */
  async #remove(agentUid: string, id: string | undefined): Promise<ReconcileResult> {
    if (this.#entry(agentUid, id) !== undefined) await this.#deps.store.remove({ agentUid, id });
    this.#entries.get(agentUid)?.delete(id ?? '');
    return { kind: 'done' };
  }

  /** The entry after the end of its active run, if that ended. */
  async #settle(scheduled: Scheduled, entry: Entry): Promise<Entry> {
    const { state } = entry;
    const run = state?.active;
    if (state === undefined || run === undefined) return entry;
    const known = this.#ends.get(run.message);
    if (known !== undefined) return { ...entry, state: ended(state, run.message, known.outcome, known.endedAt) };
    const now = this.#deps.clock.now().getTime();
    if (entry.confirmed === run.message && now - run.due < RUN_TIMEOUT_MS) return entry;
    const found = await this.#find(scheduled, run.due, run.message);
    if (found === 'pending') return { ...entry, confirmed: run.message };
    if (found !== undefined) return { ...entry, state: ended(state, run.message, found.outcome, found.endedAt) };
    // It is not in the inbox, and no gateway saw its end: a leader that ended did not send it, or NATS lost it.
    if (now - run.due > scheduled.definition.startingDeadlineMs)
      return { ...entry, state: ended(state, run.message, 'excused', now) };
    await this.#send(scheduled, run.due);
    return { ...entry, confirmed: run.message };
  }

  /** The end is read again after the inbox: a message leaves the inbox after the record of its end. */
  async #find(scheduled: Scheduled, due: number, message: string): Promise<RunEnd | 'pending' | undefined> {
    const { store } = this.#deps;
    const { agentUid } = scheduled.id;
    const end = await store.end(agentUid, message);
    if (end !== undefined) return end;
    if (await store.isPending(agentUid, runOf(scheduled, due).session, message)) return 'pending';
    return store.end(agentUid, message);
  }

  /** Undefined when another leader changed the state meanwhile. */
  async #write({ id }: Scheduled, entry: Entry, before: Entry): Promise<Entry | undefined> {
    const { state } = entry;
    if (state === undefined || state === before.state) {
      this.#keep(id.agentUid, id.id, entry);
      return entry;
    }
    const revision = await this.#deps.store.write(id, state, before.revision);
    if (revision === undefined) {
      this.#entries.get(id.agentUid)?.delete(id.id ?? '');
      return undefined;
    }
    const written = { ...entry, revision };
    this.#keep(id.agentUid, id.id, written);
    if (before.state?.active !== undefined) this.#ends.delete(before.state.active.message);
    return written;
  }

  async #start(scheduled: Scheduled, due: number, entry: Entry): Promise<void> {
    await this.#send(scheduled, due);
    const { agentUid, id } = scheduled.id;
    this.#keep(agentUid, id, { ...entry, confirmed: this.#messageOf(scheduled, due) });
  }

  async #send(scheduled: Scheduled, due: number): Promise<void> {
    const { agent } = scheduled;
    await this.#deps.store.send(ownerOf(agent), runOf(scheduled, due));
    if (agent.status?.pod !== undefined) return;
    this.#deps.starts.begin(agent.metadata.uid, 'wake');
    this.#deps.queues.agents.add(scheduleKeyOf(agent));
  }

  #messageOf(scheduled: Scheduled, due: number): string {
    return this.#deps.store.messageOf(scheduled.id.agentUid, runOf(scheduled, due));
  }

  #entry(agentUid: string, id: string | undefined): Entry | undefined {
    return this.#entries.get(agentUid)?.get(id ?? '');
  }

  #keep(agentUid: string, id: string | undefined, entry: Entry): void {
    const entries = this.#entries.get(agentUid) ?? new Map<string, Entry>();
    this.#entries.set(agentUid, entries.set(id ?? '', entry));
  }

  /** The status of the agent follows: at once for what users wait for, else with the next numbers. */
  #report(
    { agent, own }: Scheduled,
    before: ScheduleState | undefined,
    after: ScheduleState,
    lateMs: number | undefined,
  ): void {
    const { queues, metrics } = this.#deps;
    if (lateMs !== undefined) metrics?.observe('temper_schedule_delay_seconds', {}, Math.max(0, lateMs) / 1_000);
    for (const [outcome, count] of countsOf(before, after, lateMs))
      metrics?.count('temper_schedule_runs_total', { outcome }, count);
    if (before === after || own !== undefined) return;
    const isNew = before?.timing !== after.timing || keepsFailing(before) !== keepsFailing(after);
    const key = scheduleKeyOf(agent);
    if (isNew) queues.agents.add(key, PRIORITY.resync);
    else queues.agents.addAfter(key, NUMBERS_INTERVAL_MS, PRIORITY.resync);
  }
}

function ownerOf({ metadata: { uid, name, namespace } }: StoredAgent): ScheduleOwner {
  return { uid, name, namespace };
}

function countsOf(before: ScheduleState | undefined, after: ScheduleState, lateMs: number | undefined) {
  const { missed = 0, skipped = 0, failures = 0, lastSuccess } = before ?? {};
  const counts: [string, number][] = [
    ['started', lateMs === undefined ? 0 : 1],
    ['missed', after.missed - missed],
    ['skipped', after.skipped - skipped],
    ['completed', after.lastSuccess === lastSuccess ? 0 : 1],
    ['failed', Math.max(0, after.failures - failures)],
  ];
  return counts.filter(([, count]) => count > 0);
}
