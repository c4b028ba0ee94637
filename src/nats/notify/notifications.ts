import { onAbort } from '../../lib/async/abort.ts';
import { Notifier } from '../../lib/async/notifier.ts';
import type { JetStreamConnection } from '../connection/connection.ts';

/**
 * Makes the processes that wait at this subject look again, this one at once. A plain NATS message with the id of the connection, which the
 * server does not store. It may be lost, when a gateway ends between its write and the notification, or when a server of a cluster does not
 * know the subscription yet. A waiting process therefore also looks again after a time.
 */
export function notify(connection: JetStreamConnection, subject: string): void {
  connection.listeners.notify(subject);
  if (connection.nats.isClosed() || connection.nats.isDraining() || !connection.state().connected) return;
  connection.nats.publish(subject, connection.id);
}

/** A reason of its own: without one, each `abort` creates an error with a stack. */
const OVER = 'the wait is over';

/** Waits for notifications at one subject, and for changes of the connection: notifications are lost during an outage. */
export class NotificationListener implements Disposable {
  readonly #connection: JetStreamConnection;
  readonly #changes = new Notifier();
  readonly #stop: () => void;
  #isNotified = false;

  constructor(connection: JetStreamConnection, subject: string) {
    this.#connection = connection;
    const onNotification = (): void => {
      this.#isNotified = true;
      this.#changes.notifyAll();
    };
    const subscription = connection.nats.subscribe(subject, {
      // Its own notification has arrived already, and would cost another look.
      callback: (error, message) => {
        if (error !== null || message.string() !== connection.id) onNotification();
      },
    });
    const removers = [connection.onChange(onNotification), connection.listeners.add(subject, onNotification)];
    this.#stop = () => {
      for (const remove of removers) remove();
      if (!connection.nats.isClosed()) subscription.unsubscribe();
    };
  }

  /** Forgets notifications so far. Call it before looking. */
  reset(): void {
    this.#isNotified = false;
  }

  /** Resolves at a notification since `reset`, after the time, or when the signal aborts. True: there was a notification. */
  async wait(milliseconds: number, signal: AbortSignal): Promise<boolean> {
    if (this.#isNotified) return true;
    const over = new AbortController();
    using _listener = onAbort(signal, () => over.abort(OVER));
    const sleeping = this.#connection.clock.sleep(milliseconds, over.signal).catch(() => undefined);
    await Promise.race([this.#changes.wait(over.signal), sleeping]);
    over.abort(OVER);
    return this.#isNotified;
  }

  [Symbol.dispose](): void {
    this.#stop();
  }
}
