import { Notifier } from '../../lib/async/notifier.ts';
import { TemperError, messageOf } from '../../lib/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import { createNatsInbox } from '../../nats/inbox/inbox.ts';
import { STREAMS, token } from '../../nats/jetstream/names.ts';
import { lastMessage } from '../../nats/jetstream/stream-reader.ts';
import { deleteAgentData } from '../../nats/agent-data.ts';
import { createNatsAudit } from '../../nats/audit.ts';
import type { Resident, ResidentAgent } from '../../nats/residents/resident.ts';
import { createResidents } from '../../nats/residents/residents.ts';
import { createWakeups } from '../../nats/wakeups.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { AgentActivity, InFlightMessage } from '../ports.ts';
import type { NatsLink } from './nats-link.ts';

export interface NatsAgentActivityDeps {
  readonly link: NatsLink;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The port over NATS. While NATS is unreachable, reads fail at once with TEMPER_BUS_UNAVAILABLE; streams continue after a reconnect. */
export class NatsAgentActivity implements AgentActivity {
  readonly #deps: NatsAgentActivityDeps;

  constructor(deps: NatsAgentActivityDeps) {
    this.#deps = deps;
  }

  async pending(agentUid: string): Promise<number> {
    const { pending: waiting, inFlight } = await createNatsInbox(this.#deps.link.current()).depth(agentUid);
    return waiting + inFlight;
  }

  /** Every activity of an agent produces an event; events are stored for a day. */
  async lastActivity(agentUid: string): Promise<Date> {
    const last = await lastMessage(this.#deps.link.current(), STREAMS.events, `temper.events.${token(agentUid)}.>`);
    return last?.time ?? new Date(0);
  }

  async *wakeups(signal: AbortSignal): AsyncIterable<string> {
    for (;;) {
      const connection = await this.#deps.link.waitForConnection(signal);
      if (connection === undefined) return;
      yield* this.#wakeupsOf(connection, signal);
      if (signal.aborted) return;
    }
  }

  async *outages(graceMs: number, signal: AbortSignal): AsyncIterable<Date | undefined> {
    const { link, clock } = this.#deps;
    let reported: Date | undefined;
    while (!signal.aborted) {
      const since = link.unavailableSince();
      const left = since === undefined ? 0 : since.getTime() + graceMs - clock.now().getTime();
      if (since === undefined ? reported !== undefined : reported === undefined && left <= 0) {
        reported = since;
        yield since;
        continue;
      }
      const ended = new AbortController();
      const either = AbortSignal.any([signal, ended.signal]);
      const waits = [link.nextChange(either)];
      if (left > 0) waits.push(clock.sleep(left, either).catch(() => undefined));
      await Promise.race(waits);
      ended.abort();
    }
  }

  async *residents(): AsyncIterable<Resident> {
    for await (const { resident } of createResidents(this.#deps.link.current()).list()) yield resident;
  }

  async addResident(agent: ResidentAgent, release: string): Promise<void> {
    return createResidents(this.#deps.link.current()).ensure(agent, release);
  }

  async markMissing(agent: ResidentAgent, since: string | undefined): Promise<void> {
    await createResidents(this.#deps.link.current()).update(agent, (entry) =>
      entry.missingSince === since ? undefined : { ...entry, missingSince: since },
    );
  }

  async recordDeletion(resident: Resident, missingSince: string): Promise<void> {
    const { namespace, name, uid, release, bytes } = resident;
    const facts = { agent: name, release, missingSince, bytes };
    const record = {
      action: 'agent.data-deleted',
      actor: 'system',
      evidence: 'observed',
      subject: uid,
      facts,
    } as const;
    await createNatsAudit(this.#deps.link.current()).append(
      { namespace, agentUid: uid },
      record,
      `data-deleted/${uid}/${missingSince}`,
    );
  }

  async deleteAgentData(agent: ResidentAgent): Promise<void> {
    const connection = this.#deps.link.current();
    await deleteAgentData(connection, agent.uid);
    await createResidents(connection).remove(agent);
  }

  async inFlightMessages(agentUid: string): Promise<InFlightMessage[]> {
    return createNatsInbox(this.#deps.link.current()).inFlight(agentUid);
  }

  async redeliver(agentUid: string, messages: readonly InFlightMessage[]): Promise<number> {
    return createNatsInbox(this.#deps.link.current()).redeliver(agentUid, messages);
  }

  unavailableSince(): Date | undefined {
    return this.#deps.link.unavailableSince();
  }

  /** A wakeup is acknowledged when the consumer requests the next one. A wakeup that was not processed is redelivered. */
  async *#wakeupsOf(connection: JetStreamConnection, signal: AbortSignal): AsyncIterable<string> {
    const stopping = new AbortController();
    const ended = AbortSignal.any([signal, connection.closed, stopping.signal]);
    const arrived: { uid: string; acknowledge: () => void; reject: (error: Error) => void }[] = [];
    const arrivals = new Notifier();
    const onWakeup = (uid: string): Promise<void> =>
      new Promise((acknowledge, reject) => {
        arrived.push({ uid, acknowledge, reject });
        arrivals.notifyAll();
      });
    const failed = (error: unknown): void => {
      if (!ended.aborted) this.#deps.log.debug({ error: messageOf(error, 200) }, 'a wakeup cannot be consumed yet');
    };
    const consuming = createWakeups(connection).consume(onWakeup, ended, failed);
    try {
      while (!ended.aborted) {
        const next = arrived.shift();
        if (next === undefined) {
          await arrivals.wait(ended);
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
