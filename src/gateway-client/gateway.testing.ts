/** A gateway double for the tests of pods: the API of wire.ts over real HTTPS, state in memory, one agent. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { createRecordSessionStore } from '../agent/session/session-store.ts';
import type { ModelMessage } from '../models/port.ts';
import type { MemoryValue, SessionStore } from '../agent/ports.ts';
import type { AuditRecord } from '../audit/port.ts';
import type { MessageDraft } from '../bus/port.ts';
import { Notifier } from '../lib/async/notifier.ts';
import type { RefusedTool, ToolCandidate } from '../forge/types.ts';
import { systemClock } from '../lib/clock.ts';
import { isTemperError } from '../lib/errors.ts';
import { ulids } from '../lib/ids.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { memoryRecordStore } from '../lib/record-store.ts';
import type { Model } from '../models/port.ts';
import type { RegisteredTool, ToolUse } from '../tempering/types.ts';
import type { StampedEvent } from '../tools/events.ts';
import type { TlsIdentity } from './certificates.testing.ts';
import { InboxDouble, refused } from './inbox.testing.ts';
import { ReviewDouble } from './review.testing.ts';
import { ASSIGNMENT_VERSION_HEADER } from '../gateway-api/pod-api.ts';
import type {
  AppendRequest,
  Assignment,
  PodReports,
  DiscoveryRequest,
  DeliveryOutcome,
  MemoryWrite,
  NextMessageRequest,
  NoMessage,
  RejectedToolRequest,
  ReviewRequest,
  SendMessageRequest,
  SessionAppend,
  StreamRequest,
} from '../gateway-api/pod-api.ts';

interface DoubleRequest {
  parts: string[];
  query: URLSearchParams;
  body: unknown;
  /** The version of the assignment that a request for a message names. */
  known: string | undefined;
  op: CallOptions;
  response: ServerResponse;
}

/** A fault injected in place of the response. */
export type GatewayFault = { status: number; headers?: Record<string, string> } | 'reset' | undefined;

export class GatewayDouble implements AsyncDisposable {
  readonly inbox = new InboxDouble();
  readonly events: StampedEvent[] = [];
  readonly audit: AuditRecord[] = [];
  readonly uses: ToolUse[] = [];
  readonly sent: MessageDraft[] = [];
  /** Tokens the gateway accepts. */
  readonly tokens = new Set(['token-1']);
  /** Deliveries bring history and tools of the session. */
  deliversSessions = true;
  /** Number of accepted TLS connections. */
  connections = 0;
  /** Method and path, token and idempotency key of each request. */
  readonly requests: { what: string; token: string; key: string }[] = [];
  readonly sessions: SessionStore = createRecordSessionStore(memoryRecordStore(), systemClock, {
    agent: 'a',
    namespace: 'n',
  });
  fault: (what: string) => GatewayFault = () => undefined;
  /** The response to a search. */
  found: () => unknown = () => ({ capabilities: [], more: 0 });
  readonly searches: DiscoveryRequest[] = [];
  /** Tools of tiers Agent and Shared, listed after those of each session. */
  readonly promoted: RegisteredTool[] = [];
  readonly #memory = new Map<string, MemoryValue>();
  readonly #server: Server;
  readonly #model: Model;
  #assignment: Assignment | undefined;
  #review: ReviewDouble | undefined;
  readonly #changes = new Notifier();

  private constructor(identity: TlsIdentity, model: Model) {
    this.#model = model;
    this.#server = createServer({ key: identity.key, cert: identity.certificate }, (request, response) => {
      void this.#serve(request, response);
    });
    this.#server.on('secureConnection', () => (this.connections += 1));
  }

  static async start(identity: TlsIdentity, model: Model, port = 0): Promise<GatewayDouble> {
    const double = new GatewayDouble(identity, model);
    await new Promise<void>((resolve) => double.#server.listen(port, '127.0.0.1', resolve));
    return double;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Binds the pod, or changes its assignment. */
  async assign(assignment: Assignment): Promise<void> {
    this.#review ??= await ReviewDouble.open(this.#model, (event) => this.events.push(event));
    this.#review.assignment = assignment;
    this.#assignment = assignment;
    this.#changes.notifyAll();
  }

  /** Replaces the server certificate. */
  present(identity: TlsIdentity): void {
    this.#server.setSecureContext({ key: identity.key, cert: identity.certificate });
    this.#server.closeAllConnections();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.inbox.close();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'https://gateway');
    const token = request.headers.authorization?.replace('Bearer ', '') ?? '';
    const what = `${request.method} ${url.pathname}`;
    this.requests.push({ what, token, key: String(request.headers['idempotency-key'] ?? '') });
    const cancelled = new AbortController();
    response.on('close', () => cancelled.abort());
    try {
      const fault = this.fault(what);
      if (fault === 'reset') return void request.socket.destroy();
      if (fault !== undefined) return void response.writeHead(fault.status, fault.headers).end();
      if (!this.tokens.has(token)) throw refused(401, 'TEMPER_GATEWAY_FORBIDDEN', 'this token is not known');
      const body = request.method === 'POST' || request.method === 'PUT' ? await readJson(request) : undefined;
      const parts = url.pathname.split('/').slice(2).map(decodeURIComponent);
      const op: CallOptions = { signal: cancelled.signal, deadline: systemClock.monotonic() + 600_000, key: what };
      const known = request.headers[ASSIGNMENT_VERSION_HEADER]?.toString();
      const answer = await this.#answer(what, { parts, query: url.searchParams, body, known, op, response });
      if (response.headersSent) return;
      if (answer === undefined) response.writeHead(204).end();
      else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    } catch (error) {
      answerError(response, error);
    }
  }

  async #answer(what: string, call: DoubleRequest): Promise<unknown> {
    const [area, name] = call.parts;
    if (area === 'assignment') return this.#assignmentFor(call);
    if (area === 'messages') return name === 'next' ? this.#next(call) : this.#send(call.body as SendMessageRequest);
    if (area === 'deliveries') return this.#end(call.body as DeliveryOutcome);
    if (area === 'models') return this.#stream(call);
    if (area === 'forge') return this.#forge(name ?? '', call);
    if (area === 'sessions') return this.#session(what, call);
    if (area === 'memory') return this.#accessMemory(what, call);
    if (area === 'reports') return this.#acceptReports(call.body as PodReports);
    if (area === 'discovery') return this.#search(call.body as DiscoveryRequest);
    throw refused(404, 'TEMPER_NOT_FOUND', 'no such path');
  }

  async #assignmentFor({ query, op }: DoubleRequest): Promise<Assignment | undefined> {
    const known = query.get('version');
    const ended = AbortSignal.any([op.signal, AbortSignal.timeout(Number(query.get('wait')) * 1_000)]);
    while (!ended.aborted && (this.#assignment === undefined || this.#assignment.version === known)) {
      await this.#changes.wait(ended);
    }
    return this.#assignment?.version === known ? undefined : this.#assignment;
  }

  /** Aborts the wait for a message when the assignment has another version. */
  async #whenAssigned(known: string, waiting: AbortController): Promise<void> {
    while (!waiting.signal.aborted && this.#assignment?.version === known) await this.#changes.wait(waiting.signal);
    waiting.abort();
  }

  #changeOf(known: string): NoMessage {
    const assignment = this.#assignment;
    return assignment === undefined || assignment.version === known ? {} : { assignment };
  }

  async #end(outcome: DeliveryOutcome): Promise<undefined> {
    const { session } = this.inbox.messageOf(outcome.deliveryToken);
    if (outcome.action !== 'extend') {
      if (outcome.append !== undefined) await this.#append(session, outcome.append);
      if (outcome.reports !== undefined) this.#acceptReports(outcome.reports.batch);
    }
    return this.inbox.applyOutcome(outcome);
  }

  /** An equal append is stored once. */
  async #append(session: string, { afterSeq, items, tainted }: SessionAppend): Promise<number> {
    const { seq, items: stored } = await this.sessions.load(session);
    if (seq === afterSeq + items.length && JSON.stringify(stored.slice(afterSeq)) === JSON.stringify(items)) return seq;
    return this.sessions.append(session, afterSeq, items as ModelMessage[], tainted === true ? { tainted } : {});
  }

  async #next({ body, op, known }: DoubleRequest): Promise<unknown> {
    const { waitSeconds, restarted } = body as NextMessageRequest;
    if (restarted === true) this.inbox.expireAll();
    const waiting = new AbortController();
    if (known !== undefined) void this.#whenAssigned(known, waiting);
    const delivery = await this.inbox.next(waitSeconds, AbortSignal.any([op.signal, waiting.signal]));
    waiting.abort();
    if (delivery === undefined) return known === undefined ? undefined : this.#changeOf(known);
    if (!this.deliversSessions) return delivery;
    const { session } = delivery.message;
    const history = await this.sessions.load(session).catch(() => undefined);
    return { ...delivery, session: { ...(history && { history }), tools: this.#toolsOf(session) } };
  }

  #send({ deliveryToken, draft }: SendMessageRequest): unknown {
    this.inbox.messageOf(deliveryToken);
    this.sent.push(draft);
    return { id: ulids.next('msg'), duplicate: false };
  }

  async #stream({ body, op, response }: DoubleRequest): Promise<void> {
    const { deliveryToken, request, append } = body as StreamRequest;
    const { session } = this.inbox.messageOf(deliveryToken);
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.write('\n');
    try {
      for await (const event of this.#model.stream(request, op)) {
        if (event.type === 'end' && append !== undefined) await this.#append(session, append);
        response.write(`${JSON.stringify(event)}\n`);
      }
    } catch (error) {
      const { code, retry } = isTemperError(error) ? error : { code: 'TEMPER_INTERNAL', retry: 'never' };
      const line = { type: 'error', code, message: String(error), ...(retry === 'never' ? {} : { retry }) };
      response.write(`${JSON.stringify(line)}\n`);
    }
    // Sends the end in a separate packet, the usual case.
    await setImmediate();
    response.end();
  }

  async #forge(name: string, { body, op }: DoubleRequest): Promise<unknown> {
    const request = body as ReviewRequest & RejectedToolRequest;
    const { session, root } = this.inbox.messageOf(request.deliveryToken);
    const caller = { session, rootMessage: root, authorModel: request.authorModel ?? '' };
    if (name === 'review') return this.#review?.submit(request.candidate as ToolCandidate, caller, op);
    return this.#review?.reject(request.refused as RefusedTool, caller);
  }

  async #session(what: string, { parts, body }: DoubleRequest): Promise<unknown> {
    const [, id = '', part] = parts;
    if (part === 'tools') return this.#toolsOf(id);
    if (what.startsWith('DELETE')) return this.sessions.close(id);
    if (part !== 'items') return this.sessions.load(id);
    const { deliveryToken, ...append } = body as AppendRequest;
    this.inbox.messageOf(deliveryToken);
    return { seq: await this.#append(id, append) };
  }

  #toolsOf(session: string): RegisteredTool[] {
    return [...(this.#review?.tools(session) ?? []), ...this.promoted];
  }

  #accessMemory(what: string, { parts, query, body }: DoubleRequest): unknown {
    const key = parts[1];
    if (key === undefined) {
      const hits = [...this.#memory].filter(([name]) => name.includes(query.get('query') ?? ''));
      return hits.map(([name, entry]) => ({ key: name, ...entry }));
    }
    if (what.startsWith('PUT')) {
      const { value, tainted = false } = body as MemoryWrite;
      return void this.#memory.set(key, { value, tainted });
    }
    const entry = this.#memory.get(key);
    if (entry === undefined) throw refused(404, 'TEMPER_NOT_FOUND', 'no value is stored under this key');
    return entry;
  }

  #search(request: DiscoveryRequest): unknown {
    this.inbox.messageOf(request.deliveryToken);
    this.searches.push(request);
    return this.found();
  }

  #acceptReports({ events = [], audit = [], uses = [] }: PodReports): undefined {
    this.events.push(...events);
    this.audit.push(...audit);
    this.uses.push(...uses);
    return undefined;
  }
}

function answerError(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const [code, status] = isTemperError(error)
    ? [error.code, Number(error.details['status'] ?? 422)]
    : ['TEMPER_INTERNAL', 500];
  response.writeHead(status).end(JSON.stringify({ error: { code, message: String(error) } }));
}
