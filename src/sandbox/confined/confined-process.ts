import { type ConfinedProgram, type Confinement, confinedCommand } from './confined-command.ts';
import { PipedProcess, type PipedProcessOptions } from './piped-process.ts';

export interface ConfinedProcessOptions extends PipedProcessOptions {
  confinement: Omit<Confinement, 'home'>;
}

/** The process of a JavaScript program that Node confines. */
export class ConfinedProcess extends PipedProcess {
  constructor(program: ConfinedProgram, { confinement, ...options }: ConfinedProcessOptions) {
    super(confinedCommand(process.execPath, program, { home: options.home.path, ...confinement }), options);
  }
}
