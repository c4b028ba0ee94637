import { TemperError } from '../../lib/errors.ts';

/** Of one message: specialists that start, and requests for which the judge is asked. */
const MAX_STARTED = 5;
const MAX_ASKED = 10;

export const SPECIALIST_JUDGE_TIMEOUT_MS = 60_000;
/** After the deadline of the chain, within which the specialist answers. */
export const SPECIALIST_GRACE_MS = 60_000;

/** `started` and `asked`: the specialists that the message has. Throws TEMPER_CHILD_REFUSED. */
export function assertSpecialistLimits({ started, asked }: { started: number; asked: number }): void {
  if (started < MAX_STARTED && asked < MAX_ASKED) return;
  throw new TemperError(
    'TEMPER_CHILD_REFUSED',
    `a message may start ${MAX_STARTED} specialists, and have ${MAX_ASKED} judged; do the task yourself`,
  );
}
