import type { Clock } from '../../lib/clock.ts';
import { createProgramRunner } from '../../sandbox/terminal/program-runner.ts';
import { createLocalTerminal } from '../../toolbox/terminal/local-terminal.ts';
import type { Terminal } from '../../toolbox/terminal/port.ts';

/** What programs of agents run with on the machine of a user. */
export interface LocalPrograms {
  /** Absolute path of the launcher; undefined where there is none. */
  launcher: string | undefined;
  /** The environment of this process, of which grants can name variables. */
  environment: Readonly<Record<string, string | undefined>>;
}

/** The terminal of all agents of this process. */
export function localTerminal(
  { launcher, environment }: LocalPrograms,
  { workspace, protectedPaths, clock }: { workspace: string; protectedPaths: readonly string[]; clock: Clock },
): Terminal {
  const runner = createProgramRunner({ clock, launcher, protectedPaths });
  return createLocalTerminal({ runner, workspace, environment });
}
