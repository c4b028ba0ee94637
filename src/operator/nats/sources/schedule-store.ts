import type { Clock } from '../../../lib/clock.ts';
import { messageOf as errorText } from '../../../lib/errors.ts';
import type { JetStreamConnection } from '../../../nats/connection/connection.ts';
import { createNatsInbox, messageId } from '../../../nats/inbox/inbox.ts';
import { readStoreGeneration } from '../../../nats/jetstream/store-generation.ts';
import { DEFAULT_RELEASE } from '../../../nats/residents/resident.ts';
import { createResidents } from '../../../nats/residents/residents.ts';
import { createAgentScheduleStore } from '../../../nats/schedules/agent-schedule-store.ts';
import { createScheduleStates } from '../../../nats/schedules/schedule-states.ts';
import { findTaskEnd, lastTaskSequence, scheduledEnds } from '../../../nats/tasks/task-records.ts';
import { withoutSchedule } from '../../../schedule/wanted-schedule.ts';
import type { Logger } from '../../../telemetry/log.ts';
import type { RunEnd, ScheduleStore } from '../../schedules/ports.ts';
import type { NatsLink } from '../nats-link.ts';

export interface NatsScheduleStoreDeps {
  readonly link: Pick<NatsLink, 'current' | 'waitForConnection' | 'unavailableSince'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly release?: string | undefined;
}

/** How long the message of a run may take, as that of a user. */
const RUN_TIMEOUT_MS = 3_600_000;
const POLL_MS = 2_000;

/** The port over NATS. While NATS is unreachable, calls fail at once with TEMPER_BUS_UNAVAILABLE. */
export function natsScheduleStore({
  link,
  clock,
  log,
  release = DEFAULT_RELEASE,
}: NatsScheduleStoreDeps): ScheduleStore {
  const states = () => createScheduleStates(link.current());
  const listed = new Set<string>();
  return {
    read: (schedule) => states().read(schedule),
    write: (schedule, state, revision) => states().write(schedule, state, revision),
    remove: (schedule) => states().remove(schedule),
    ...ownSchedules(link),
    messageOf: (agentUid, { key }) => messageId({ uid: senderOf(agentUid), key }),
    async send({ namespace, name, uid }, { session, text, key, tainted }) {
      const connection = link.current();
      if (!listed.has(uid)) await createResidents(connection).ensure({ namespace, name, uid }, release);
      listed.add(uid);
      const now = clock.now();
      await createNatsInbox(connection).publish(
        uid,
        { uid: senderOf(uid), key },
        {
          to: name,
          from: 'schedule',
          source: 'Schedule',
          ...(tainted === true ? { tainted } : {}),
          session,
          text,
          depth: 0,
          deadline: new Date(now.getTime() + RUN_TIMEOUT_MS).toISOString(),
          time: now.toISOString(),
        },
      );
    },
    async end(agentUid, message) {
      const end = await findTaskEnd(link.current(), agentUid, message);
      return end === undefined ? undefined : { agentUid, message, outcome: end.outcome, endedAt: end.endedAt };
    },
    async isPending(agentUid, session, message) {
      return (await createNatsInbox(link.current()).unendedIn(agentUid, session)).includes(message);
    },
    async *ends(signal) {
      while (!signal.aborted) {
        const connection = await link.waitForConnection(signal);
        if (connection === undefined) return;
        try {
          yield* followEnds(connection, clock, signal);
        } catch (error) {
          if (link.unavailableSince() === undefined)
            log.warn({ error: errorText(error, 200) }, 'the ends of scheduled runs cannot be read from NATS; retrying');
          await clock.sleep(POLL_MS, signal).catch(() => undefined);
        }
      }
    },
  };
}

/** The schedules that agents made. */
function ownSchedules(link: Pick<NatsLink, 'current'>): Pick<ScheduleStore, 'removeOwn' | 'changes' | 'revision'> {
  const schedules = () => createAgentScheduleStore(link.current());
  return {
    async removeOwn(agent, id) {
      await schedules().update(agent, (before) => withoutSchedule(before, id));
      await createScheduleStates(link.current()).remove({ agentUid: agent.uid, id });
    },
    changes: (after) => schedules().changes(after),
    revision: () => schedules().revision(),
  };
}

/** One sender per agent: the key of a run is its due time. */
function senderOf(agentUid: string): string {
  return `schedule-${agentUid}`;
}

/** Ends when the store is another one, whose sequences start again. */
async function* followEnds(
  connection: JetStreamConnection,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<RunEnd | undefined> {
  const { createdAt } = await readStoreGeneration(connection);
  let sequence = await lastTaskSequence(connection);
  yield undefined;
  while (!signal.aborted && !connection.closed.aborted) {
    await clock.sleep(POLL_MS, signal).catch(() => undefined);
    if (signal.aborted) return;
    if ((await readStoreGeneration(connection)).createdAt !== createdAt) return;
    const found = await scheduledEnds(connection, sequence);
    sequence = found.sequence;
    yield* found.ends;
  }
}
