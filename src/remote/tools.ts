import type { ToolStore } from '../engine/ports.ts';
import { asArtifact } from '../forge/artifact-form.ts';
import { openArtifact } from '../forge/open-artifact.ts';
import type { Accepted, ForgeCaller, ForgeResult, ForgeReview, SessionTools } from '../forge/types.ts';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import { type Json, member } from '../lib/json.ts';
import type { Op } from '../lib/operation.ts';
import { sessionTool } from '../tempering/registered-tool.ts';
import type { RegisteredTool } from '../tempering/types.ts';
import type { GatewayClient } from './gateway-client.ts';
import { listIn, objectIn, textIn } from './reading.ts';
import { sessionPath } from './stores.ts';
import { PATHS, type RejectedRequest, type ReviewRequest } from './wire.ts';

export interface RemoteToolsOptions {
  client: GatewayClient;
  clock: Clock;
  lease: () => string;
  /** Names no forged tool may have. */
  builtIn: ReadonlySet<string>;
  /** Sends what was claimed so far: a review is told of after the gates that came before it. */
  flush: (op: Op) => Promise<void>;
  /** Told of a tool of the gateway that cannot be used here. */
  onUnusable: (name: string, problem: string) => void;
}

/** A judge may take its time. */
const REVIEW_MILLISECONDS = 300_000;

/** The forged tools of the session that is worked on: what the gateway lists when work begins, and what is accepted meanwhile. */
export class RemoteTools implements ToolStore {
  readonly #options: RemoteToolsOptions;
  readonly #listeners = new Set<() => void>();
  #session = '';
  #tools: RegisteredTool[] = [];

  constructor(options: RemoteToolsOptions) {
    this.#options = options;
  }

  /** Makes the tools of this session the ones that are seen. */
  async open(session: string, op: Op): Promise<void> {
    const listed = await this.#listed(session, op);
    this.#session = session;
    this.#tools = [];
    for (const tool of listed) this.#add(tool);
    this.#tell();
  }

  /** Adds what came since, when one of these names is not seen yet. Takes nothing away: the work goes on with what it has. */
  async addMissing(names: readonly string[], op: Op): Promise<void> {
    const seen = (name: string): boolean => this.#tools.some(({ artifact }) => artifact.name === name);
    if (names.every(seen)) return;
    const session = this.#session;
    const listed = await this.#listed(session, op);
    if (session !== this.#session) return;
    for (const tool of listed) if (!this.#tools.some(({ digest }) => digest === tool.digest)) this.#add(tool);
    this.#tell();
  }

  async #listed(session: string, op: Op): Promise<RegisteredTool[]> {
    const answer = await this.#options.client.call({ method: 'GET', path: `${sessionPath(session)}/tools`, op });
    return listIn(answer, 'tools') as unknown as RegisteredTool[];
  }

  resolve(_agent: string, _namespace: string, session: string): RegisteredTool[] {
    return session === this.#session ? [...this.#tools] : [];
  }

  changes(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async closeSession(session: string): Promise<void> {
    if (session !== this.#session) return;
    this.#tools = [];
    this.#tell();
  }

  readonly review: ForgeReview = {
    submit: async (candidate, caller, op) => {
      const body: ReviewRequest = { lease: this.#options.lease(), candidate, authorModel: caller.authorModel };
      await this.#options.flush(op);
      const answer = await this.#options.client.call({
        method: 'POST',
        path: PATHS.forgeReview,
        body,
        op,
        patience: REVIEW_MILLISECONDS,
      });
      const result = resultIn(answer);
      if (result.accepted) this.#accept(result, candidate.digest, caller);
      return result;
    },
  };

  readonly keepRejected: SessionTools['keepRejected'] = async (refused, caller) => {
    const { client, clock } = this.#options;
    const body: RejectedRequest = { lease: this.#options.lease(), refused, authorModel: caller.authorModel };
    const op: Op = {
      signal: new AbortController().signal,
      deadline: clock.monotonic() + REVIEW_MILLISECONDS / 10,
      key: `${caller.rootMessage}/${refused.name}/${refused.digest ?? refused.gate}`.slice(0, 200),
    };
    await client.call({ method: 'POST', path: PATHS.forgeRejected, body, op });
  };

  #accept(accepted: Accepted, submitted: string, caller: ForgeCaller): void {
    if (accepted.digest !== submitted) {
      throw new TemperError('TEMPER_GATEWAY_ANSWER', 'the gateway accepted another tool than the one submitted');
    }
    this.#add(sessionTool(accepted, caller, this.#options.clock.now().toISOString()));
    this.#tell();
  }

  /** One tool that cannot be opened must not take the others out of sight. */
  #add(tool: RegisteredTool): void {
    const problem = this.#problemOf(tool);
    const object = member(tool as unknown as Json, 'object');
    if (problem === undefined) this.#tools.push(tool);
    else this.#options.onUnusable(typeof object === 'string' ? object : 'a tool', problem);
  }

  #problemOf(tool: RegisteredTool): string | undefined {
    const artifact = asArtifact(member(tool as unknown as Json, 'artifact') ?? null);
    if (artifact === undefined) return 'its artifact has not the form of one';
    const open = openArtifact(artifact);
    if ('malformed' in open) return open.malformed;
    if (open.digest !== tool.digest) return 'it does not have the digest it is listed with';
    if (!tool.active) return 'it is not active';
    const { name } = artifact;
    if (this.#options.builtIn.has(name)) return 'its name is that of a built-in tool';
    return this.#tools.some((other) => other.artifact.name === name) ? 'another tool has its name' : undefined;
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}

function resultIn(answer: Json | undefined): ForgeResult {
  const result = objectIn(answer, 'review');
  if (result['accepted'] === true) {
    textIn(result, 'digest', 'review');
    objectIn(result['artifact'], 'review.artifact');
  } else {
    for (const key of ['name', 'gate', 'code', 'class', 'message']) textIn(result, key, 'review');
  }
  return result as unknown as ForgeResult;
}
