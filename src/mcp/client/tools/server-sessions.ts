import { SingleFlight } from '../../../lib/async/single-flight.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { JsonObject } from '../../../lib/json.ts';
import type { ServerConnection } from '../connection/server-connection.ts';
import { standingOf } from './accepted-tools.ts';
import type { ListedTool } from './listed-tool.ts';

/** Connections that no call uses. The one that was used longest ago is closed first. */
const MAX_UNUSED = 4;

interface OpenConnection {
  connection: ServerConnection;
  calls: number;
}

/**
 * The connections of one agent to one server: each session of the agent has its own, so that no session reads through a server what another
 * one wrote. A connection opens with the first call, and again after it has failed.
 */
export class ServerSessions implements AsyncDisposable {
  readonly #accepted: readonly ListedTool[];
  readonly #open: (op: CallOptions) => Promise<ServerConnection>;
  /** By session, the one that was used longest ago first. */
  readonly #connections = new Map<string, OpenConnection>();
  readonly #opening = new SingleFlight<OpenConnection>();
  readonly #stopped = new AbortController();

  constructor(accepted: readonly ListedTool[], open: (op: CallOptions) => Promise<ServerConnection>) {
    this.#accepted = accepted;
    this.#open = open;
  }

  /** Throws TEMPER_MCP_TOOL_CHANGED for a tool that the server does not list as it was accepted, and what the connection throws. */
  async call(session: string, tool: ListedTool, input: JsonObject, op: CallOptions): Promise<JsonObject> {
    const open = await this.#opening.run(session, () => this.#connectionOf(session, op));
    open.calls += 1;
    try {
      const { tools } = await open.connection.tools(op);
      const listed = tools.find(({ name }) => name === tool.name);
      if (listed === undefined || standingOf(listed, this.#accepted) !== 'accepted') throw changed(tool, listed);
      return await open.connection.call(tool, input, op);
    } finally {
      open.calls -= 1;
      await this.#closeUnused();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort(new Error('the agent was stopped'));
    const all = [...this.#connections.values()];
    this.#connections.clear();
    for (const { connection } of all) await connection[Symbol.asyncDispose]();
  }

  async #connectionOf(session: string, op: CallOptions): Promise<OpenConnection> {
    const known = this.#connections.get(session);
    this.#connections.delete(session);
    if (known?.connection.isOpen === true) {
      this.#connections.set(session, known);
      return known;
    }
    await known?.connection[Symbol.asyncDispose]();
    // Another call of the session may wait for it too, so it does not end with this one.
    const { signal } = this.#stopped;
    const connection = await this.#open({ ...op, signal });
    if (signal.aborted) await connection[Symbol.asyncDispose]();
    signal.throwIfAborted();
    const open = { connection, calls: 0 };
    this.#connections.set(session, open);
    return open;
  }

  async #closeUnused(): Promise<void> {
    const unused = [...this.#connections].filter(([, { calls }]) => calls === 0);
    for (const [session, { connection }] of unused.slice(0, Math.max(0, unused.length - MAX_UNUSED))) {
      this.#connections.delete(session);
      await connection[Symbol.asyncDispose]();
    }
  }
}

function changed({ name }: ListedTool, listed: ListedTool | undefined): TemperError {
  const what =
    listed === undefined ? 'its server does not list it any more' : 'its server describes it differently now';
  return new TemperError(
    'TEMPER_MCP_TOOL_CHANGED',
    `"${name}" is not the tool that a user accepted: ${what}. A user can look at it with temper mcp tools, and accept it again`,
  );
}
