import type { Duplex } from 'node:stream';
import { ConfinedProcess } from '../../sandbox/confined/confined-process.ts';
import { ProgramHome } from '../../sandbox/confined/program-home.ts';
import { agentEnvironment, type AgentProgram } from './agent-command.ts';
import { ORIGIN } from './origin.ts';
import type { ProgramHost, ProgramProcess } from './port.ts';
import { preloadTexts } from './preloads.ts';

/** Two bodies of the largest size that a handler reads, as JSON text. */
const MAX_REQUEST_BYTES = 40 * 1_024 * 1_024;
const CLOSE_REASON = 'the session is closed';
/** Time in which a process writes what it keeps, and exits. */
const LEAVE_TIMEOUT_MS = 1_000;

/** Starts the processes of the program on this machine. */
export function localPrograms(program: AgentProgram): ProgramHost {
  return {
    maxRequestBytes: MAX_REQUEST_BYTES,
    start: async (_signal, home) => AgentProcess.start(program, home ?? (await ProgramHome.create())),
  };
}

/** A process on this machine. */
export class AgentProcess extends ConfinedProcess implements ProgramProcess {
  /** Starts the program in this home, which belongs to the process from now on. */
  static async start(program: AgentProgram, home: ProgramHome): Promise<AgentProcess> {
    return new AgentProcess(program, {
      home,
      confinement: { preloads: await preloadTexts() },
      folder: home.path,
      environment: agentEnvironment(program, home.path, ORIGIN),
      hasExtraPipe: true,
      closeReason: CLOSE_REASON,
    });
  }

  /** A folder of the process, empty at the start. */
  get folder(): string {
    return this.home.workspace;
  }

  get requests(): Duplex {
    return this.extraPipe;
  }

  /** Lets the process end and hands over its home. */
  async leave(): Promise<ProgramHome> {
    this.stdin.end();
    const timer = setTimeout(() => this.kill(CLOSE_REASON), LEAVE_TIMEOUT_MS);
    await this.exited;
    clearTimeout(timer);
    return this.home;
  }
}
