import type { ReconcileContext } from '../../kube/controller/controller.ts';
import { PRIORITY } from '../../kube/controller/priority-fifo.ts';
import type { ReconcileResult } from '../../kube/controller/result.ts';
import type { WorkQueue } from '../../kube/controller/work-queue.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { type ActiveRun, advance, ended, isFailing, type ScheduleState } from '../../schedule/advance.ts';
import type { ScheduleDefinition } from '../../schedule/definition.ts';
import { type RunMessage, runMessage } from '../../schedule/run-message.ts';
import type { OperatorMetrics } from '../../telemetry/temper-metrics.ts';
import { NUMBERS_INTERVAL_MS } from '../agent/deferral/status-throttle.ts';
import type { ValidationCache } from '../agent/validation-cache.ts';
import { type Cache, parseKey } from '../kube/cache.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { StartTimes } from '../pods/start-times.ts';
import type { RunEnd, ScheduleStore } from './ports.ts';
import { definitionOf, hasSchedule } from './schedule-facts.ts';

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
 * Starts the runs of the schedules of agents, one key per agent:
 *
 *   read state ─▶ end of the active run ─▶ advance (pure) ─▶ write state ─▶ send message ─▶ wait for the next due time
 *
 * The state with the run is written before its message is sent. Of two leaders only one writes it; the message of a run that a leader did
 * not send any more is sent by the next one, under the same id.
 */
export class ScheduleReconciler {
  readonly #deps: ScheduleReconcilerDeps;
  readonly #entries = new Map<string, Entry>();
  readonly #ends = new Map<string, RunEnd>();

  constructor(deps: ScheduleReconcilerDeps) {
    this.#deps = deps;
  }

  async reconcile(key: string, _context: ReconcileContext): Promise<ReconcileResult> {
    const { namespace, name } = parseKey(key);
    const agent = this.#deps.agents.get(namespace, name);
    if (agent === undefined || agent.metadata.deletionTimestamp !== undefined) return { kind: 'done' };
    try {
      return await this.#reconcile(agent, key);
    } catch (error) {
      if (!isTemperError(error, 'TEMPER_BUS_UNAVAILABLE')) throw error;
      return { kind: 'requeueAfter', afterMs: OUTAGE_RETRY_MS };
    }
  }

  /** Reads from memory. Undefined until the state of the schedule is read. */
  state({ metadata }: StoredAgent): ScheduleState | undefined {
    return this.#entries.get(metadata.uid)?.state;
  }

  forget({ metadata }: StoredAgent): void {
    const run = this.#entries.get(metadata.uid)?.state?.active;
    if (run !== undefined) this.#ends.delete(run.message);
    this.#entries.delete(metadata.uid);
  }

  /** A run ended. `undefined`: ends may have been passed over, so every active run is looked up. */
  onEnd(end: RunEnd | undefined): void {
    if (end === undefined) {
      for (const [uid, { state, revision }] of this.#entries) this.#entries.set(uid, { state, revision });
      for (const agent of this.#deps.agents.list()) if (hasSchedule(agent)) this.#requeue(agent);
      return;
    }
    if (this.#entries.get(end.agentUid)?.state?.active?.message !== end.message) return;
    this.#ends.set(end.message, end);
    for (const agent of this.#deps.agents.byIndex('uid', end.agentUid)) this.#requeue(agent);
  }

  #requeue({ metadata }: StoredAgent): void {
    this.#deps.queues.schedules.add(`${metadata.namespace}/${metadata.name}`);
  }

  async #reconcile(agent: StoredAgent, key: string): Promise<ReconcileResult> {
    const { clock, policies, validation } = this.#deps;
    const { uid, namespace } = agent.metadata;
    // No run of a spec that cannot be read; the change that corrects it is reconciled.
    if (validation.specError(agent) !== undefined) return { kind: 'done' };
    const definition = definitionOf(agent, policies.get(namespace, agent.spec.trustPolicyRef.name));
    if (definition === undefined) return this.#remove(uid);
    const before = this.#entries.get(uid) ?? (await this.#deps.store.read(uid));
    const settled = await this.#settle(agent, definition, before);
    const now = clock.now().getTime();
    const next = advance(definition, settled.state, now, (due) => this.#messageOf(agent, due));
    const entry = await this.#write(agent, { ...settled, state: next.state }, before);
    if (entry === undefined) return { kind: 'requeueAfter', afterMs: 0 };
    if (next.run !== undefined) await this.#start(agent, next.run, entry);
    this.#report(key, before.state, next.state, next.run === undefined ? undefined : now - next.run);
    const wait = next.state.next === undefined ? MAX_WAIT_MS : next.state.next - clock.now().getTime();
    return { kind: 'requeueAfter', afterMs: Math.min(Math.max(wait, 1), MAX_WAIT_MS) };
  }

  /** The schedule was removed from the spec: when it comes back, it does not catch up. */
  async #remove(uid: string): Promise<ReconcileResult> {
    if (this.#entries.has(uid)) await this.#deps.store.remove(uid);
    this.#entries.delete(uid);
    return { kind: 'done' };
  }

  /** The entry after the end of its active run, if that ended. */
  async #settle(agent: StoredAgent, definition: ScheduleDefinition, entry: Entry): Promise<Entry> {
    const { state } = entry;
    const run = state?.active;
    if (state === undefined || run === undefined) return entry;
    const known = this.#ends.get(run.message);
    if (known !== undefined) return { ...entry, state: ended(state, run.message, known.outcome, known.endedAt) };
    const now = this.#deps.clock.now().getTime();
    if (entry.confirmed === run.message && now - run.due < RUN_TIMEOUT_MS) return entry;
    const found = await this.#find(agent, run);
    if (found === 'pending') return { ...entry, confirmed: run.message };
    if (found !== undefined) return { ...entry, state: ended(state, run.message, found.outcome, found.endedAt) };
    // It is not in the inbox, and no gateway saw its end: a leader that ended did not send it, or NATS lost it.
    if (now - run.due > definition.startingDeadlineMs)
      return { ...entry, state: ended(state, run.message, 'excused', now) };
    await this.#send(agent, run.due);
    return { ...entry, confirmed: run.message };
  }

  /** The end is read again after the inbox: a message leaves the inbox after the record of its end. */
  async #find(agent: StoredAgent, { due, message }: ActiveRun): Promise<RunEnd | 'pending' | undefined> {
    const { store } = this.#deps;
    const { uid } = agent.metadata;
    const end = await store.end(uid, message);
    if (end !== undefined) return end;
    if (await store.isPending(uid, this.#run(agent, due).session, message)) return 'pending';
    return store.end(uid, message);
  }

  /** Undefined when another leader changed the state meanwhile. */
  async #write({ metadata }: StoredAgent, entry: Entry, before: Entry): Promise<Entry | undefined> {
    const { uid } = metadata;
    const { state } = entry;
    if (state === undefined || state === before.state) {
      this.#entries.set(uid, entry);
      return entry;
    }
    const revision = await this.#deps.store.write(uid, state, before.revision);
    if (revision === undefined) {
      this.#entries.delete(uid);
      return undefined;
    }
    const written = { ...entry, revision };
    this.#entries.set(uid, written);
    if (before.state?.active !== undefined) this.#ends.delete(before.state.active.message);
    return written;
  }

  async #start(agent: StoredAgent, due: number, entry: Entry): Promise<void> {
    await this.#send(agent, due);
    this.#entries.set(agent.metadata.uid, { ...entry, confirmed: this.#messageOf(agent, due) });
  }

  async #send(agent: StoredAgent, due: number): Promise<void> {
    const { namespace, name, uid } = agent.metadata;
    await this.#deps.store.send({ namespace, name, uid }, this.#run(agent, due));
    if (agent.status?.pod !== undefined) return;
    this.#deps.starts.begin(uid, 'wake');
    this.#deps.queues.agents.add(`${namespace}/${name}`);
  }

  #run({ spec }: StoredAgent, due: number): RunMessage {
    return runMessage(spec.schedule ?? {}, due);
  }

  #messageOf(agent: StoredAgent, due: number): string {
    return this.#deps.store.messageOf(agent.metadata.uid, this.#run(agent, due));
  }

  /** The status of the agent follows: at once for what users wait for, else with the next numbers. */
  #report(key: string, before: ScheduleState | undefined, after: ScheduleState, lateMs: number | undefined): void {
    const { queues, metrics } = this.#deps;
    if (lateMs !== undefined) metrics?.observe('temper_schedule_delay_seconds', {}, Math.max(0, lateMs) / 1_000);
    for (const [outcome, count] of countsOf(before, after, lateMs))
      metrics?.count('temper_schedule_runs_total', { outcome }, count);
    if (before === after) return;
    const isNew = before?.timing !== after.timing || isFailing(before) !== isFailing(after);
    if (isNew) queues.agents.add(key, PRIORITY.resync);
    else queues.agents.addAfter(key, NUMBERS_INTERVAL_MS, PRIORITY.resync);
  }
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
