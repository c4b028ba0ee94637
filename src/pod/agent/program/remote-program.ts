import type { ProgramProcess } from '../../../acp/process/port.ts';
import { isTemperError, TemperError } from '../../../lib/errors.ts';
import type { Json } from '../../../lib/json.ts';
import { member } from '../../../lib/json.ts';
import type { ProgramExit, ProgramStream } from '../../socket/program-fields.ts';
import type { AgentFrame, SandboxFrame } from '../../socket/protocol.ts';
import { RelayedStream } from '../../socket/relayed-stream.ts';
import { valueOrThrow } from '../../socket/results.ts';

export interface RemoteProgramDeps {
  id: number;
  send: (frame: AgentFrame) => boolean;
  /** Called once: no further frame is expected. */
  onEnd: () => void;
}

/** Time in which the sandbox container reports the exit of a process after the request to kill it. */
const STOP_TIMEOUT_MS = 5_000;
const MAX_FOLDER = 4_096;

/** A process of the agent program in the sandbox container, which is as little trusted as the process. */
export class RemoteProgram implements ProgramProcess {
  readonly #deps: RemoteProgramDeps;
  readonly #streams: Readonly<Record<ProgramStream, RelayedStream>>;
  readonly #started = Promise.withResolvers<void>();
  readonly #exited = Promise.withResolvers<void>();
  #folder = '';
  #stderr = '';
  #reason: string | undefined;
  #hasExited = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: RemoteProgramDeps) {
    this.#deps = deps;
    this.#streams = { program: this.#stream('program'), requests: this.#stream('requests') };
    // No caller waits for a start that is cancelled.
    this.#started.promise.catch(() => undefined);
  }

  /** Resolves when the process runs. Rejects with TEMPER_ACP_AGENT_FAILED. */
  async start(): Promise<void> {
    this.#deps.send({ type: 'start', id: this.#deps.id });
    await this.#started.promise;
  }

  get folder(): string {
    return this.#folder;
  }

  get stdin(): RelayedStream {
    return this.#streams.program;
  }

  get stdout(): RelayedStream {
    return this.#streams.program;
  }

  get requests(): RelayedStream {
    return this.#streams.requests;
  }

  get exited(): Promise<void> {
    return this.#exited.promise;
  }

  get ended(): string | undefined {
    return this.#reason;
  }

  get stderr(): string {
    return this.#stderr;
  }

  kill(reason: string): void {
    this.#reason ??= reason;
    if (this.#hasExited || this.#timer !== undefined) return;
    this.#deps.send({ type: 'stop', id: this.#deps.id });
    this.#timer = setTimeout(() => this.#exit({ reason, stderr: '' }), STOP_TIMEOUT_MS);
  }

  /** The memory of the pod keeps no home without a process. */
  async leave(): Promise<undefined> {
    await this[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill('the session is closed');
    await this.exited;
  }

  handleFrame(frame: SandboxFrame): boolean {
    switch (frame.type) {
      case 'result':
        return this.#onResult(frame);
      case 'output':
        return this.#streams[frame.stream].receive(frame.text);
      case 'taken':
        return this.#streams[frame.stream].release(frame.characters);
      case 'exited':
        this.#exit(frame);
        return true;
      default:
        return false;
    }
  }

  connectionLost(reason: string): void {
    this.#exit({ reason: `the connection to the sandbox container was lost: ${reason}`, stderr: '' });
  }

  #onResult({ answer }: Extract<SandboxFrame, { type: 'result' }>): boolean {
    if (this.#folder !== '') return false;
    try {
      this.#folder = folderIn(valueOrThrow(answer));
      this.#started.resolve();
    } catch (error) {
      this.#exit({
        reason: isTemperError(error) ? error.message : 'the sandbox container broke the protocol',
        stderr: '',
      });
    }
    return true;
  }

  #exit({ reason, stderr }: ProgramExit): void {
    if (this.#hasExited) return;
    this.#hasExited = true;
    clearTimeout(this.#timer);
    this.#reason ??= reason;
    this.#stderr = stderr;
    this.#deps.onEnd();
    this.#streams.program.finish();
    this.#streams.requests.destroy();
    const failure = `the agent program does not start: ${this.#reason}`;
    this.#started.reject(new TemperError('TEMPER_ACP_AGENT_FAILED', failure, { retry: 'backoff' }));
    this.#exited.resolve();
  }

  #stream(stream: ProgramStream): RelayedStream {
    const { id, send } = this.#deps;
    return new RelayedStream({
      send: (text) => void send({ type: 'input', id, stream, text }),
      taken: (characters) => void send({ type: 'taken', id, stream, characters }),
    });
  }
}

/** Throws TEMPER_ACP_AGENT_FAILED. */
function folderIn(value: Json): string {
  const folder = member(value, 'folder');
  if (typeof folder === 'string' && folder.startsWith('/') && folder.length <= MAX_FOLDER) return folder;
  throw new TemperError('TEMPER_ACP_AGENT_FAILED', 'the sandbox container named no folder');
}
