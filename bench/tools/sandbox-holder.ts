import { systemClock } from '../../src/lib/clock.ts';
import { createSupervisor } from '../../src/sandbox/supervisor.ts';

/** Keeps a warm sandbox until the parent process disconnects. */
const sandbox = await createSupervisor({ clock: systemClock });
process.send?.(sandbox.processes);
process.once('disconnect', () => void sandbox[Symbol.asyncDispose]());
