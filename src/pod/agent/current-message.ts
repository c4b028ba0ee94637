import type { SessionHistory } from '../../agent/ports.ts';
import { TemperError } from '../../lib/errors.ts';
import type { StampedEvent } from '../../tools/events.ts';

interface MessageContext {
  deliveryToken: string;
  session: string;
  rootMessage: string;
  signal: AbortSignal;
  /** The history that came with the message. */
  history?: SessionHistory;
}

/** Of one message; the latest ones count. */
const MAX_SIGNATURES = 256;

/** The message that one slot works on. Every gateway call that the slot makes meanwhile carries its delivery token. */
export class CurrentMessage {
  #current: MessageContext | undefined;
  #signatures: string[] = [];

  /** Runs `run` with `context` as the current message. */
  async during<T>(context: MessageContext, run: () => Promise<T>): Promise<T> {
    this.#current = context;
    this.#signatures = [];
    try {
      return await run();
    } finally {
      this.#current = undefined;
    }
  }

  /** The delivery token of the current message. Throws TEMPER_DELIVERY_LOST when there is no current message. */
  readonly deliveryToken = (): string => this.#required().deliveryToken;

  /** The delivery token of the current message; undefined when there is no current message. */
  readonly reportToken = (): string | undefined => this.#current?.deliveryToken;

  /** Keeps the signature of an answer that the gateway carried for the current message. */
  readonly addSignature = (signature: string): void => {
    this.#signatures = [...this.#signatures, signature].slice(-MAX_SIGNATURES);
  };

  readonly answerSignatures = (): readonly string[] => this.#signatures;

  readonly signal = (): AbortSignal => this.#required().signal;

  /** The history that came with the message, once: the session may have changed since. */
  readonly takeHistory = (session: string): SessionHistory | undefined => {
    const current = this.#required();
    if (session !== current.session) return undefined;
    const { history } = current;
    delete current.history;
    return history;
  };

  stamp(): Pick<StampedEvent, 'session' | 'rootMessage'> {
    const { session, rootMessage } = this.#required();
    return { session, rootMessage };
  }

  #required(): MessageContext {
    if (this.#current !== undefined) return this.#current;
    throw new TemperError('TEMPER_DELIVERY_LOST', 'no message is being processed');
  }
}
