import type { JsonObject } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { ProgramCaller } from './caller.ts';

/** A program that the policy permits, as the side with the policy asks for it. */
export interface TerminalRequest {
  program: string;
  args: string[];
  /** Relative to the workspace. */
  folder: string;
  input?: string;
  programs: string[] | 'any';
  /** Patterns for the names of the variables that it may read. */
  environment: string[];
  milliseconds: number;
  /** Absent: the program has no variables about its call. */
  caller?: ProgramCaller;
}

/** Where programs run: in this process' place, or in the sandbox container. */
export interface Terminal {
  /** The result of `shell_exec`. Throws the errors of the program runner, and of paths. */
  run(request: TerminalRequest, op: CallOptions): Promise<JsonObject>;
}
