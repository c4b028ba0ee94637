import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { Op } from '../../lib/operation.ts';
import type { HostCalls, Job, Sandbox } from '../../sandbox/port.ts';
import { createFileTools } from '../../toolbox/toolbox.ts';
import type { CallContext, Tool } from '../../tools/contract.ts';
import { readBelow } from '../../tools/host-files.ts';
import { answerOf, valueOf } from '../socket/answers.ts';

import { type AgentFrame, agentFrame, PROTOCOL_VERSION, type SandboxFrame } from '../socket/protocol.ts';
import type { Answer } from '../socket/values.ts';

export interface SandboxServiceOptions {
  sandbox: Sandbox;
  /** Absolute folder of the agent's files. */
  workspace: string;
  clock: Clock;
}

/** Requests at the same time. An agent makes a handful. */
const REQUESTS = 64;
/** The agent withdraws what it no longer wants; this is for one that forgets. */
const LONGEST_MILLISECONDS = 3_600_000;

interface Request {
  withdraw: AbortController;
  /** Host calls waiting for the agent's answer. */
  calls: Map<number, (answer: Answer) => void>;
  /** A file was found, and the agent says whether it may be read. */
  verdict?: (refusal: string | undefined) => void;
}

/** Does what one agent asks over one connection: runs jobs and works on files. What any of it may touch the agent has decided. */
export class SandboxService {
  readonly #options: SandboxServiceOptions;
  readonly #tools: Record<string, Tool>;
  readonly #requests = new Map<number, Request>();
  readonly #send: (frame: SandboxFrame) => boolean;

  constructor(options: SandboxServiceOptions, send: (frame: SandboxFrame) => boolean) {
    const { workspace, clock } = options;
    this.#options = options;
    this.#send = send;
    this.#tools = createFileTools({
      workspace,
      clock,
      decide: () => ({ effect: 'Allow', rule: 'agent', reason: 'the agent has decided', risk: 'low' }),
    });
  }

  /** False when this is no frame of the protocol. */
  take(value: Json): boolean {
    const frame = agentFrame(value);
    if (frame === undefined) return false;
    switch (frame.type) {
      case 'welcome':
        return frame.version === PROTOCOL_VERSION;
      case 'run':
        return this.#begin(frame.id, (request) => this.#run(frame.id, frame.job, request));
      case 'tool':
        return this.#begin(frame.id, (request) => this.#callTool(frame, request));
      case 'read':
        return this.#begin(frame.id, (request) => this.#readFile(frame.id, frame.path, request));
      case 'verdict':
        this.#requests.get(frame.id)?.verdict?.(frame.refusal);
        return true;
      case 'answer':
        this.#requests.get(frame.id)?.calls.get(frame.call)?.(frame.answer);
        return true;
      case 'cancel':
        this.#requests.get(frame.id)?.withdraw.abort();
        return true;
    }
  }

  /** The agent is gone: nobody wants what is under way. */
  end(): void {
    for (const { withdraw, calls, verdict } of this.#requests.values()) {
      withdraw.abort();
      verdict?.('the agent is gone');
      for (const answer of calls.values()) answer(GONE);
    }
  }

  #begin(id: number, work: (request: Request) => Promise<void>): boolean {
    if (this.#requests.has(id) || this.#requests.size >= REQUESTS) return false;
    const request: Request = { withdraw: new AbortController(), calls: new Map() };
    this.#requests.set(id, request);
    void work(request).finally(() => this.#requests.delete(id));
    return true;
  }

  async #run(id: number, job: Job, request: Request): Promise<void> {
    let made = 0;
    const host: HostCalls = {
      call: async (api, input) => {
        if (api === 'crypto') throw new TemperError('TEMPER_HOST_CALL_DENIED', 'crypto is not answered by the host');
        made += 1;
        const call = made;
        const { promise, resolve } = Promise.withResolvers<Answer>();
        request.calls.set(call, resolve);
        if (request.withdraw.signal.aborted) resolve(GONE);
        else if (!this.#send({ type: 'call', id, call, api, input })) resolve(TOO_LARGE);
        return valueOf(await promise);
      },
    };
    const outcome = await this.#options.sandbox.run(job, host, this.#op(id, request));
    if (this.#send({ type: 'outcome', id, outcome })) return;
    const message = 'the result does not fit into a frame';
    const { usage } = outcome;
    this.#send({
      type: 'outcome',
      id,
      outcome: { ok: false, code: 'TEMPER_SANDBOX_OUTPUT_TOO_LARGE', message, usage },
    });
  }

  async #callTool({ id, name, input }: Extract<AgentFrame, { type: 'tool' }>, request: Request): Promise<void> {
    await this.#answer(id, async () => {
      const tool = Object.hasOwn(this.#tools, name) ? this.#tools[name] : undefined;
      if (tool === undefined) throw new TemperError('TEMPER_TOOL_NOT_FOUND', 'there is no such tool in the sandbox');
      const nowhere = { agent: '', namespace: '', session: '', rootMessage: '', stack: [] };
      const invoke: CallContext['invoke'] = () =>
        Promise.reject(new TemperError('TEMPER_INTERNAL', 'a file tool calls no other'));
      return tool.call(input, { ...nowhere, invoke, op: this.#op(id, request) });
    });
  }

  async #readFile(id: number, path: string, request: Request): Promise<void> {
    const { workspace } = this.#options;
    await this.#answer(id, () =>
      readBelow(path, workspace, [workspace], (found) => {
        const { promise, resolve } = Promise.withResolvers<string | undefined>();
        request.verdict = resolve;
        request.withdraw.signal.addEventListener('abort', () => resolve('the call was withdrawn'), { once: true });
        this.#send({ type: 'found', id, found });
        return promise;
      }),
    );
  }

  async #answer(id: number, work: () => Promise<Json>): Promise<void> {
    const answer = await answerOf(work);
    if (!this.#send({ type: 'result', id, answer })) this.#send({ type: 'result', id, answer: TOO_LARGE });
  }

  #op(id: number, request: Request): Op {
    const deadline = this.#options.clock.monotonic() + LONGEST_MILLISECONDS;
    return { signal: request.withdraw.signal, deadline, key: `request-${id}` };
  }
}

const GONE: Answer = { ok: false, code: 'TEMPER_CANCELLED', message: 'the agent is gone' };
const TOO_LARGE: Answer = { ok: false, code: 'TEMPER_FILE_FAILED', message: 'it does not fit into a frame' };
