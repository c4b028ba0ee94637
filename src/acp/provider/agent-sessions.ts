import type { Clock } from '../../lib/clock.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import { AgentSession } from '../client/agent-session.ts';
import { createModelEndpoint, type FetchHandler } from '../endpoint/model-endpoint.ts';
import { createToolServer } from '../../mcp/server/tool-server.ts';
import type { ProgramHome } from '../../sandbox/confined/program-home.ts';
import { serveFetchChannel } from '../process/fetch-channel.ts';
import type { ProgramHost } from '../process/port.ts';
import { type KeptSession, KeptSessions } from './kept-sessions.ts';
import type { MessageRun } from './message-run.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';

const MAX_PROCESSES = 4;
const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 30_000;

export interface AgentSessionsDeps {
  host: ProgramHost;
  clock: Clock;
  ids: IdGenerator;
  /** Processes at the same time; 4 when absent. The one that worked longest ago ends first. */
  maxProcesses?: number;
}

/** The message that the model and tool calls of a process belong to. */
export interface AgentWork {
  run: MessageRun | undefined;
}

/** A process of the agent, for one session of Temper. */
export interface OpenAgent {
  readonly session: AgentSession;
  /** The process had the conversation when it started. */
  readonly isLoaded: boolean;
  readonly work: AgentWork;
  /** Items of the session that it knows. */
  known: number;
  /** The context that it got when it started. */
  context: string | undefined;
}

/** The processes of an agent: one per session, so that no session sees another one. */
export class AgentSessions implements AsyncDisposable {
  readonly #deps: AgentSessionsDeps;
  /** In the order of their last use. */
  readonly #open = new Map<string, OpenAgent>();
  /** Failures of a session since its last success. */
  readonly #failures = new Map<string, number>();
  readonly #kept = new KeptSessions();
  readonly #maxProcesses: number;
  /** Processes that do not work yet. */
  #starting = 0;

  constructor(deps: AgentSessionsDeps) {
    this.#deps = deps;
    this.#maxProcesses = deps.maxProcesses ?? MAX_PROCESSES;
  }

  /** The running process of the session that knows exactly these items and this context; undefined when a new one must start. */
  async find(session: string, known: number, context: string | undefined): Promise<OpenAgent | undefined> {
    const open = this.#open.get(session);
    if (open === undefined) return undefined;
    if (open.known !== known || open.context !== context) {
      await this.end(session);
      return undefined;
    }
    this.#open.delete(session);
    if (open.session.process.ended !== undefined) {
      await this.#kept.keep(session, open.session, open);
      return undefined;
    }
    this.#open.set(session, open);
    return open;
  }

  /**
   * Starts a process for a message, after a wait that grows with each failure of the session. It loads the session where the agent can and has
   * it at `state`. The message is in work already, because programs list their tools while they open a session. Throws TEMPER_ACP_AGENT_FAILED.
   */
  async start(
    session: string,
    state: { known: number; context: string | undefined } | undefined,
    run: MessageRun,
    signal: AbortSignal,
  ): Promise<OpenAgent> {
    if (state === undefined) await this.end(session);
    this.#starting += 1;
    try {
      await this.#endOldest();
      const open = await this.#startSoon(session, state, run, signal);
      this.#open.set(session, open);
      return open;
    } finally {
      this.#starting -= 1;
    }
  }

  async #startSoon(
    session: string,
    state: { known: number; context: string | undefined } | undefined,
    run: MessageRun,
    signal: AbortSignal,
  ): Promise<OpenAgent> {
    const failures = this.#failures.get(session) ?? 0;
    if (failures > 0) {
      await this.#deps.clock.sleep(Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1)), signal);
    }
    const kept = state === undefined ? undefined : await this.#kept.take(session, state);
    const loaded = kept === undefined ? undefined : await this.#load(kept, run, signal);
    return loaded ?? (await this.#begin(run, signal));
  }

  /** Undefined when the agent cannot go on with the session after all. */
  async #load({ home, id }: KeptSession, run: MessageRun, signal: AbortSignal): Promise<OpenAgent | undefined> {
    try {
      return await this.#begin(run, signal, { home, id });
    } catch (error) {
      if (signal.aborted || !isTemperError(error, 'TEMPER_ACP_AGENT_FAILED')) throw error;
      return undefined;
    }
  }

  async #begin(run: MessageRun, signal: AbortSignal, kept?: { home: ProgramHome; id: string }): Promise<OpenAgent> {
    const work: AgentWork = { run };
    const { host } = this.#deps;
    const process = await host.start(signal, kept?.home);
    const onViolation = (reason: string): void => process.kill(reason);
    serveFetchChannel(process.requests, this.#handler(work), onViolation, host.maxRequestBytes);
    const session = await AgentSession.open(process, signal, { load: kept?.id });
    return { session, isLoaded: kept !== undefined, work, known: 0, context: undefined };
  }

  succeeded(session: string): void {
    this.#failures.delete(session);
  }

  failed(session: string): void {
    this.#failures.set(session, (this.#failures.get(session) ?? 0) + 1);
  }

  async end(session: string): Promise<void> {
    const open = this.#open.get(session);
    this.#open.delete(session);
    await open?.session.process[Symbol.asyncDispose]();
    await this.#kept.drop(session);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#open.keys()].map((session) => this.end(session)));
    await this.#kept[Symbol.asyncDispose]();
  }

  async #endOldest(): Promise<void> {
    const isFull = (): boolean => this.#open.size + this.#starting > this.#maxProcesses;
    for (const [session, open] of this.#open) {
      if (!isFull()) return;
      if (open.work.run !== undefined) continue;
      this.#open.delete(session);
      await this.#kept.keep(session, open.session, open);
    }
    if (!isFull()) return;
    throw new TemperError('TEMPER_ACP_AGENT_FAILED', `${this.#maxProcesses} sessions have a process already`, {
      retry: 'backoff',
    });
  }

  /** What the process reaches: its model and its tools. */
  #handler(work: AgentWork): FetchHandler {
    let listed: readonly ToolDescriptor[] = [];
    const run = (): MessageRun => {
      if (work.run !== undefined) return work.run;
      throw new TemperError('TEMPER_CANCELLED', 'no message is in work');
    };
    const model = createModelEndpoint(
      (request, signal) => run().stream(request, signal),
      () => this.#deps.ids.next('call'),
    );
    const tools = createToolServer({
      // Between messages the list of the last one holds: some programs give up a server that has none.
      list: async () => {
        if (work.run !== undefined) listed = await work.run.tools();
        // Its results are texts, as the session keeps them.
        return listed.map(({ outputSchema: _schema, ...tool }) => tool);
      },
      call: (name, input) => run().call(name, input),
    });
    return (request) => (new URL(request.url).pathname === '/mcp' ? tools(request) : model(request));
  }
}
