import { SerialQueue } from '../../lib/async/serial-queue.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import type { Durability, RecordStore } from '../../lib/record-store.ts';
import { hasEventRecords, parseEventRecords, storedEventRecords } from '../events/event-entries.ts';
import { parsePeerRecords, storedPeerRecords } from '../peers/peer-entries.ts';
import { parseScheduleRecords, storedScheduleRecords } from '../schedules/schedule-entries.ts';
import { applyEntry, type Inboxes, inboxOf, type MessageEntry, trimEnded } from './message-entries.ts';

const STATE = 'messages';
/** After this number of lines, a new snapshot is written and a new log started. */
const MAX_LOG_LINES = 1_000;
const MAX_READS = 5;

/**
 * The messages, schedules, events and tasks of callers of a state folder, as a snapshot and a log of the changes since. A change is one line of the log, so a
 * crash leaves all of it or nothing: a message that ended and the answer that it brought are never apart, nor a run and its message, nor an
 * event and the messages that it caused.
 *
 *     records:  messages/state  {generation: n, inboxes}     snapshot
 *               messages/journal-n  [entry, …]               changes since the snapshot
 *     rotation: put state {generation: n+1} → drop journal-n → append to journal-(n+1)
 */
export class MessageLog {
  readonly inboxes: Inboxes;
  readonly #records: RecordStore;
  readonly #writes = new SerialQueue();
  #generation: number;
  #lines = 0;
  #sequence: number;

  private constructor(records: RecordStore, inboxes: Inboxes, generation: number) {
    this.#records = records;
    this.inboxes = inboxes;
    this.#generation = generation;
    const all = [...inboxes.values()].flatMap(({ messages }) => [...messages.values()]);
    this.#sequence = Math.max(0, ...all.map(({ sequence }) => sequence));
  }

  /** Restores the messages, also after a crash. Throws TEMPER_STATE_CORRUPT. */
  static async open(records: RecordStore, now: number): Promise<MessageLog> {
    const { inboxes, generation } = await restore(records);
    if (generation > 0) await records.deleteCollection(logOf(generation - 1));
    const log = new MessageLog(records, inboxes, generation);
    const isEmpty = [...inboxes.values()].every(
      ({ messages, ended, asks, schedules, events, peers }) =>
        messages.size + ended.size + asks.size + peers.size + schedules.states.size + schedules.own.size === 0 &&
        !hasEventRecords(events),
    );
    if (!isEmpty) await log.#rotate(now);
    return log;
  }

  /** The number of the next message. */
  nextSequence(): number {
    this.#sequence += 1;
    return this.#sequence;
  }

  /**
   * Stores the entries that `plan` derives from the present messages, and applies them when they are stored. Changes run one after another.
   * Returns what `plan` returns beside the entries.
   */
  change<T>(
    plan: (inboxes: Inboxes) => { entries: readonly MessageEntry[]; result: T },
    { now, durability = 'synced' }: { now: number; durability?: Durability },
  ): Promise<T> {
    return this.#writes.run(async () => {
      const { entries, result } = plan(this.inboxes);
      if (entries.length === 0) return result;
      await this.#records.append(logOf(this.#generation), entries as unknown as Json, durability);
      for (const entry of entries) applyEntry(this.inboxes, entry);
      this.#lines += 1;
      if (this.#lines >= MAX_LOG_LINES) await this.#rotate(now);
      return result;
    });
  }

  /** Resolves when all changes so far are stored. */
  flush(): Promise<void> {
    return this.#writes.idle();
  }

  async #rotate(now: number): Promise<void> {
    trimEnded(this.inboxes, now);
    const generation = this.#generation + 1;
    const inboxes = [...this.inboxes].map(([agent, { messages, ended, asks, schedules, events, peers }]) => ({
      agent,
      messages: [...messages.values()],
      ended: [...ended],
      asks: [...asks],
      schedules: storedScheduleRecords(schedules),
      events: storedEventRecords(events),
      peers: storedPeerRecords(peers),
    }));
    await this.#records.put(STATE, 'state', { generation, inboxes } as unknown as Json);
    await this.#records.deleteCollection(logOf(this.#generation));
    this.#generation = generation;
    this.#lines = 0;
  }
}

/** Reads the messages beside the process that writes them. Throws TEMPER_STATE_CORRUPT. */
export async function readInboxes(records: RecordStore): Promise<Inboxes> {
  for (let attempt = 0; ; attempt += 1) {
    const { inboxes, generation } = await restore(records);
    const state = await records.get(STATE, 'state');
    // A new snapshot was written meanwhile, and the log of the one that was read is gone.
    const isSame = state === undefined || (isJsonObject(state) && state.generation === generation);
    if (isSame || attempt >= MAX_READS) return inboxes;
  }
}

function logOf(generation: number): string {
  return `${STATE}/journal-${generation}`;
}

async function restore(records: RecordStore): Promise<{ inboxes: Inboxes; generation: number }> {
  const state = (await records.get(STATE, 'state')) ?? { generation: 0, inboxes: [] };
  if (!isJsonObject(state) || typeof state.generation !== 'number' || !Array.isArray(state.inboxes)) throw corrupt();
  const inboxes: Inboxes = new Map();
  for (const value of state.inboxes) restoreInbox(inboxes, value);
  for (const line of await records.read(logOf(state.generation))) {
    if (!Array.isArray(line)) throw corrupt();
    for (const entry of line) applyEntry(inboxes, entryOf(entry));
  }
  return { inboxes, generation: state.generation };
}

/** The folder is private and written by this module, so its form is checked as far as a damaged file would mislead. */
function restoreInbox(inboxes: Inboxes, value: Json): void {
  if (!isJsonObject(value) || typeof value.agent !== 'string') throw corrupt();
  const { agent, messages, ended, asks, schedules, events, peers } = value;
  if (!Array.isArray(messages) || !Array.isArray(ended) || !Array.isArray(asks)) throw corrupt();
  const records = {
    schedules: parseScheduleRecords(schedules),
    events: parseEventRecords(events),
    peers: parsePeerRecords(peers),
  };
  const inbox = { ...inboxOf(inboxes, agent), ...records };
  inboxes.set(agent, inbox);
  for (const queued of messages) {
    if (!isJsonObject(queued) || !isJsonObject(queued.message) || typeof queued.message.id !== 'string')
      throw corrupt();
    const entry = { op: 'stored', agent, sequence: queued.sequence, message: queued.message };
    applyEntry(inboxes, entry as unknown as MessageEntry);
    inbox.messages.set(queued.message.id, queued as never);
  }
  for (const [id, end] of ended as unknown as [string, { time: number; root: string }][]) inbox.ended.set(id, end);
  for (const [ticket, ask] of asks as unknown as [string, never][]) inbox.asks.set(ticket, ask);
}

function entryOf(value: Json): MessageEntry {
  if (!isJsonObject(value) || typeof value.op !== 'string' || typeof value.agent !== 'string') throw corrupt();
  return value as unknown as MessageEntry;
}

function corrupt(): TemperError {
  return new TemperError(
    'TEMPER_STATE_CORRUPT',
    'the messages of the state folder cannot be read; restore its folder "messages" from a copy, or move it away to drop them',
  );
}
