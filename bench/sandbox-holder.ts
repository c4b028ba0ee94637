import { systemClock } from '../src/lib/clock.ts';
import { createSupervisor } from '../src/sandbox/supervisor.ts';

/** Holds a warm sandbox until its parent lets go. */
const sandbox = await createSupervisor({ clock: systemClock });
process.send?.(sandbox.processes);
process.once('disconnect', () => void sandbox[Symbol.asyncDispose]());
