import { setImmediate } from 'node:timers/promises';
import { sha256, tryDigestOf } from '../../lib/canonical.ts';
import { isErrorCode } from '../../lib/error-codes.ts';
import { TemperError } from '../../lib/errors.ts';
import { isCount, isJsonObject, type Json, member, parseUntrustedJson } from '../../lib/json.ts';
import type { ItemOrigin } from '../../models/item-origin.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { SessionAnswer, SessionRequest } from '../../sandbox/session-port.ts';

/**
 * One entry of the journal of a run of code. The entries are stored with the session, so that an interrupted or parked run is repeated
 * from them: with the same time and randomness, the code makes the same calls in the same order, and gets the stored answers.
 */
export type RunJournalEntry =
  | { kind: 'start'; startTime: number; seed: string }
  /** The call starts; it may have effects. */
  | { kind: 'started'; call: number; digest: string }
  /** The call waits for a decision, and has had no effect. */
  | { kind: 'parked'; call: number; digest: string; request: string }
  /** In the order in which the code got the answers. Without `answer`, it was too large. `isTimer`: the code waited, and called no tool. */
  | { kind: 'answered'; call: number; digest: string; answer?: SessionAnswer; isTimer?: true };

type CallEntry = Exclude<RunJournalEntry, { kind: 'start' }>;
type ToolItem = Extract<ModelMessage, { role: 'tool' }>;

const CODE = 'invoke';

/**
 * The item that stores an entry of the journal of this call of `invoke`. No model ever gets it. Its origin is that of the answer in it: the
 * result of the whole run does not say what the code read.
 */
export function journalItem(callId: string, entry: RunJournalEntry, origin: ItemOrigin): ToolItem {
  return {
    role: 'tool',
    toolCallId: callId,
    name: CODE,
    text: JSON.stringify(entry),
    isError: false,
    journal: true,
    origin,
  };
}

/** Identifies a call by what the code asks for. Canonical JSON refuses some arguments; they are compared as plain JSON. */
export function requestDigest({ name, input }: Pick<SessionRequest, 'name' | 'input'>): string {
  return tryDigestOf({ name, input }) ?? sha256(JSON.stringify([name, input]));
}

/** The tool calls that these items record, without those of the calls of `invoke` that are `pending`. */
export function journaledSteps(items: readonly ModelMessage[], pending: ReadonlySet<string>): number {
  const ids = new Set(items.flatMap((item) => (isCodeJournal(item) ? item.toolCallId : [])));
  const entries = [...ids].filter((id) => !pending.has(id)).flatMap((id) => journalOf(items, id));
  return entries.filter((entry) => entry.kind === 'answered' && entry.isTimer !== true).length;
}

/** The journal of this call of `invoke` among the items of one answer. Throws TEMPER_STATE_CORRUPT for an entry that cannot be read. */
export function journalOf(items: readonly ModelMessage[], callId: string): RunJournalEntry[] {
  return items
    .filter((item): item is ToolItem => isCodeJournal(item) && item.toolCallId === callId)
    .map(({ text }) => parseEntry(text));
}

/** Other journals of the session have other names. */
function isCodeJournal(item: ModelMessage): item is ToolItem {
  return item.role === 'tool' && item.journal === true && item.name === CODE;
}

/** The numbers of the calls that wait for a decision, in the code of this call of `invoke`. */
export function parkedCalls(items: readonly ModelMessage[], callId: string): number[] {
  const last = new Map<number, RunJournalEntry['kind']>();
  for (const entry of journalOf(items, callId)) if (entry.kind !== 'start') last.set(entry.call, entry.kind);
  return [...last].filter(([, kind]) => kind === 'parked').map(([call]) => call);
}

function parseEntry(text: string): RunJournalEntry {
  let value: Json | undefined;
  try {
    value = parseUntrustedJson(text);
  } catch {
    // The text is cut or is not JSON.
  }
  const entry = entryIn(value);
  if (entry !== undefined) return entry;
  throw new TemperError('TEMPER_STATE_CORRUPT', 'a journal entry of the session cannot be read; close the session');
}

function entryIn(value: Json | undefined): RunJournalEntry | undefined {
  const [kind, call, digest, request] = ['kind', 'call', 'digest', 'request'].map((key) => member(value, key));
  if (kind === 'start') {
    const [startTime, seed] = [member(value, 'startTime'), member(value, 'seed')];
    return isCount(startTime) && typeof seed === 'string' ? { kind, startTime, seed } : undefined;
  }
  if (!isCount(call) || typeof digest !== 'string') return undefined;
  if (kind === 'started') return { kind, call, digest };
  if (kind === 'parked') return typeof request === 'string' ? { kind, call, digest, request } : undefined;
  const given = member(value, 'answer');
  const answer = answerIn(given);
  if (kind !== 'answered' || (given !== undefined && answer === undefined)) return undefined;
  const isTimer = member(value, 'isTimer') === true;
  return { kind, call, digest, ...(answer === undefined ? {} : { answer }), ...(isTimer ? { isTimer } : {}) };
}

function answerIn(value: Json | undefined): SessionAnswer | undefined {
  if (!isJsonObject(value)) return undefined;
  const { time, ok, code, message } = value;
  if (!isCount(time)) return undefined;
  if (ok === true) return { time, ok, value: value['value'] ?? null };
  return isErrorCode(code) && typeof message === 'string' ? { time, ok: false, code, message } : undefined;
}

/** What the journal knows about a call that the code makes. */
export type JournaledCall =
  | { state: 'new' }
  /** Its answer comes when the code has got the answers before it. */
  | { state: 'answered'; answer: Promise<SessionAnswer>; isStored: boolean }
  /** The process ended during the call: it may have had its effect. */
  | { state: 'unknown' }
  /** The code makes another call than before. */
  | { state: 'diverged' };

/** Gives the answers of a journal again, in their order. */
export class Replay {
  readonly #known = new Map<number, CallEntry>();
  readonly #order: Extract<CallEntry, { kind: 'answered' }>[];
  readonly #waiting = new Map<number, () => Promise<void>>();
  readonly #isComplete = Promise.withResolvers<void>();
  #delivered = 0;
  #isDelivering = false;

  constructor(journal: readonly RunJournalEntry[]) {
    for (const entry of journal) if (entry.kind !== 'start') this.#known.set(entry.call, entry);
    this.#order = journal.filter((entry) => entry.kind === 'answered');
    void this.#deliver();
  }

  /** The answers that the code has not got again. */
  get remaining(): number {
    return this.#order.length - this.#delivered;
  }

  /** Resolves when the code has got every stored answer: a new answer comes after them, as in the first run. */
  get isComplete(): Promise<void> {
    return this.#isComplete.promise;
  }

  /** `repeat` makes the call again when its answer was too large to be stored. */
  find(call: number, digest: string, repeat: () => Promise<SessionAnswer>): JournaledCall {
    const entry = this.#known.get(call);
    if (entry === undefined) return { state: 'new' };
    if (entry.digest !== digest) return { state: 'diverged' };
    if (entry.kind === 'parked') return { state: 'new' };
    if (entry.kind !== 'answered') return { state: 'unknown' };
    const { promise, resolve, reject } = Promise.withResolvers<SessionAnswer>();
    this.#waiting.set(call, async () => {
      if (entry.answer !== undefined) resolve(entry.answer);
      else await repeat().then(resolve, reject);
    });
    void this.#deliver();
    return { state: 'answered', answer: promise, isStored: entry.answer !== undefined };
  }

  /** One answer at a time: the code must have got one before the next is given. */
  async #deliver(): Promise<void> {
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    for (let next = this.#order[this.#delivered]; next !== undefined; next = this.#order[this.#delivered]) {
      const answer = this.#waiting.get(next.call);
      if (answer === undefined) break;
      this.#waiting.delete(next.call);
      await answer();
      await setImmediate();
      this.#delivered += 1;
    }
    this.#isDelivering = false;
    if (this.remaining === 0) this.#isComplete.resolve();
  }
}
