import type { CallOptions } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import { encodeInput } from '../json-text.ts';
import { MAX_DEPTH, MAX_INPUT_BYTES } from '../protocol.ts';
import type { SessionOptions, SessionRunner, SessionSandbox } from '../session-port.ts';
import { SessionProcess, type SessionProcessDeps } from './session-process.ts';

/** Most sessions with a process at the same time. The caller closes the ones that it uses least. */
const MAX_SESSIONS = 16;

export interface SessionProcessesDeps extends SessionProcessDeps {
  maxSessions?: number | undefined;
}

/** Starts and ends the processes of sessions. */
export class SessionProcesses implements SessionSandbox, AsyncDisposable {
  readonly #deps: SessionProcessDeps;
  readonly #maxSessions: number;
  readonly #open = new Set<SessionProcess>();
  #opening = 0;
  #isClosed = false;

  constructor({ maxSessions = MAX_SESSIONS, ...deps }: SessionProcessesDeps) {
    this.#deps = deps;
    this.#maxSessions = maxSessions;
  }

  get processes(): readonly number[] {
    return [...this.#open].flatMap((session) => (session.isOpen ? (session.pid ?? []) : []));
  }

  async openSession(options: SessionOptions, op: CallOptions): Promise<SessionRunner> {
    const text = encodeInput(options.memory);
    if (text === undefined || Buffer.byteLength(text) > MAX_INPUT_BYTES) {
      const message = `the memory of the session is larger than ${MAX_INPUT_BYTES} bytes or nested deeper than ${MAX_DEPTH}`;
      throw new TemperError('TEMPER_SANDBOX_INPUT_TOO_LARGE', message);
    }
    this.#forgetEnded();
    if (this.#isClosed) throw new TemperError('TEMPER_CANCELLED', 'the sandbox is closed');
    if (this.#open.size + this.#opening >= this.#maxSessions) {
      const message = `${this.#maxSessions} sessions have a process already; close one`;
      throw new TemperError('TEMPER_SANDBOX_UNAVAILABLE', message, { retry: 'backoff' });
    }
    this.#opening += 1;
    try {
      const session = await SessionProcess.open(this.#deps, options, op);
      this.#open.add(session);
      if (this.#isClosed) await session.close();
      return session;
    } finally {
      this.#opening -= 1;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#open].map((session) => session.close()));
  }

  #forgetEnded(): void {
    for (const session of this.#open) if (!session.isOpen) this.#open.delete(session);
  }
}
