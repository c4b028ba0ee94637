import type { AppendFlags } from '../../agent/ports.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { SessionAppend } from '../../gateway-api/pod-api.ts';

/** Stores an append with a request of its own. */
type StoreAppend = (append: SessionAppend) => Promise<void>;

/** An append that takes more bytes has a request of its own, so that the limits of other requests do not grow with it. */
const MAX_CARRIED_BYTES = 256 * 1_024;

/**
 * Items of the current message that the gateway does not have yet; the next model call or the end of the message carries them. An append
 * that was sent never changes, so that it can be repeated after a lost response: the gateway stores an equal append once.
 */
export class StagedItems {
  #sent: SessionAppend | undefined;
  #waiting: SessionAppend | undefined;

  add(afterSeq: number, items: readonly ModelMessage[], flags: AppendFlags): void {
    const before: SessionAppend = this.#waiting ?? { afterSeq, items: [] };
    const has = (mark: 'tainted' | 'private') =>
      flags[mark] === true || before[mark] === true ? { [mark]: true } : {};
    this.#waiting = { ...before, items: [...before.items, ...items], ...has('tainted'), ...has('private') };
  }

  /** The append for a model call. The words of a user wait for the answer: until then the inbox has them. */
  async forModelCall(store: StoreAppend): Promise<SessionAppend | undefined> {
    const isWorthwhile = this.#sent !== undefined || this.#waiting?.items.some(({ role }) => role !== 'user') === true;
    return isWorthwhile ? this.forEnd(store) : undefined;
  }

  /** The append for the end of the message. */
  async forEnd(store: StoreAppend): Promise<SessionAppend | undefined> {
    if (this.#sent !== undefined && this.#waiting !== undefined) await this.#storeNow(store, this.#sent);
    const next = this.#take();
    if (next === undefined || Buffer.byteLength(JSON.stringify(next)) <= MAX_CARRIED_BYTES) return next;
    await this.#storeNow(store, next);
    return undefined;
  }

  /** Stores everything now. */
  async flush(store: StoreAppend): Promise<void> {
    for (let next = this.#take(); next !== undefined; next = this.#take()) await this.#storeNow(store, next);
  }

  /** The gateway has confirmed the append. */
  stored(append: SessionAppend | undefined): void {
    if (append !== undefined && this.#sent === append) this.#sent = undefined;
  }

  /** Forgets the items: the message has ended, or the gateway has refused them. */
  clear(): void {
    this.#sent = undefined;
    this.#waiting = undefined;
  }

  /** The append that was sent without a response; else what waits, from now on unchanged. */
  #take(): SessionAppend | undefined {
    if (this.#sent === undefined) {
      this.#sent = this.#waiting;
      this.#waiting = undefined;
    }
    return this.#sent;
  }

  async #storeNow(store: StoreAppend, append: SessionAppend): Promise<void> {
    await store(append);
    this.stored(append);
  }
}
