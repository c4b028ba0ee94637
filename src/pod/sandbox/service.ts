import { onAbort } from '../../lib/async/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { HostCalls, Job, Sandbox } from '../../sandbox/port.ts';
import type { SessionSandbox } from '../../sandbox/session-port.ts';
import { gitRequests, type SandboxRequest } from '../../toolbox/git/clone/sandbox-requests.ts';
import { parseTerminalRequest, TERMINAL_REQUEST } from '../../toolbox/terminal/local-terminal.ts';
import type { Terminal } from '../../toolbox/terminal/port.ts';
import { createFileTools } from '../../toolbox/toolbox.ts';
import type { CallContext, Tool } from '../../tools/contract.ts';
import { readFileBelow } from '../../tools/host/host-files.ts';
import { resultOf, valueOrThrow } from '../socket/results.ts';
import { type AgentFrame, parseAgentFrame, PROTOCOL_VERSION, type SandboxFrame } from '../socket/protocol.ts';
import type { SocketResult } from '../socket/frame-fields.ts';
import { type PodProgram, SandboxPrograms } from './programs.ts';
import { type OpenCalls, SandboxSessions } from './sessions.ts';

export interface SandboxServiceOptions {
  sandbox: Sandbox & SessionSandbox;
  /** Absolute folder of the agent's files. */
  workspace: string;
  /** The agent program of the pod; absent in most pods. */
  program?: PodProgram | undefined;
  /** Runs programs for the agent container. */
  terminal: Terminal;
  /** The agent container needs nothing for now. */
  onRest: () => void;
  clock: Clock;
}

/** Limit of concurrent requests: what the agent container starts at the same time, and the reads of files that its jobs make. */
const MAX_REQUESTS = 512;
/** Upper bound for one request, in case the agent container never cancels it. */
const MAX_REQUEST_MS = 3_600_000;

interface ActiveRequest {
  abort: AbortController;
  /** Host calls that wait for the response of the agent container, by their number. */
  calls: Map<number, (answer: SocketResult) => void>;
  /** Calls of code that wait for the agent container. */
  openCalls: OpenCalls;
  /** Set while a file read waits for the decision of the agent container. Called with the reason for a refusal. */
  verdict?: (refusal: string | undefined) => void;
}

/** Handles the requests of the agent container over one connection: jobs, file tools and file reads. The agent container authorizes them. */
export class SandboxService {
  readonly #options: SandboxServiceOptions;
  readonly #tools: Record<string, Tool>;
  readonly #gitRequests: ReadonlyMap<string, SandboxRequest>;
  readonly #requests = new Map<number, ActiveRequest>();
  readonly #sessions: SandboxSessions;
  readonly #programs: SandboxPrograms;
  readonly #send: (frame: SandboxFrame) => boolean;

  constructor(options: SandboxServiceOptions, send: (frame: SandboxFrame) => boolean) {
    const { workspace, clock } = options;
    this.#options = options;
    this.#send = send;
    this.#gitRequests = gitRequests(options);
    this.#sessions = new SandboxSessions(options.sandbox, clock, send);
    this.#programs = new SandboxPrograms(options.program, send);
    this.#tools = createFileTools({
      workspace,
      clock,
      decide: () => ({ effect: 'Allow', rule: 'agent', reason: 'authorized by the agent container', risk: 'low' }),
    });
  }

  /** False when the frame is invalid. */
  handleFrame(value: Json): boolean {
    const frame = parseAgentFrame(value);
    if (frame === undefined) return false;
    switch (frame.type) {
      case 'welcome':
        return frame.version === PROTOCOL_VERSION;
      case 'run':
        return this.#start(frame.id, (request) => this.#run(frame.id, frame.job, request));
      case 'tool':
        return this.#start(frame.id, (request) => this.#callTool(frame, request));
      case 'read':
        return this.#start(frame.id, (request) => this.#readFile(frame.id, frame.path, request));
      case 'verdict':
        this.#requests.get(frame.id)?.verdict?.(frame.refusal);
        return true;
      case 'answer':
        this.#requests.get(frame.id)?.calls.get(frame.call)?.(frame.answer);
        return true;
      case 'cancel':
        this.#requests.get(frame.id)?.abort.abort();
        return true;
      default:
        return this.#handleSessionFrame(frame);
    }
  }

  #handleSessionFrame(frame: SessionAgentFrame): boolean {
    switch (frame.type) {
      case 'open':
        return this.#start(frame.id, (request) => this.#openSession(frame, request));
      case 'execute': {
        const { id, session, run } = frame;
        return this.#start(id, (request) =>
          this.#sessions.execute(id, session, run, request.openCalls, this.#op(id, request)),
        );
      }
      case 'reply':
        this.#requests.get(frame.id)?.openCalls.get(frame.call)?.(frame.answer);
        return true;
      case 'close':
        void this.#sessions.close(frame.id);
        return true;
      default:
        return this.#handleProcessFrame(frame);
    }
  }

  #handleProcessFrame(frame: ProcessFrame): boolean {
    switch (frame.type) {
      case 'start':
        return this.#start(frame.id, () => this.#answer(frame.id, () => this.#programs.start(frame.id)));
      case 'input':
        return this.#programs.input(frame.id, frame);
      case 'taken':
        return this.#programs.taken(frame.id, frame);
      case 'stop':
        this.#programs.stop(frame.id);
        return true;
      case 'rest':
        this.#options.onRest();
        return true;
    }
  }

  /** The connection closed: cancels all requests and ends all sessions. */
  cancelAll(): void {
    this.#sessions.endAll();
    this.#programs.endAll();
    for (const { abort, calls, verdict } of this.#requests.values()) {
      abort.abort();
      verdict?.('the agent container disconnected');
      for (const answer of calls.values()) answer(DISCONNECTED);
    }
  }

  #start(id: number, work: (request: ActiveRequest) => Promise<void>): boolean {
    if (this.#requests.has(id) || this.#requests.size >= MAX_REQUESTS) return false;
    const request: ActiveRequest = { abort: new AbortController(), calls: new Map(), openCalls: new Map() };
    this.#requests.set(id, request);
    void work(request).finally(() => this.#requests.delete(id));
    return true;
  }

  async #run(id: number, job: Job, request: ActiveRequest): Promise<void> {
    let lastCall = 0;
    const host: HostCalls = {
      call: async (api, input) => {
        const call = lastCall + 1;
        const { promise, resolve } = Promise.withResolvers<SocketResult>();
        if (request.abort.signal.aborted) resolve(DISCONNECTED);
        else if (!this.#send({ type: 'call', id, call, api, input })) resolve(TOO_LARGE);
        else {
          // The agent numbers the calls that it receives.
          lastCall = call;
          request.calls.set(call, resolve);
        }
        return valueOrThrow(await promise);
      },
    };
    const outcome = await this.#options.sandbox.run(job, host, this.#op(id, request));
    if (this.#send({ type: 'outcome', id, outcome })) return;
    const message = 'the result is too large for one frame';
    const { usage } = outcome;
    this.#send({
      type: 'outcome',
      id,
      outcome: { ok: false, code: 'TEMPER_SANDBOX_OUTPUT_TOO_LARGE', message, usage },
    });
  }

  async #openSession({ id, options }: Extract<AgentFrame, { type: 'open' }>, request: ActiveRequest): Promise<void> {
    await this.#answer(id, async () => {
      await this.#sessions.open(id, options, this.#op(id, request));
      return null;
    });
  }

  async #callTool({ id, name, input }: Extract<AgentFrame, { type: 'tool' }>, request: ActiveRequest): Promise<void> {
    await this.#answer(id, async () => {
      if (name === TERMINAL_REQUEST) {
        return this.#options.terminal.run(parseTerminalRequest(input), this.#op(id, request));
      }
      const ofGit = this.#gitRequests.get(name);
      if (ofGit !== undefined) return ofGit(input, this.#op(id, request));
      const tool = Object.hasOwn(this.#tools, name) ? this.#tools[name] : undefined;
      if (tool === undefined) throw new TemperError('TEMPER_TOOL_NOT_FOUND', 'the sandbox has no such tool');
      const noCaller = { agent: '', namespace: '', session: '', rootMessage: '', stack: [], origin: 'Agent' } as const;
      const invoke: CallContext['invoke'] = () =>
        Promise.reject(new TemperError('TEMPER_INTERNAL', 'a file tool calls no other tool'));
      return tool.call(input, { ...noCaller, invoke, op: this.#op(id, request) });
    });
  }

  async #readFile(id: number, path: string, request: ActiveRequest): Promise<void> {
    const { workspace } = this.#options;
    await this.#answer(id, () =>
      readFileBelow(path, workspace, [workspace], (found) => {
        const { promise, resolve } = Promise.withResolvers<string | undefined>();
        request.verdict = resolve;
        onAbort(request.abort.signal, () => resolve('the request was cancelled'));
        this.#send({ type: 'found', id, found });
        return promise;
      }),
    );
  }

  async #answer(id: number, work: () => Promise<Json>): Promise<void> {
    const answer = await resultOf(work);
    if (!this.#send({ type: 'result', id, answer })) this.#send({ type: 'result', id, answer: TOO_LARGE });
  }

  #op(id: number, request: ActiveRequest): CallOptions {
    const deadline = this.#options.clock.monotonic() + MAX_REQUEST_MS;
    return { signal: request.abort.signal, deadline, key: `request-${id}` };
  }
}

/** Of the processes of the agent program, and of the process of the sandbox. */
type ProcessFrame = Extract<AgentFrame, { type: 'start' | 'input' | 'taken' | 'stop' | 'rest' }>;
type SessionAgentFrame = Extract<AgentFrame, { type: 'open' | 'execute' | 'reply' | 'close' }> | ProcessFrame;

const DISCONNECTED: SocketResult = { ok: false, code: 'TEMPER_CANCELLED', message: 'the agent container disconnected' };
const TOO_LARGE: SocketResult = {
  ok: false,
  code: 'TEMPER_FILE_FAILED',
  message: 'the message is too large for one frame',
};
