import {
  Client,
  ProtocolError,
  UnsupportedProtocolVersionError,
  SdkError,
  SdkErrorCode,
  type StandardSchemaV1,
  type Tool,
  type Transport,
} from '@modelcontextprotocol/client';
import { abortable } from '../../../lib/async/abort.ts';
import { type CallOptions, withTimeout } from '../../../lib/call-options.ts';
import { type Clock, MAX_TIMER_MS } from '../../../lib/clock.ts';
import { isTemperError, messageOf, TemperError } from '../../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, parseUntrustedJson } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import {
  LISTED_LIMITS,
  type ListedTool,
  type ListingServer,
  readListedTools,
  type ToolsOfServer,
} from '../tools/listed-tool.ts';

/** Time in which a server starts, agrees on a revision of the protocol and lists its tools. */
const OPEN_TIMEOUT_MS = 30_000;
/** A server of an older revision may never answer the question for a newer one. */
const PROBE_TIMEOUT_MS = 5_000;
const MAX_PAGES = 64;
const MAX_CAUSES = 5;
const CLIENT = { name: 'temper', version: '1' };

/** The way to one server, and how it ended. */
export interface ServerChannel extends AsyncDisposable {
  readonly transport: Transport;
  /** Why nothing comes from the server any more, a string with untrusted text; undefined while the channel is open. */
  problem(): string | TemperError | undefined;
}

export interface ServerConnectionDeps {
  server: ListingServer;
  channel: ServerChannel;
  clock: Clock;
  /** The server has said that it knows no older revision of the protocol, so it has all the time to start. */
  isModern?: boolean;
}

/** The first revision without the handshake of the older ones. */
const MODERN_REVISION = '2026-07-28';

/** The schema of the SDK for lists refuses a whole list for one tool. */
const ANY_RESULT: StandardSchemaV1<unknown, JsonObject> = {
  '~standard': {
    version: 1,
    vendor: 'temper',
    validate: (value) => (isJsonObject(value) ? { value } : { issues: [{ message: 'the result is not an object' }] }),
  },
};

/** Temper checks outputs itself: the schemas of a server never reach a validator with regular expressions that can hang. */
const NO_VALIDATOR = {
  getValidator(): never {
    throw new TypeError('the client of an MCP server compiles no schema');
  },
};

/** A connection to an MCP server. It offers the server nothing: no sampling, no elicitation, no roots. */
export class ServerConnection implements AsyncDisposable {
  readonly #client: Client;
  readonly #deps: ServerConnectionDeps;
  #listed: ToolsOfServer | undefined;
  /** Counts the notifications about changed tools. */
  #changes = 0;

  private constructor(deps: ServerConnectionDeps) {
    this.#deps = deps;
    this.#client = new Client(CLIENT, {
      capabilities: {},
      versionNegotiation: deps.isModern
        ? { mode: { pin: MODERN_REVISION }, probe: { timeoutMs: OPEN_TIMEOUT_MS } }
        : { mode: 'auto', probe: { timeoutMs: PROBE_TIMEOUT_MS } },
      jsonSchemaValidator: NO_VALIDATOR,
      inputRequired: { autoFulfill: false },
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => this.#onListChanged() } },
    });
  }

  /** Connects and lists the tools. Closes the channel when that fails. Throws TEMPER_MCP_SERVER_FAILED. */
  static async open(deps: ServerConnectionDeps, op: CallOptions): Promise<ServerConnection> {
    const connection = new ServerConnection(deps);
    try {
      await withTimeout(op, deps.clock, OPEN_TIMEOUT_MS, (inner) =>
        abortable(connection.#connect(inner), inner.signal),
      );
      return connection;
    } catch (error) {
      const failure = connection.#failureOf(error, 'it does not answer as an MCP server');
      await connection[Symbol.asyncDispose]();
      throw failure;
    }
  }

  async #connect(op: CallOptions): Promise<void> {
    await this.#client.connect(this.#deps.channel.transport, { signal: op.signal, timeout: OPEN_TIMEOUT_MS });
    await this.tools(op);
  }

  get isOpen(): boolean {
    return this.#deps.channel.problem() === undefined && this.#client.transport !== undefined;
  }

  /** The tools of the server, as it lists them now. Throws TEMPER_MCP_SERVER_FAILED. */
  async tools(op: CallOptions): Promise<ToolsOfServer> {
    if (this.#listed !== undefined) return this.#listed;
    const changes = this.#changes;
    const listed = readListedTools(this.#deps.server, await this.#list(op));
    // A change during the listing may have come between two pages.
    if (changes === this.#changes) this.#listed = listed;
    return listed;
  }

  /** The result of a call, as the server gives it. Throws TEMPER_MCP_SERVER_FAILED, or TEMPER_TOOL_FAILED for a call that the server refuses. */
  async call({ remoteName, inputSchema }: ListedTool, input: JsonObject, op: CallOptions): Promise<JsonObject> {
    // The definition is the accepted one; without its output schema, the SDK checks nothing.
    const toolDefinition = { name: remoteName, inputSchema } as Tool;
    try {
      const options = { signal: op.signal, timeout: MAX_TIMER_MS, toolDefinition };
      return (await this.#client.callTool({ name: remoteName, arguments: input }, options)) as JsonObject;
    } catch (error) {
      const refusal = this.isOpen ? refusalIn(error) : undefined;
      if (refusal === undefined) throw this.#failureOf(error, 'the call failed');
      throw new TemperError('TEMPER_TOOL_FAILED', `MCP server "${this.#deps.server.name}" ${refusal}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#deps.channel[Symbol.asyncDispose]();
    await this.#client.close().catch(() => undefined);
  }

  #onListChanged(): void {
    this.#changes += 1;
    this.#listed = undefined;
  }

  async #list(op: CallOptions): Promise<Json[]> {
    if (this.#client.getServerCapabilities()?.tools === undefined) return [];
    const all: Json[] = [];
    let cursor: Json | undefined;
    for (let page = 0; page < MAX_PAGES && all.length <= LISTED_LIMITS.tools; page += 1) {
      const params = typeof cursor === 'string' ? { cursor } : {};
      const result = await this.#page(params, op);
      const { tools } = result;
      if (!Array.isArray(tools)) throw this.#failed('its list of tools is not a list');
      all.push(...tools.slice(0, LISTED_LIMITS.tools + 1));
      cursor = result['nextCursor'];
      if (typeof cursor !== 'string') return all;
    }
    return all;
  }

  async #page(params: JsonObject, { signal }: CallOptions): Promise<JsonObject> {
    try {
      const options = { signal, timeout: OPEN_TIMEOUT_MS };
      const result = await this.#client.request({ method: 'tools/list', params }, ANY_RESULT, options);
      // Without the members that can change a prototype, as the messages of a process are read.
      return parseUntrustedJson(JSON.stringify(result)) as JsonObject;
    } catch (error) {
      throw this.#failureOf(error, 'its tools cannot be listed');
    }
  }

  #failureOf(error: unknown, what: string): TemperError {
    const known = temperErrorIn(error);
    if (known !== undefined) return known;
    // The SDK closes the channel of a server that refuses the handshake.
    if (error instanceof ProtocolError) return this.#failed(`${what}: ${messageOf(error, 500)}`, error);
    const ended = this.#deps.channel.problem();
    if (ended !== undefined) return typeof ended === 'string' ? this.#failed(ended) : ended;
    return this.#failed(`${what}: ${messageOf(error, 500)}`, error);
  }

  #failed(reason: string, cause?: unknown): TemperError {
    const message = `MCP server "${this.#deps.server.name}": ${printable(reason, 1_000)}`;
    return new TemperError('TEMPER_MCP_SERVER_FAILED', message, cause === undefined ? {} : { cause });
  }
}

/**
 * Did the server refuse the handshake of the older revisions? One that starts slowly answers the question for the newer one after the client
 * has taken its silence for an older server.
 */
export function isModernServer(error: unknown): boolean {
  const { cause } = error as { cause?: unknown };
  return cause instanceof UnsupportedProtocolVersionError;
}

/** The SDK wraps the errors of a channel while it agrees on a revision of the protocol. */
function temperErrorIn(error: unknown): TemperError | undefined {
  let next = error;
  for (let depth = 0; depth < MAX_CAUSES && next instanceof Error; depth += 1) {
    if (isTemperError(next)) return next;
    next = next.cause;
  }
  return undefined;
}

/** Why the server gives no result although the connection works. */
function refusalIn(error: unknown): string | undefined {
  if (error instanceof ProtocolError) return `refused the call: ${printable(messageOf(error, 500), 500)}`;
  if (error instanceof SdkError && error.code === SdkErrorCode.UnsupportedResultType)
    return 'asks for input or a sample before it answers, and Temper gives it neither';
  return undefined;
}
