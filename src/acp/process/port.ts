import type { Duplex, Readable, Writable } from 'node:stream';
import type { ProgramHome } from '../../sandbox/confined/program-home.ts';

/** The process of one session of an agent program. Nothing that it sends is trusted, and it can always be killed. */
export interface ProgramProcess extends AsyncDisposable {
  /** Its working folder, as it sees it; empty at the start. */
  readonly folder: string;
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** The pipe of its requests; see `fetch-channel.ts`. */
  readonly requests: Duplex;
  readonly exited: Promise<void>;
  /** Why the process has ended; undefined while it runs. */
  readonly ended: string | undefined;
  /** The beginning of its standard error: untrusted text. */
  readonly stderr: string;
  kill(reason: string): void;
  /** Lets the process end and hands over its home; undefined where none is kept. */
  leave(): Promise<ProgramHome | undefined>;
}

/** Where the processes of an agent program run. */
export interface ProgramHost {
  /** Bytes of the requests that a process has open. */
  readonly maxRequestBytes: number;
  /** Starts a process in this home, which belongs to it from now on, or in an empty one. Throws TEMPER_ACP_AGENT_FAILED. */
  start(signal: AbortSignal, home?: ProgramHome): Promise<ProgramProcess>;
}
