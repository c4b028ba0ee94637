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

/** The bus over NATS. While it is away every question fails at once, and what is followed goes on when it is back. */
export class NatsBus implements Bus {
  readonly #deps: NatsBusDeps;

  constructor(deps: NatsBusDeps) {
    this.#deps = deps;
  }

  async pending(agentUid: string): Promise<number> {
    const { waiting, inFlight } = await createInbox(this.#deps.link.now()).waiting(agentUid);
    return waiting + inFlight;
  }

  /** Everything an agent does leaves an event, which is kept for a day. */
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
    let told: Date | undefined;
    while (!signal.aborted) {
      const since = link.unavailableSince();
      const left = since === undefined ? 0 : since.getTime() + patience - clock.now().getTime();
      if (since === undefined ? told !== undefined : told === undefined && left <= 0) {
        told = since;
        yield since;
        continue;
      }
      const over = new AbortController();
      const either = AbortSignal.any([signal, over.signal]);
      const waits = [link.changed(either)];
      if (left > 0) waits.push(clock.sleep(left, either).catch(() => undefined));
      await Promise.race(waits);
      over.abort();
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

  /** Each is taken from the bus once whoever iterates asks for the next: one that nobody acted upon comes again. */
  async *#wakesOf(connection: BusConnection, signal: AbortSignal): AsyncIterable<string> {
    const stopping = new AbortController();
    const over = AbortSignal.any([signal, connection.closed, stopping.signal]);
    const arrived: { uid: string; taken: () => void; refuse: (error: Error) => void }[] = [];
    let notify = Promise.withResolvers<void>();
    const wake = (uid: string): Promise<void> =>
      new Promise((taken, refuse) => {
        arrived.push({ uid, taken, refuse });
        notify.resolve();
      });
    const failed = (error: unknown): void => {
      if (!over.aborted) this.#deps.log.debug({ error: messageOf(error, 200) }, 'a wake could not be taken yet');
    };
    const consuming = createWakes(connection).consume(wake, over, failed);
    over.addEventListener('abort', () => notify.resolve(), { once: true });
    try {
      while (!over.aborted) {
        const next = arrived.shift();
        if (next === undefined) {
          await notify.promise;
          notify = Promise.withResolvers<void>();
          continue;
        }
        // Given back unless the iteration goes on.
        arrived.unshift(next);
        yield next.uid;
        arrived.shift();
        next.taken();
      }
    } finally {
      stopping.abort();
      for (const { refuse } of arrived) refuse(new TemperError('TEMPER_CANCELLED', 'nobody takes wakes any more'));
      await consuming;
    }
  }
}
