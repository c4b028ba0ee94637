import { AgentCard, type Message, type SendMessageRequest, type Task } from '@a2a-js/sdk';
import { type Transport, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { LegacyJsonRpcTransport } from '@a2a-js/sdk/compat/v0_3/client';
import type { CapabilitySpec } from '../../api/v1alpha1/capability.ts';
import { readBody } from '../../lib/async/read-body.ts';
import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import { type Json, jsonExcess, type JsonLimits, parseUntrustedJson } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';

type A2aBackend = NonNullable<NonNullable<CapabilitySpec['backend']>['a2a']>;

/** A Capability whose calls an agent elsewhere answers. */
export interface PeerTool {
  /** The name that agents call. */
  readonly name: string;
  readonly backend: A2aBackend;
  readonly url: URL;
}

/** How the requests of one call reach the agent elsewhere. */
export interface PeerRequests {
  /** Sends one request to the URL of the tool alone, with the credential of its connection. Throws TEMPER_CONNECTION_* and TEMPER_FETCH_*. */
  fetch(target: string, init: RequestInit): Promise<Response>;
  /** Throws TEMPER_TOOL_OUTPUT_INVALID for an answer with the credential. */
  assertNoCredential(answer: Json): void;
}

const MAX_BODY_BYTES = 1_048_576;
const LIMITS: JsonLimits = { values: 100_000, depth: 64 };
const CANCEL_TIMEOUT_MS = 5_000;
const MAX_MESSAGE = 1_000;

/**
 * The requests of one call at an agent elsewhere. The transports of the SDK convert messages; what arrives is counted, parsed and searched for
 * the credential before they get it.
 */
export class PeerClient {
  readonly #tool: PeerTool;
  readonly #requests: PeerRequests;
  readonly #transport: Promise<Transport>;

  constructor(tool: PeerTool, requests: PeerRequests) {
    this.#tool = tool;
    this.#requests = requests;
    const fetchImpl: typeof fetch = (target, init) =>
      this.#fetch(target instanceof Request ? target.url : target.toString(), init);
    const { href } = tool.url;
    this.#transport =
      tool.backend.version === '0.3'
        ? Promise.resolve(new LegacyJsonRpcTransport({ endpoint: href, fetchImpl }))
        : // The manifest says what a card would.
          new JsonRpcTransportFactory({ fetchImpl }).create(href, AgentCard.fromJSON({}));
  }

  send(request: SendMessageRequest, signal: AbortSignal): Promise<Message | Task> {
    return this.#call((transport) => transport.sendMessage(request, { signal }));
  }

  task(id: string, signal: AbortSignal): Promise<Task> {
    return this.#call((transport) => transport.getTask({ tenant: '', id, historyLength: 0 }, { signal }));
  }

  /** Best effort: the agent may have ended the task, or may not support it. */
  async cancel(id: string): Promise<void> {
    const signal = AbortSignal.timeout(CANCEL_TIMEOUT_MS);
    const request = { tenant: '', id, metadata: undefined };
    await this.#call((transport) => transport.cancelTask(request, { signal })).catch(() => undefined);
  }

  /** What the SDK says about an answer is untrusted text. */
  async #call<T>(work: (transport: Transport) => Promise<T>): Promise<T> {
    try {
      return await work(await this.#transport);
    } catch (error) {
      if (isTemperError(error)) throw error;
      const message = `"${this.#tool.name}": the agent answered with an error: ${printable(messageOf(error), MAX_MESSAGE)}`;
      throw new TemperError('TEMPER_TOOL_FAILED', message);
    }
  }

  async #fetch(target: string, init: RequestInit = {}): Promise<Response> {
    const response = await this.#requests.fetch(target, init);
    const { status, body } = response;
    const tooLarge = (): TemperError => this.#invalid(`it has more than ${MAX_BODY_BYTES} bytes`);
    const text = body === null ? '' : await readBody(body, MAX_BODY_BYTES, tooLarge);
    // The text of JSON has escapes; the value has none.
    this.#requests.assertNoCredential(text);
    if (status < 200 || status >= 300)
      throw new TemperError(
        'TEMPER_TOOL_FAILED',
        `"${this.#tool.name}" answered HTTP ${status}: ${printable(text, MAX_MESSAGE)}`,
      );
    const value = this.#parsed(text);
    this.#requests.assertNoCredential(value);
    return Response.json(value);
  }

  #parsed(text: string): Json {
    const excess = jsonExcess(text, LIMITS);
    if (excess !== undefined) throw this.#invalid(`it has more ${excess} than the limit of ${LIMITS[excess]}`);
    try {
      return parseUntrustedJson(text);
    } catch {
      throw this.#invalid('it cannot be parsed');
    }
  }

  #invalid(problem: string): TemperError {
    const message = `the answer of "${this.#tool.name}" is no JSON that Temper reads: ${problem}`;
    return new TemperError('TEMPER_TOOL_OUTPUT_INVALID', message);
  }
}
