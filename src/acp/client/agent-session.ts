import { Readable, Writable } from 'node:stream';
import {
  client,
  type ClientConnection,
  type ClientContext,
  methods,
  ndJsonStream,
  type NewSessionRequest,
  type PermissionOption,
  PROTOCOL_VERSION,
  RequestError,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
  type StopReason,
} from '@agentclientprotocol/sdk';
import { abortable } from '../../lib/async/abort.ts';
import { messageOf, TemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { ORIGIN } from '../process/origin.ts';
import type { ProgramProcess } from '../process/port.ts';
import { guardedStream } from './guarded-stream.ts';
import { isPermitted, readArguments, readText, workspacePath } from './session-requests.ts';

/** What an agent may ask for and say while it works on a message. */
export interface PromptHost {
  say(text: string): void;
  think(text: string): void;
  /** Names of the tools that the agent may call at this moment. */
  offered(): Promise<readonly string[]>;
  /** Makes one call with every check. */
  call(name: string, input: JsonObject): Promise<{ text: string; isError: boolean }>;
}

const MAX_MESSAGE_BYTES = 8 * 1_024 * 1_024;
/** Time from the start of the process until it takes a prompt. */
const OPEN_TIMEOUT_MS = 60_000;
/** Time in which an agent ends a prompt that is cancelled. */
const CANCEL_TIMEOUT_MS = 5_000;
/** Time in which a process exits that has closed its connection. */
const EXIT_TIMEOUT_MS = 1_000;
/** Of what an agent says and thinks about one prompt. */
const MAX_SAID_CHARACTERS = 1_000_000;

interface OpenOptions {
  /** The session that the agent has recorded in the home of the process; absent for a new one. */
  load?: string | undefined;
  cancelTimeoutMs?: number;
}

/** One session of the Agent Client Protocol with a process that serves no other session. */
export class AgentSession {
  readonly process: ProgramProcess;
  readonly #connection: ClientConnection;
  #id = '';
  #loadsSessions = false;
  #host: PromptHost | undefined;
  readonly #cancelTimeoutMs: number;
  #said = 0;

  private constructor(process: ProgramProcess, cancelTimeoutMs: number) {
    this.process = process;
    this.#cancelTimeoutMs = cancelTimeoutMs;
    const output = Writable.toWeb(process.stdin) as WritableStream<Uint8Array>;
    const input = Readable.toWeb(process.stdout) as unknown as ReadableStream<Uint8Array>;
    const stream = ndJsonStream(output, input, { maxMessageBytes: MAX_MESSAGE_BYTES });
    this.#connection = this.#app().connect(guardedStream(stream, (reason) => process.kill(reason)));
    void this.#connection.closed.then(() => this.#endSoon());
  }

  /** Throws TEMPER_ACP_AGENT_FAILED, after it has ended the process. */
  static async open(
    process: ProgramProcess,
    signal: AbortSignal,
    { load, cancelTimeoutMs = CANCEL_TIMEOUT_MS }: OpenOptions = {},
  ): Promise<AgentSession> {
    const session = new AgentSession(process, cancelTimeoutMs);
    try {
      const timeout = AbortSignal.any([signal, AbortSignal.timeout(OPEN_TIMEOUT_MS)]);
      await session.#untilEnded(session.#open(load), timeout);
      return session;
    } catch (error) {
      const failure = await session.#failure('does not start', error);
      await process[Symbol.asyncDispose]();
      throw failure;
    }
  }

  /** The name of the session at the agent. */
  get id(): string {
    return this.#id;
  }

  /** Whether a new process of the agent can go on with the session, in the home of this one. */
  get loadsSessions(): boolean {
    return this.#loadsSessions;
  }

  /** Gives the agent a text and waits until it has worked on it. Throws TEMPER_ACP_AGENT_FAILED. */
  async prompt(text: string, host: PromptHost, signal: AbortSignal): Promise<StopReason> {
    this.#host = host;
    this.#said = 0;
    const sent = this.#agent.request(methods.agent.session.prompt, {
      sessionId: this.#id,
      prompt: [{ type: 'text', text }],
    });
    try {
      const { stopReason } = await this.#untilEnded(this.#cancellable(sent, signal));
      return stopReason;
    } catch (error) {
      throw await this.#failure('failed', error);
    } finally {
      this.#host = undefined;
    }
  }

  /** A process that exits closes its connection first: its exit code says more. */
  async #failure(what: string, error: unknown): Promise<TemperError> {
    if (this.#connection.signal.aborted) await this.process.exited;
    const { ended, stderr } = this.process;
    const reason = ended ?? messageOf(error, 500);
    const words = stderr.trim() === '' ? '' : `; its standard error begins with: ${stderr.trim()}`;
    return new TemperError(
      'TEMPER_ACP_AGENT_FAILED',
      `the agent program ${what}: ${printable(`${reason}${words}`, 1_000)}`,
      {
        cause: error,
        retry: 'backoff',
      },
    );
  }

  #endSoon(): void {
    const timer = setTimeout(() => this.process.kill('it closed its connection'), EXIT_TIMEOUT_MS);
    void this.process.exited.then(() => clearTimeout(timer));
  }

  get #agent(): ClientContext {
    return this.#connection.agent;
  }

  async #open(load: string | undefined): Promise<void> {
    const { protocolVersion, agentCapabilities } = await this.#agent.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientInfo: { name: 'temper', version: '1' },
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: false },
    });
    if (protocolVersion !== PROTOCOL_VERSION)
      throw new Error(`it speaks version ${protocolVersion} of the protocol, and Temper ${PROTOCOL_VERSION}`);
    if (agentCapabilities?.mcpCapabilities?.http !== true)
      throw new Error('it has no MCP servers over HTTP (mcpCapabilities.http), so it could not call a tool');
    this.#loadsSessions = agentCapabilities.loadSession === true;
    const session: NewSessionRequest = {
      cwd: this.process.folder,
      mcpServers: [{ type: 'http', name: 'temper', url: `${ORIGIN}/mcp`, headers: [] }],
    };
    if (load !== undefined) {
      await this.#agent.request(methods.agent.session.load, { ...session, sessionId: load });
      this.#id = load;
      return;
    }
    const { sessionId } = await this.#agent.request(methods.agent.session.new, session);
    this.#id = sessionId;
  }

  /** After a cancellation the agent has a short time to end the prompt by itself. */
  async #cancellable<T>(sent: Promise<T>, signal: AbortSignal): Promise<T> {
    try {
      return await abortable(sent, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      await this.#agent.notify(methods.agent.session.cancel, { sessionId: this.#id });
      return this.#endedInTime(sent, error);
    }
  }

  async #endedInTime<T>(sent: Promise<T>, cancellation: unknown): Promise<T> {
    const timeout = AbortSignal.timeout(this.#cancelTimeoutMs);
    try {
      return await abortable(sent, timeout);
    } catch {
      this.process.kill('it did not end a cancelled prompt');
      throw cancellation;
    }
  }

  /** The result, or a rejection when the process ends first. */
  async #untilEnded<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
    const ended = this.process.exited.then(() => {
      throw new Error('the process has ended');
    });
    const first = Promise.race([work, ended]);
    return signal === undefined ? first : abortable(first, signal);
  }

  #app() {
    return client({ name: 'temper' })
      .onNotification(methods.client.session.update, ({ params }) => this.#update(params.update))
      .onRequest(methods.client.session.requestPermission, ({ params }) => this.#permission(params))
      .onRequest(methods.client.fs.readTextFile, async ({ params: { path, line, limit } }) => {
        const input = readArguments(workspacePath(path, this.process.folder), line, limit);
        return { content: readText(await this.#call('file_read', input)) };
      })
      .onRequest(methods.client.fs.writeTextFile, async ({ params: { path, content } }) => {
        await this.#call('file_write', { path: workspacePath(path, this.process.folder), text: content });
        return {};
      })
      .onRequest(methods.client.terminal.create, () => {
        throw RequestError.methodNotFound('terminal/create: Temper has no terminal tool');
      });
  }

  #update(update: SessionUpdate): void {
    const host = this.#host;
    if (host === undefined) return;
    if (update.sessionUpdate !== 'agent_message_chunk' && update.sessionUpdate !== 'agent_thought_chunk') return;
    if (update.content.type !== 'text') return;
    const { text } = update.content;
    this.#said += text.length;
    if (this.#said > MAX_SAID_CHARACTERS) {
      this.process.kill(`it said more than ${MAX_SAID_CHARACTERS} characters`);
      return;
    }
    if (update.sessionUpdate === 'agent_message_chunk') host.say(text);
    else host.think(text);
  }

  async #permission({ toolCall, options }: RequestPermissionRequest): Promise<RequestPermissionResponse> {
    const offered = (await this.#host?.offered()) ?? [];
    const wanted: readonly PermissionOption['kind'][] = isPermitted(toolCall, offered)
      ? ['allow_once', 'allow_always']
      : ['reject_once', 'reject_always'];
    const option = wanted
      .map((kind) => options.find((given) => given.kind === kind))
      .find((found) => found !== undefined);
    if (option === undefined) return { outcome: { outcome: 'cancelled' } };
    return { outcome: { outcome: 'selected', optionId: option.optionId } };
  }

  async #call(name: string, input: JsonObject): Promise<string> {
    if (this.#host === undefined) throw RequestError.internalError(undefined, 'no message is in work');
    const { text, isError } = await this.#host.call(name, input);
    if (isError) throw RequestError.internalError(undefined, text);
    return text;
  }
}
