import { messageOf } from '../../../lib/errors.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { JsonObject } from '../../../lib/json.ts';
import { httpChannel } from '../../../mcp/client/connection/http-channel.ts';
import { ServerConnection } from '../../../mcp/client/connection/server-connection.ts';
import type { ListedTool, ToolsOfServer } from '../../../mcp/client/tools/listed-tool.ts';
import type { CallingMessage } from '../../brokered/port.ts';
import type { OAuthTokens } from '../oauth-tokens.ts';
import { type ServerEndpoint, ServerRequests } from '../server-requests.ts';

/** Tenants share the memory and the processor of a gateway. */
const MAX_MESSAGE_BYTES = 2 * 1_024 * 1_024;
const STREAM_BYTES = { burst: 32 * 1_024 * 1_024, perSecond: 1_024 * 1_024 };

export interface GatewaySessionDeps {
  readonly clock: Clock;
  readonly tokens: OAuthTokens;
}

/** The MCP session of one session of an agent, at one server. */
export class GatewaySession implements AsyncDisposable {
  readonly #requests: ServerRequests;
  readonly #connection: ServerConnection;

  private constructor(requests: ServerRequests, connection: ServerConnection) {
    this.#requests = requests;
    this.#connection = connection;
  }

  /** Connects and lists the tools. Throws TEMPER_MCP_SERVER_FAILED, TEMPER_CONNECTION_*, TEMPER_FETCH_* and the errors of egress. */
  static async open(
    endpoint: ServerEndpoint,
    message: CallingMessage,
    { clock, tokens }: GatewaySessionDeps,
    op: CallOptions,
  ): Promise<GatewaySession> {
    const requests = new ServerRequests(endpoint, message, tokens);
    const { url, platform } = endpoint;
    const channel = httpChannel({ url: url.href }, undefined, {
      clock,
      fetch: (target, init) => requests.fetch(target, init),
      maxMessageBytes: MAX_MESSAGE_BYTES,
      streamBytes: STREAM_BYTES,
      inspect: (text) => requests.assertNoCredential(text),
    });
    try {
      // What a server of the platform gets stays in it: it has no network.
      const isElsewhere = platform === undefined;
      const server = { name: platform?.name ?? url.host, isElsewhere, isOfCapability: true };
      return new GatewaySession(requests, await ServerConnection.open({ server, channel, clock }, op));
    } catch (error) {
      await requests[Symbol.asyncDispose]();
      throw error;
    }
  }

  get isOpen(): boolean {
    return this.#connection.isOpen;
  }

  /** Requests from now on belong to this message. */
  use(message: CallingMessage): void {
    this.#requests.use(message);
  }

  tools(op: CallOptions): Promise<ToolsOfServer> {
    return this.#connection.tools(op);
  }

  /** The result of a call as the server gives it, which does not contain the credential of the connection. */
  async call(tool: ListedTool, input: JsonObject, op: CallOptions): Promise<JsonObject> {
    try {
      const result = await this.#connection.call(tool, input, op);
      // The text of the message was inspected with its escapes.
      this.#requests.assertNoCredential(result);
      return result;
    } catch (error) {
      this.#requests.assertNoCredential(messageOf(error));
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection[Symbol.asyncDispose]();
    await this.#requests[Symbol.asyncDispose]();
  }
}
