import { PipedProcess, type PipedProcessOptions } from '../confined/piped-process.ts';
import { type ConfinedFiles, confinedArguments } from './confined-arguments.ts';

export interface LaunchedProgram {
  launcher: string;
  /** Absolute path of the program. */
  file: string;
  /** What it is called with. */
  name: string;
  args: readonly string[];
}

const MAX_REPORT = 1_024;

/**
 * The process of any program, behind the launcher: the kernel keeps it within its files and without sockets. Its end is that of everything
 * that it started.
 */
export class LaunchedProcess extends PipedProcess {
  constructor(
    { launcher, ...program }: LaunchedProgram,
    files: ConfinedFiles,
    options: Omit<PipedProcessOptions, 'hasExtraPipe'>,
  ) {
    super({ command: launcher, args: confinedArguments(program, files) }, { ...options, hasExtraPipe: true });
    let report = '';
    this.extraPipe.on('error', () => undefined);
    this.extraPipe.on('data', (chunk: Buffer) => {
      if (report.length < MAX_REPORT) report += chunk.toString('utf8');
      const [line = ''] = report.split('\n', 1);
      if (line.startsWith('error '))
        this.endedBecause(`the process cannot be confined or started: ${line.slice('error '.length)}`);
      if (line === 'memory') this.endedBecause('the process used more memory than it may');
    });
  }

  /** The launcher kills everything when this side of its pipe closes. */
  protected override stop(): void {
    this.extraPipe.destroy();
  }
}
