import { TemperError } from '../../lib/errors.ts';
import type { DeadLetterInput } from '../dead-letters/dead-letter-writer.ts';
import { type DeliveryState, EMPTY_STATE } from './delivery-state.ts';
import type { EndedMessage, InboxMessage, InboxStore, StoredDeliveryState } from './inbox-store.ts';

/** What happens to one call of the store. */
export type Fault =
  | 'none'
  /** The call fails without an effect. */
  | 'before'
  /** The call has its effect, and its response is lost. */
  | 'after'
  /** A list of messages comes from a follower that has not applied the last deletions. */
  | 'stale';

/** For tests: the inbox of one agent in memory, as NATS stores it. */
export class MemoryInbox {
  readonly messages = new Map<number, InboxMessage>();
  readonly ended = new Map<string, EndedMessage>();
  readonly deadLetters = new Map<number, DeadLetterInput>();
  state: StoredDeliveryState = { state: EMPTY_STATE, revision: 0 };
  /** Called for each state that is stored, with the one before. */
  onState: (next: DeliveryState, previous: DeliveryState) => void = () => undefined;
  #lastSequence = 0;
  #lagging: InboxMessage[] = [];

  add(value: object | string): number {
    this.#lastSequence += 1;
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    this.messages.set(this.#lastSequence, { sequence: this.#lastSequence, data: Buffer.from(text) });
    return this.#lastSequence;
  }

  /** A follower that lags shows the messages of this moment. */
  lag(): void {
    this.#lagging = [...this.messages.values()];
  }

  /** The store as one process uses it. `nextFault` is called once per request; `turn` delays it. */
  client(nextFault: () => Fault = () => 'none', turn: () => Promise<void> = () => Promise.resolve()): InboxStore {
    const request = async <T>(effect: (isStale: boolean) => T): Promise<T> => {
      const fault = nextFault();
      await turn();
      if (fault === 'before') throw unavailable();
      const result = effect(fault === 'stale');
      await turn();
      if (fault === 'after') throw unavailable();
      return result;
    };
    const messagesFrom = (from: number, isStale: boolean): InboxMessage[] =>
      (isStale ? this.#lagging : [...this.messages.values()]).filter(({ sequence }) => sequence >= from);
    return {
      readState: () => request(() => structuredClone(this.state)),
      writeState: (_uid, state, revision) => request(() => this.#write(state, revision)),
      message: (_uid, sequence) => request(() => this.messages.get(sequence)),
      async *messages(_uid, from) {
        yield* await request((isStale) => messagesFrom(from, isStale));
      },
      deleteMessage: (_uid, sequence) => request(() => void this.messages.delete(sequence)),
      readEnded: (_uid, message) => request(() => this.ended.get(message)),
      writeEnded: (_uid, message, ended) => request(() => void this.ended.set(message, ended)),
      writeDeadLetter: (input) =>
        request(() => {
          const isStored = this.messages.has(input.streamSequence);
          if (isStored) this.deadLetters.set(input.streamSequence, input);
          return isStored;
        }),
    };
  }

  #write(state: DeliveryState, revision: number): number | undefined {
    if (this.state.revision !== revision) return undefined;
    const previous = this.state.state;
    this.state = { state: structuredClone(state), revision: revision + 1 };
    this.onState(state, previous);
    return this.state.revision;
  }
}

function unavailable(): TemperError {
  return new TemperError('TEMPER_BUS_UNAVAILABLE', 'the response was lost', { retry: 'backoff' });
}
