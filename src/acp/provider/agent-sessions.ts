import type { Clock } from '../../lib/clock.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import { AgentSession } from '../client/agent-session.ts';
import { createModelEndpoint, type FetchHandler } from '../endpoint/model-endpoint.ts';
import { createToolServer } from '../mcp/tool-server.ts';
import type { AgentProgram } from '../process/agent-command.ts';
import { AgentProcess } from '../process/agent-process.ts';
import type { MessageRun } from './message-run.ts';
import { TemperError } from '../../lib/errors.ts';

/** Most processes at the same time. The one that worked longest ago ends first. */
const MAX_PROCESSES = 4;
const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 30_000;

export interface AgentSessionsDeps {
  program: AgentProgram;
  clock: Clock;
  ids: IdGenerator;
}

/** A process of the agent, for one session of Temper. */
export interface OpenAgent {
  readonly session: AgentSession;
  /** The message that its model and tool calls belong to. */
  run: MessageRun | undefined;
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

  constructor(deps: AgentSessionsDeps) {
    this.#deps = deps;
  }

  /** The running process of the session that knows exactly these items and this context; undefined when a new one must start. */
  async find(session: string, known: number, context: string | undefined): Promise<OpenAgent | undefined> {
    const open = this.#open.get(session);
    if (open === undefined) return undefined;
    if (open.known !== known || open.context !== context || open.session.process.ended !== undefined) {
      await this.end(session);
      return undefined;
    }
    this.#open.delete(session);
    this.#open.set(session, open);
    return open;
  }

  /** Starts a process, after a wait that grows with each failure of the session. Throws TEMPER_ACP_AGENT_FAILED. */
  async start(session: string, signal: AbortSignal): Promise<OpenAgent> {
    await this.end(session);
    await this.#endOldest();
    const failures = this.#failures.get(session) ?? 0;
    if (failures > 0) {
      await this.#deps.clock.sleep(Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1)), signal);
    }
    let open: OpenAgent | undefined;
    const run = (): MessageRun => {
      if (open?.run !== undefined) return open.run;
      throw new TemperError('TEMPER_CANCELLED', 'no message is in work');
    };
    const process = await AgentProcess.start(this.#deps.program, this.#handler(run));
    open = { session: await AgentSession.open(process, signal), run: undefined, known: 0, context: undefined };
    this.#open.set(session, open);
    return open;
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
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#open.keys()].map((session) => this.end(session)));
  }

  async #endOldest(): Promise<void> {
    for (const [session, open] of this.#open) {
      if (this.#open.size < MAX_PROCESSES) return;
      if (open.run === undefined) await this.end(session);
    }
    if (this.#open.size < MAX_PROCESSES) return;
    throw new TemperError('TEMPER_ACP_AGENT_FAILED', `${MAX_PROCESSES} sessions have a process already`, {
      retry: 'backoff',
    });
  }

  /** What the process reaches: its model and its tools. */
  #handler(run: () => MessageRun): FetchHandler {
    const model = createModelEndpoint(
      (request, signal) => run().stream(request, signal),
      () => this.#deps.ids.next('call'),
    );
    const tools = createToolServer({
      list: () => run().tools(),
      call: (name, input) => run().call(name, input),
    });
    return (request) => (new URL(request.url).pathname === '/mcp' ? tools(request) : model(request));
  }
}
