import type { SessionToolSource } from '../engine/ports.ts';
import { asArtifact } from '../forge/artifact-validation.ts';
import { parseArtifact } from '../forge/parse-artifact.ts';
import type { AcceptedTool, ForgeCaller, ForgeResult, ForgeReview, SessionToolRegistry } from '../forge/types.ts';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Digest } from '../lib/canonical.ts';
import { type Json, member } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { isReplacedBy } from '../tempering/registry/visibility.ts';
import { sessionTool } from '../tempering/registry/registered-tool.ts';
import type { RegisteredTool, ToolScope } from '../tempering/types.ts';
import type { GatewayClient } from './gateway-client.ts';
import { requireList, requireObject, requireText } from '../gateway-api/response-parsing.ts';
import { sessionPath } from './stores.ts';
import {
  type DropToolRequest,
  POD_API_PATHS,
  type RejectedToolRequest,
  type ReviewRequest,
} from '../gateway-api/pod-api.ts';

export interface RemoteToolsOptions {
  client: GatewayClient;
  clock: Clock;
  deliveryToken: () => string;
  /** Names that forged tools must not use. */
  builtIn: ReadonlySet<string>;
  /** Sends the buffered reports, so that events of earlier gates precede those of the review. */
  flush: (op: CallOptions) => Promise<void>;
  /** Called with each tool of the gateway that this pod cannot use. */
  onUnusable: (name: string, problem: string) => void;
}

/** Milliseconds; a review includes the judge's model call. */
const REVIEW_TIMEOUT_MS = 300_000;

/** The forged tools of the current session: those the gateway lists when work starts, and those it accepts afterwards. */
export class RemoteTools implements SessionToolSource {
  readonly #options: RemoteToolsOptions;
  readonly #listeners = new Set<() => void>();
  #session = '';
  #tools: RegisteredTool[] = [];
  /** Dropped and replaced tools, which a list that was requested earlier still contains. */
  readonly #removed = new Set<Digest>();

  constructor(options: RemoteToolsOptions) {
    this.#options = options;
  }

  /** Makes the tools of this session the current ones: those that came with the message, or else those that the gateway lists. */
  async open(session: string, op: CallOptions, delivered?: RegisteredTool[]): Promise<void> {
    const listed = delivered ?? (await this.#list(session, op));
    this.#session = session;
    this.#tools = [];
    this.#removed.clear();
    for (const tool of listed) this.#add(tool);
    this.#notify();
  }

  /** Loads tools added since then, when one of these names is not known yet. Removes none: work in progress keeps its tools. */
  async addMissing(names: readonly string[], op: CallOptions): Promise<void> {
    const isKnown = (name: string): boolean => this.#tools.some(({ artifact }) => artifact.name === name);
    if (names.every(isKnown)) return;
    const session = this.#session;
    const listed = await this.#list(session, op);
    if (session !== this.#session) return;
    for (const tool of listed) if (!this.#tools.some(({ digest }) => digest === tool.digest)) this.#add(tool);
    this.#notify();
  }

  /**
   * Replaces the tools by those that the gateway lists now: a revoked tool leaves the session while a message is processed, and a newly
   * shared one joins it. Tools that the gateway accepts meanwhile stay.
   */
  async refresh(op: CallOptions): Promise<void> {
    const session = this.#session;
    if (session === '') return;
    const before = new Set(this.#tools.map(({ digest }) => digest));
    const listed = await this.#list(session, op);
    if (session !== this.#session) return;
    const accepted = this.#tools.filter(({ digest }) => !before.has(digest));
    this.#tools = [];
    for (const tool of [...listed, ...accepted])
      if (!this.#tools.some(({ digest }) => digest === tool.digest)) this.#add(tool);
    this.#notify();
  }

  async #list(session: string, op: CallOptions): Promise<RegisteredTool[]> {
    const answer = await this.#options.client.call({ method: 'GET', path: `${sessionPath(session)}/tools`, op });
    return toolsIn(answer).filter(({ digest }) => !this.#removed.has(digest));
  }

  resolve(_agent: string, _namespace: string, session: string): RegisteredTool[] {
    return session === this.#session ? [...this.#tools] : [];
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async drop(digest: Digest, _scope: ToolScope, op: CallOptions): Promise<void> {
    const body: DropToolRequest = { deliveryToken: this.#options.deliveryToken(), digest };
    await this.#options.client.call({ method: 'POST', path: POD_API_PATHS.forgeDrop, body, op });
    this.#remove((tool) => tool.digest === digest);
    this.#notify();
  }

  async closeSession({ session }: Pick<ToolScope, 'session'>): Promise<void> {
    if (session !== this.#session) return;
    this.#tools = [];
    this.#notify();
  }

  /** Idempotent by digest: the gateway accepts a tool that this session has already, so a request whose response was lost is repeated. */
  readonly review: ForgeReview = {
    submit: async (candidate, caller, op) => {
      const body: ReviewRequest = {
        deliveryToken: this.#options.deliveryToken(),
        candidate,
        authorModel: caller.authorModel,
      };
      await this.#options.flush(op);
      const answer = await this.#options.client.call({
        method: 'POST',
        path: POD_API_PATHS.forgeReview,
        body,
        op,
        timeoutMs: REVIEW_TIMEOUT_MS,
      });
      const result = resultIn(answer);
      if (result.accepted) this.#accept(result, candidate.digest, caller);
      return result;
    },
  };

  readonly keepRejected: SessionToolRegistry['recordRejected'] = async (refused, caller) => {
    const { client, clock } = this.#options;
    const body: RejectedToolRequest = {
      deliveryToken: this.#options.deliveryToken(),
      refused,
      authorModel: caller.authorModel,
    };
    const op: CallOptions = {
      signal: new AbortController().signal,
      deadline: clock.monotonic() + REVIEW_TIMEOUT_MS / 10,
      key: `${caller.rootMessage}/${refused.name}/${refused.digest ?? refused.gate}`.slice(0, 200),
    };
    await client.call({ method: 'POST', path: POD_API_PATHS.forgeRejected, body, op });
  };

  #accept(accepted: AcceptedTool, submitted: string, caller: ForgeCaller): void {
    if (accepted.digest !== submitted) {
      throw new TemperError(
        'TEMPER_GATEWAY_BAD_RESPONSE',
        'the gateway accepted a different tool than the one submitted',
      );
    }
    // The tool is known already when an earlier registration lost its response and the tools were listed since.
    if (this.#tools.some(({ digest }) => digest === accepted.digest)) return;
    const tool = sessionTool(accepted, caller, this.#options.clock.now().toISOString());
    this.#remove((other) => isReplacedBy(other, tool));
    this.#removed.delete(tool.digest);
    this.#add(tool);
    this.#notify();
  }

  #remove(matches: (tool: RegisteredTool) => boolean): void {
    for (const { digest } of this.#tools.filter(matches)) this.#removed.add(digest);
    this.#tools = this.#tools.filter((tool) => !matches(tool));
  }

  /** Skips a tool that cannot be used, so that the others stay available. */
  #add(tool: RegisteredTool): void {
    const problem = this.#problemOf(tool);
    const object = member(tool as unknown as Json, 'object');
    if (problem === undefined) this.#tools.push(tool);
    else this.#options.onUnusable(typeof object === 'string' ? object : 'a tool', problem);
  }

  #problemOf(tool: RegisteredTool): string | undefined {
    const artifact = asArtifact(member(tool as unknown as Json, 'artifact') ?? null);
    if (artifact === undefined) return 'its artifact is malformed';
    const open = parseArtifact(artifact);
    if ('malformed' in open) return open.malformed;
    if (open.digest !== tool.digest) return 'its digest differs from the listed digest';
    if (!tool.active) return 'it is not active';
    const { name } = artifact;
    if (this.#options.builtIn.has(name)) return 'its name belongs to a built-in tool';
    return this.#tools.some((other) => other.artifact.name === name) ? 'another tool has its name' : undefined;
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

export function toolsIn(answer: Json | undefined): RegisteredTool[] {
  return requireList(answer, 'tools') as unknown as RegisteredTool[];
}

function resultIn(answer: Json | undefined): ForgeResult {
  const result = requireObject(answer, 'review');
  if (result['accepted'] === true) {
    requireText(result, 'digest', 'review');
    requireObject(result['artifact'], 'review.artifact');
  } else {
    for (const key of ['name', 'gate', 'code', 'class', 'message']) requireText(result, key, 'review');
  }
  return result as unknown as ForgeResult;
}
