import { chmod } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { type Op, withTimeout } from '../../lib/operation.ts';
import type { HostCalls, Job, Outcome, Sandbox, SandboxFailure } from '../../sandbox/port.ts';
import type { FoundFile } from '../../tools/host-files.ts';
import type { RemoteWorkspace } from '../../tools/remote-workspace.ts';
import { Channel } from '../socket/channel.ts';
import { type AgentFrame, PROTOCOL_VERSION, type SandboxFrame, sandboxFrame } from '../socket/protocol.ts';
import { RemoteFile } from './remote-file.ts';
import { RemoteJob } from './remote-job.ts';

export interface SandboxLinkOptions {
  clock: Clock;
  /** Told whenever the sandbox comes or goes. */
  onChange: (connected: boolean, reason: string) => void;
}

/** How long a call waits for a sandbox that has just restarted, in milliseconds. */
const RECONNECT_MILLISECONDS = 10_000;
const HELLO_MILLISECONDS = 5_000;
const SOCKET_MODE = 0o660;

interface Pending {
  /** False when the frame is none that may come now. */
  take(frame: SandboxFrame, bytes: number): boolean;
  gone(reason: string): void;
}

/** The sandbox container as the agent container has it: one connection, which may break and come again. */
export class SandboxLink implements Sandbox, RemoteWorkspace, AsyncDisposable {
  readonly #options: SandboxLinkOptions;
  readonly #server: Server;
  readonly #pending = new Map<number, Pending>();
  #channel: Channel | undefined;
  #greeted = Promise.withResolvers<void>();
  #connected = false;
  #requests = 0;

  private constructor(options: SandboxLinkOptions) {
    this.#options = options;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** Listens at the path of a socket. */
  static async listen(path: string, options: SandboxLinkOptions): Promise<SandboxLink> {
    const link = new SandboxLink(options);
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

  async run(job: Job, host: HostCalls, op: Op): Promise<Outcome> {
    const channel = await this.#connection(op).catch(() => undefined);
    if (channel === undefined) {
      return op.signal.aborted
        ? failure('TEMPER_CANCELLED', 'the caller withdrew the call')
        : failure('TEMPER_SANDBOX_UNAVAILABLE', 'the sandbox container is not there');
    }
    return new Promise((resolve) => {
      const id = this.#nextId();
      const done = (outcome: Outcome): void => {
        this.#pending.delete(id);
        op.signal.removeEventListener('abort', withdraw);
        resolve(outcome);
      };
      const send = (frame: AgentFrame): boolean => channel.send(frame);
      const remote = new RemoteJob({ id, job, host, op, send, done });
      const withdraw = (): void => remote.withdraw();
      this.#pending.set(id, remote);
      op.signal.addEventListener('abort', withdraw, { once: true });
      remote.start();
    });
  }

  async callTool(name: string, input: Json, op: Op): Promise<Json> {
    return this.#ask(op, (id) => ({ type: 'tool', id, name, input }));
  }

  readonly readFile: RemoteWorkspace['readFile'] = async (path, refuse, op) => {
    const text = await this.#ask(op, (id) => ({ type: 'read', id, path }), refuse);
    if (typeof text === 'string') return text;
    throw new TemperError('TEMPER_FILE_FAILED', 'the sandbox gave no text');
  };

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#channel?.close('the agent stops');
    await closed;
  }

  async #ask(
    op: Op,
    frame: (id: number) => AgentFrame,
    refuse?: (found: FoundFile) => string | undefined,
  ): Promise<Json> {
    const channel = await this.#connection(op);
    const id = this.#nextId();
    const { promise, resolve, reject } = Promise.withResolvers<Json>();
    const send = (said: AgentFrame): boolean => channel.send(said);
    const file = new RemoteFile({ id, send, resolve, reject, ...(refuse === undefined ? {} : { refuse }) });
    const withdraw = (): void => file.withdraw();
    this.#pending.set(id, file);
    op.signal.addEventListener('abort', withdraw, { once: true });
    try {
      if (op.signal.aborted) withdraw();
      else if (!send(frame(id))) throw new TemperError('TEMPER_TOOL_INPUT_INVALID', 'the arguments are too large');
      return await promise;
    } finally {
      this.#pending.delete(id);
      op.signal.removeEventListener('abort', withdraw);
    }
  }

  /** The open connection, waited for a while. Throws TEMPER_SANDBOX_UNAVAILABLE. */
  async #connection(op: Op): Promise<Channel> {
    const { clock } = this.#options;
    if (!this.#connected) {
      await withTimeout(op, clock, RECONNECT_MILLISECONDS, ({ signal }) =>
        Promise.race([
          this.#greeted.promise,
          new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true })),
        ]),
      );
    }
    if (this.#channel !== undefined && this.#connected && !op.signal.aborted) return this.#channel;
    throw new TemperError('TEMPER_SANDBOX_UNAVAILABLE', 'the sandbox container is not there', { retry: 'backoff' });
  }

  /** Who came first stays: a second one can only be somebody who wants to be taken for the sandbox. */
  #accept(socket: Socket): void {
    if (this.#channel !== undefined) {
      socket.destroy();
      return;
    }
    const channel = new Channel(socket, {
      frame: (frame, bytes) => this.#take(channel, frame, bytes),
      gone: (reason) => this.#lose(reason),
    });
    this.#channel = channel;
    const patience = setTimeout(() => {
      if (!this.#connected) channel.close('the other side did not greet');
    }, HELLO_MILLISECONDS);
    socket.once('close', () => clearTimeout(patience));
  }

  #take(channel: Channel, value: Json, bytes: number): boolean {
    const frame = sandboxFrame(value);
    if (frame === undefined) return false;
    if (frame.type !== 'hello') return this.#connected && this.#hear(frame, bytes);
    if (this.#connected || frame.version !== PROTOCOL_VERSION) return false;
    channel.send({ type: 'welcome', version: PROTOCOL_VERSION });
    this.#connected = true;
    this.#greeted.resolve();
    this.#options.onChange(true, 'the sandbox is there');
    return true;
  }

  /** What was withdrawn may still be answered. */
  #hear(frame: Exclude<SandboxFrame, { type: 'hello' }>, bytes: number): boolean {
    const pending = this.#pending.get(frame.id);
    return pending === undefined ? frame.id <= this.#requests : pending.take(frame, bytes);
  }

  #lose(reason: string): void {
    const wasConnected = this.#connected;
    this.#channel = undefined;
    this.#connected = false;
    this.#greeted = Promise.withResolvers<void>();
    const lost = new Set(this.#pending.values());
    for (const pending of lost) pending.gone(reason);
    if (wasConnected) this.#options.onChange(false, reason);
  }

  #nextId(): number {
    this.#requests += 1;
    return this.#requests;
  }
}

function failure(code: SandboxFailure, message: string): Outcome & { ok: false } {
  return { ok: false, code, message, usage: { milliseconds: 0, heapBytes: 0, hostCalls: 0 } };
}
