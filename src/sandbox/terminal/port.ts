import type { CallOptions } from '../../lib/call-options.ts';

/** One program with its arguments. Nothing in it reaches a shell. */
export interface ProgramRequest {
  /** The name of the program in the folders of programs. */
  program: string;
  args: readonly string[];
  /** Absolute path of the folder that the program may write. */
  workspace: string;
  /** Absolute path of its current folder, in the workspace, with all links resolved. */
  folder: string;
  /** Its standard input; nothing when absent. */
  input?: string;
  /** The names of the programs that may be started, the program itself included; `any`: all. */
  programs: readonly string[] | 'any';
  /** Added to the environment that every program has. */
  environment: Readonly<Record<string, string>>;
  milliseconds: number;
}

/** The beginning and the end of what a program wrote. Untrusted text, made printable. */
export interface ProgramOutput {
  text: string;
  bytes: number;
  /** Bytes in the middle that `text` has not. */
  omitted: number;
}

export interface ProgramResult {
  /** Absent when a signal ended the program. */
  exitCode?: number;
  /** The name of the signal that ended the program, such as `SIGKILL`. */
  signal?: string;
  /** Why it was ended. */
  ended?: 'Timeout' | 'Memory' | 'Output';
  /** How many processes of it were still there when it ended; all of them were killed. */
  left: number;
  stdout: ProgramOutput;
  stderr: ProgramOutput;
}

export interface ProgramRunner {
  /**
   * Runs the program to its end, and ends everything that it started. Throws TEMPER_PROGRAM_UNAVAILABLE when nothing confines it here,
   * TEMPER_PROGRAM_NOT_FOUND, and TEMPER_CANCELLED.
   */
  run(request: ProgramRequest, op: CallOptions): Promise<ProgramResult>;
}
