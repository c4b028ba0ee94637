import { chmod } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { FairQueue } from '../../lib/async/fair-queue.ts';
import { Notifier } from '../../lib/async/notifier.ts';
import { onAbort } from '../../lib/async/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { type CallOptions, withTimeout } from '../../lib/call-options.ts';
import type { HostCalls, Job, JobOutcome, Sandbox, SandboxFailure } from '../../sandbox/port.ts';
import type { SessionOptions, SessionRunner, SessionSandbox } from '../../sandbox/session-port.ts';
import type { ResolvedFile } from '../../tools/host/host-files.ts';
import type { RemoteWorkspace } from '../../tools/host/remote-workspace.ts';
import { AGENT_FRAMES, Channel, SANDBOX_FRAMES } from '../socket/channel.ts';
import { type AgentFrame, PROTOCOL_VERSION, type SandboxFrame, parseSandboxFrame } from '../socket/protocol.ts';
import { RemoteProgram } from './program/remote-program.ts';
import { RemoteFile } from './remote-file.ts';
import { RemoteJob } from './remote-job.ts';
import { SandboxRest, type SandboxRestOptions } from './sandbox-rest.ts';
import { RemoteSession, type SessionLink } from './session/remote-session.ts';

export interface SandboxConnectionOptions extends Pick<SandboxRestOptions, 'restAfterMs' | 'returnTimeoutMs'> {
  clock: Clock;
  /** Called when the sandbox connects (after its handshake) and when it disconnects, other than to rest. */
  onChange: (connected: boolean, reason: string) => void;
  /** Whether the sandbox may rest while it has no request; never when absent. */
  mayRest?: () => boolean;
}

/** How long a call waits for the sandbox container to connect again after a restart. */
const RECONNECT_TIMEOUT_MS = 10_000;
const HANDSHAKE_TIMEOUT_MS = 5_000;
/** Jobs and file tools that the sandbox container has at the same time. Further ones wait here, and sessions take turns. */
const MAX_STARTED = 48;
const SOCKET_MODE = 0o660;

interface PendingRequest {
  /** False when the frame is not valid in the present state of the request. */
  handleFrame(frame: SandboxFrame, bytes: number): boolean;
  connectionLost(reason: string): void;
}

/**
 * The agent container's side of the socket to the sandbox container. At most one connection; it may break and be opened again.
 *
 *   listening ──connect──▶ connected ──hello / welcome──▶ ready ──socket closes──▶ listening
 *                             └──no hello within 5 s, or a wrong frame──▶ listening
 *   ready ──a minute without a request / rest──▶ leaving ──connect, resting──▶ resting ──request / close──▶ listening
 *
 * Calls wait up to 10 s for the state `ready`, after a rest up to 30 s. When the connection breaks, every pending request fails. In the
 * state `resting` the launcher of the sandbox container has the connection; when that closes, it starts the process of the sandbox, which
 * connects.
 */
export class SandboxConnection implements Sandbox, SessionSandbox, RemoteWorkspace, AsyncDisposable {
  readonly #options: SandboxConnectionOptions;
  readonly #server: Server;
  readonly #pending = new Map<number, PendingRequest>();
  readonly #turns = new FairQueue(MAX_STARTED);
  readonly #sessions = new Set<RemoteSession>();
  readonly #rest: SandboxRest;
  #channel: Channel | undefined;
  readonly #handshakes = new Notifier();
  #connected = false;
  /** Calls that wait for the state `ready`. */
  #waiting = 0;
  #isLeaving = false;
  #isResting = false;
  #lastId = 0;

  private constructor(options: SandboxConnectionOptions) {
    this.#options = options;
    this.#server = createServer((socket) => this.#accept(socket));
    const { restAfterMs, returnTimeoutMs } = options;
    this.#rest = new SandboxRest({
      isIdle: () => this.#isIdle(),
      onRest: () => this.#leave(),
      onLost: () => this.#onLost(),
      restAfterMs,
      returnTimeoutMs,
    });
  }

  /** Listens on the Unix socket `path`. */
  static async listen(path: string, options: SandboxConnectionOptions): Promise<SandboxConnection> {
    const link = new SandboxConnection(options);
    await new Promise<void>((resolve, reject) => {
      link.#server.once('error', reject);
      link.#server.listen(path, resolve);
    });
    await chmod(path, SOCKET_MODE);
    return link;
  }

  get connected(): boolean {
    return this.#connected;
  }

  /** The process of the sandbox has ended until the next request. */
  get isResting(): boolean {
    return this.#isResting;
  }

  run(job: Job, host: HostCalls, op: CallOptions): Promise<JobOutcome> {
    return this.#turns.run(job.owner ?? '', () => this.#run(job, host, op));
  }

  async #run(job: Job, host: HostCalls, op: CallOptions): Promise<JobOutcome> {
    const channel = await this.#waitForConnection(op).catch(() => undefined);
    if (channel === undefined) {
      return op.signal.aborted
        ? failure('TEMPER_CANCELLED', 'the caller cancelled the call')
        : failure('TEMPER_SANDBOX_UNAVAILABLE', 'the sandbox container is not connected');
    }
    const id = this.#nextId();
    const { promise, resolve } = Promise.withResolvers<JobOutcome>();
    const onOutcome = (outcome: JobOutcome): void => {
      this.#forget(id);
      resolve(outcome);
    };
    const send = (frame: AgentFrame): boolean => channel.send(frame);
    const remote = new RemoteJob({ id, job, host, op, send, onOutcome });
    this.#pending.set(id, remote);
    using _cancellation = onAbort(op.signal, () => remote.cancel());
    remote.start();
    return await promise;
  }

  async openSession(options: SessionOptions, op: CallOptions): Promise<SessionRunner> {
    const channel = await this.#waitForConnection(op);
    let session = 0;
    const answer = this.#request(op, (id) => {
      session = id;
      return { type: 'open', id, options };
    });
    // A cancelled start may have succeeded meanwhile.
    await answer.catch((error: unknown) => {
      channel.send({ type: 'close', id: session });
      throw error;
    });
    const opened = new RemoteSession(session, options.limits, this.#options.clock, this.#linkOf(channel));
    this.#sessions.add(opened);
    return opened;
  }

  /** Starts a process of the agent program. Throws TEMPER_ACP_AGENT_FAILED and TEMPER_SANDBOX_UNAVAILABLE. */
  async startProgram(op: CallOptions): Promise<RemoteProgram> {
    const channel = await this.#waitForConnection(op);
    const id = this.#nextId();
    const send = (frame: AgentFrame): boolean => channel.send(frame);
    const program = new RemoteProgram({ id, send, onEnd: () => this.#forget(id) });
    this.#pending.set(id, program);
    using _cancellation = onAbort(op.signal, () => program.kill('the caller cancelled its start'));
    await program.start();
    return program;
  }

  callTool(name: string, input: Json, op: CallOptions): Promise<Json> {
    return this.#turns.run('tools', () => this.#request(op, (id) => ({ type: 'tool', id, name, input })));
  }

  readonly readFile: RemoteWorkspace['readFile'] = async (path, refuse, op) => {
    const text = await this.#request(op, (id) => ({ type: 'read', id, path }), refuse);
    if (typeof text === 'string') return text;
    throw new TemperError('TEMPER_FILE_FAILED', 'the sandbox returned a value that is not text');
  };

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#channel?.close('the agent container stops');
    this.#rest[Symbol.dispose]();
    await closed;
  }

  async #request(
    op: CallOptions,
    frame: (id: number) => AgentFrame,
    refuse?: (found: ResolvedFile) => string | undefined,
  ): Promise<Json> {
    const channel = await this.#waitForConnection(op);
    const id = this.#nextId();
    const { promise, resolve, reject } = Promise.withResolvers<Json>();
    const send = (outgoing: AgentFrame): boolean => channel.send(outgoing);
    const file = new RemoteFile({ id, send, resolve, reject, ...(refuse === undefined ? {} : { refuse }) });
    this.#pending.set(id, file);
    using _cancellation = onAbort(op.signal, () => file.cancel());
    try {
      if (!op.signal.aborted && !send(frame(id)))
        throw new TemperError('TEMPER_TOOL_INPUT_INVALID', 'the arguments are too large');
      return await promise;
    } finally {
      this.#forget(id);
    }
  }

  /** Waits for a connection: 10 s after one broke, 30 s after a rest. Throws TEMPER_SANDBOX_UNAVAILABLE. */
  async #waitForConnection(op: CallOptions): Promise<Channel> {
    this.#rest.touch();
    if (!this.#connected) await this.#waitForHandshake(op);
    if (this.#channel !== undefined && this.#connected && !op.signal.aborted) return this.#channel;
    throw new TemperError('TEMPER_SANDBOX_UNAVAILABLE', 'the sandbox container is not connected', { retry: 'backoff' });
  }

  async #waitForHandshake(op: CallOptions): Promise<void> {
    const limit = this.#rest.isAway ? this.#rest.returnTimeoutMs : RECONNECT_TIMEOUT_MS;
    this.#waiting += 1;
    if (this.#isResting) this.#channel?.close('a request needs the sandbox');
    try {
      await withTimeout(op, this.#options.clock, limit, ({ signal }) => this.#handshakes.wait(signal));
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Code of an open session keeps its values in the process of the sandbox. */
  #isIdle(): boolean {
    for (const session of this.#sessions) if (!session.isOpen) this.#sessions.delete(session);
    const isUsed = this.#pending.size > 0 || this.#waiting > 0 || this.#sessions.size > 0;
    return this.#connected && !isUsed && this.#options.mayRest?.() === true;
  }

  /** From here on requests wait for the next handshake. The sandbox closes the connection. */
  #leave(): void {
    this.#connected = false;
    this.#isLeaving = true;
    this.#channel?.send({ type: 'rest' } satisfies AgentFrame);
  }

  #onLost(): void {
    this.#channel?.close('the sandbox did not rest');
    this.#options.onChange(false, 'the sandbox did not come back');
  }

  /** Refuses a second connection: the sandbox container opens only one, so another one can only be an impostor. */
  #accept(socket: Socket): void {
    if (this.#isLeaving) this.#channel?.close('the sandbox rests');
    if (this.#channel !== undefined) {
      socket.destroy();
      return;
    }
    const listener = {
      onFrame: (frame: Json, bytes: number): boolean => this.#onFrame(channel, frame, bytes),
      onClosed: (reason: string): void => this.#onDisconnect(reason),
    };
    const channel: Channel = new Channel(socket, listener, { accepts: SANDBOX_FRAMES, sends: AGENT_FRAMES });
    this.#channel = channel;
    const timer = setTimeout(() => {
      if (!this.#connected && !this.#isResting) channel.close('no handshake in time');
    }, HANDSHAKE_TIMEOUT_MS);
    socket.once('close', () => clearTimeout(timer));
  }

  #onFrame(channel: Channel, value: Json, bytes: number): boolean {
    const frame = parseSandboxFrame(value);
    if (frame === undefined) return false;
    if (frame.type === 'resting') return this.#onResting(channel);
    // What a request left that was cancelled may arrive after the question to rest.
    if (frame.type !== 'hello') return this.#connected ? this.#dispatch(frame, bytes) : this.#isLeaving;
    const isExpected = !this.#connected && !this.#isLeaving && !this.#isResting;
    if (!isExpected || frame.version !== PROTOCOL_VERSION) return false;
    channel.send({ type: 'welcome', version: PROTOCOL_VERSION });
    this.#connected = true;
    this.#rest.ready(frame.canRest === true);
    this.#handshakes.notifyAll();
    this.#options.onChange(true, 'handshake complete');
    return true;
  }

  /** The launcher connects after the sandbox was asked to rest, and never otherwise. */
  #onResting(channel: Channel): boolean {
    if (!this.#rest.isAway || this.#isLeaving || this.#isResting) return false;
    this.#rest.arrived();
    this.#isResting = true;
    if (this.#waiting > 0) channel.close('a request needs the sandbox');
    return true;
  }

  /** The sandbox may still respond to a cancelled request; such frames are ignored. */
  #dispatch(frame: Exclude<SandboxFrame, { type: 'hello' | 'resting' }>, bytes: number): boolean {
    const pending = this.#pending.get(frame.id);
    return pending === undefined ? frame.id <= this.#lastId : pending.handleFrame(frame, bytes);
  }

  #onDisconnect(reason: string): void {
    const wasConnected = this.#connected;
    this.#channel = undefined;
    this.#connected = false;
    this.#isLeaving = false;
    this.#isResting = false;
    const affected = new Set(this.#pending.values());
    for (const request of affected) request.connectionLost(reason);
    if (this.#rest.isAway) this.#rest.awaitReturn();
    else if (wasConnected) this.#options.onChange(false, reason);
  }

  /** The connection as one session sees it: the session ends with it. */
  #linkOf(channel: Channel): SessionLink {
    return {
      get isOpen() {
        return channel.isOpen;
      },
      send: (frame) => channel.send(frame),
      add: (create) => {
        const run = create(this.#nextId());
        this.#pending.set(run.id, run);
        return run;
      },
      remove: (id) => this.#forget(id),
    };
  }

  #forget(id: number): void {
    this.#pending.delete(id);
    this.#rest.touch();
  }

  #nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }
}

function failure(code: SandboxFailure, message: string): JobOutcome & { ok: false } {
  return { ok: false, code, message, usage: { milliseconds: 0, heapBytes: 0, hostCalls: 0 } };
}
