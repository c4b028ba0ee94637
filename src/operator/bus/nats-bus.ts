import { TemperError, messageOf } from '../../lib/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { BusConnection } from '../../nats/connection.ts';
import { createInbox } from '../../nats/inbox.ts';
import { STREAMS, token } from '../../nats/names.ts';
import { lastMessage } from '../../nats/stored.ts';
import { agentsWithLeftovers, sweepAgent } from '../../nats/sweep.ts';
import { createWakes } from '../../nats/wakes.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Bus, HeldMessage } from '../ports.ts';
import type { BusLink } from './link.ts';

export interface NatsBusDeps {
  readonly link: BusLink;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The port over NATS. While NATS is unreachable, reads fail at once with TEMPER_BUS_UNAVAILABLE; streams continue after a reconnect. */
export class NatsBus implements Bus {
  readonly #deps: NatsBusDeps;

  constructor(deps: NatsBusDeps) {
    this.#deps = deps;
  }

  async pending(agentUid: string): Promise<number> {
    const { waiting, inFlight } = await createInbox(this.#deps.link.now()).waiting(agentUid);
    return waiting + inFlight;
  }

  /** Every activity of an agent produces an event; events are stored for a day. */
  async lastActivity(agentUid: string): Promise<Date> {
    const last = await lastMessage(this.#deps.link.now(), STREAMS.events, `temper.events.${token(agentUid)}.>`);
    return last?.time ?? new Date(0);
  }

  async *wakes(signal: AbortSignal): AsyncIterable<string> {
    for (;;) {
      const connection = await this.#deps.link.connected(signal);
      if (connection === undefined) return;
      yield* this.#wakesOf(connection, signal);
      if (signal.aborted) return;
    }
  }

  async *outages(patience: number, signal: AbortSignal): AsyncIterable<Date | undefined> {
    const { link, clock } = this.#deps;
    let reported: Date | undefined;
    while (!signal.aborted) {
      const since = link.unavailableSince();
      const left = since === undefined ? 0 : since.getTime() + patience - clock.now().getTime();
      if (since === undefined ? reported !== undefined : reported === undefined && left <= 0) {
        reported = since;
        yield since;
        continue;
      }
      const ended = new AbortController();
      const either = AbortSignal.any([signal, ended.signal]);
      const waits = [link.changed(either)];
      if (left > 0) waits.push(clock.sleep(left, either).catch(() => undefined));
      await Promise.race(waits);
      ended.abort();
    }
  }

  async residents(): Promise<readonly string[]> {
    return agentsWithLeftovers(this.#deps.link.now());
  }

  async sweep(agentUid: string): Promise<void> {
    return sweepAgent(this.#deps.link.now(), agentUid);
  }

  async held(agentUid: string): Promise<HeldMessage | undefined> {
    return createInbox(this.#deps.link.now()).inFlight(agentUid);
  }

  async release(agentUid: string, held: HeldMessage): Promise<boolean> {
    return createInbox(this.#deps.link.now()).release(agentUid, held);
  }

  unavailableSince(): Date | undefined {
    return this.#deps.link.unavailableSince();
  }

  /** A wakeup is acknowledged when the consumer requests the next one. A wakeup that was not processed is redelivered. */
  async *#wakesOf(connection: BusConnection, signal: AbortSignal): AsyncIterable<string> {
    const stopping = new AbortController();
    const ended = AbortSignal.any([signal, connection.closed, stopping.signal]);
    const arrived: { uid: string; acknowledge: () => void; reject: (error: Error) => void }[] = [];
    let notify = Promise.withResolvers<void>();
    const onWakeup = (uid: string): Promise<void> =>
      new Promise((acknowledge, reject) => {
        arrived.push({ uid, acknowledge, reject });
        notify.resolve();
      });
    const failed = (error: unknown): void => {
      if (!ended.aborted) this.#deps.log.debug({ error: messageOf(error, 200) }, 'a wakeup cannot be consumed yet');
    };
    const consuming = createWakes(connection).consume(onWakeup, ended, failed);
    ended.addEventListener('abort', () => notify.resolve(), { once: true });
    try {
      while (!ended.aborted) {
        const next = arrived.shift();
        if (next === undefined) {
          await notify.promise;
          notify = Promise.withResolvers<void>();
          continue;
        }
        // Stays in the list until the consumer requests the next one; otherwise it is rejected below.
        arrived.unshift(next);
        yield next.uid;
        arrived.shift();
        next.acknowledge();
      }
    } finally {
      stopping.abort();
      for (const { reject } of arrived) reject(new TemperError('TEMPER_CANCELLED', 'the consumer of wakeups stopped'));
      await consuming;
    }
  }
}
