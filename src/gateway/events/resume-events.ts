import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { AcceptedEvents } from '../../nats/events/accepted-events.ts';
import type { NotificationListener } from '../../nats/notify/notifications.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { EventPublisherPort } from './port.ts';

export interface ResumeEventsDeps {
  accepted: Pick<AcceptedEvents, 'open'>;
  events: Pick<EventPublisherPort, 'resume'>;
  /** Of events that the operator announces. */
  arrivals: Pick<NotificationListener, 'reset' | 'wait'>;
  clock: Clock;
  log: Pick<Logger, 'warn'>;
}

const ROUND_INTERVAL_MS = 10_000;
/** A younger event is in the hands of the process that accepted it. */
const MIN_AGE_MS = 10_000;

/** Continues events that a process accepted and did not finish, and publishes those that the operator announces, until it is disposed. Every replica does: a repeated message is the same. */
export function startResumingEvents(deps: ResumeEventsDeps): AsyncDisposable {
  const stopping = new AbortController();
  const running = repeat(deps, stopping.signal);
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await running;
    },
  };
}

async function repeat(deps: ResumeEventsDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    deps.arrivals.reset();
    await resumeEvents(deps, signal);
    await deps.arrivals.wait(ROUND_INTERVAL_MS, signal);
  }
}

/** One look. Never throws: what fails waits for the next one. */
async function resumeEvents({ accepted, events, clock, log }: ResumeEventsDeps, signal: AbortSignal): Promise<void> {
  const warn = (error: unknown): void => {
    if (signal.aborted || isTemperError(error, 'TEMPER_BUS_UNAVAILABLE')) return;
    log.warn({ error }, 'an accepted event could not be continued; the next round tries again');
  };
  try {
    const before = clock.now().getTime() - MIN_AGE_MS;
    for (const open of await accepted.open()) {
      if (signal.aborted) return;
      // No process works on an announced event yet.
      if (!('recipients' in open) || Date.parse(open.event.time) <= before) await events.resume(open).catch(warn);
    }
  } catch (error) {
    warn(error);
  }
}
