import { NotificationListener } from '../../../nats/notify/notifications.ts';
import type { NatsLink } from '../nats-link.ts';

interface Notifications {
  subject: string;
  /** Also emits after this time: a notification may be lost. */
  intervalMs: number;
}

/** Emits when connected, at each notification and regularly. Waits while NATS is unavailable. Does not throw. Ends with the signal. */
export async function* notifications(
  link: Pick<NatsLink, 'waitForConnection'>,
  { subject, intervalMs }: Notifications,
  signal: AbortSignal,
): AsyncGenerator<void> {
  while (!signal.aborted) {
    const connection = await link.waitForConnection(signal);
    if (connection === undefined) return;
    const ended = AbortSignal.any([signal, connection.closed]);
    using listener = new NotificationListener(connection, subject);
    while (!ended.aborted) {
      listener.reset();
      yield;
      await listener.wait(intervalMs, ended);
    }
  }
}
