import { LRUCache } from 'lru-cache';
import { MAX_SIZES } from '../../../forge/request.ts';
import type { ArtifactVetting } from '../../../forge/static-gates.ts';
import { onAbort } from '../../../lib/async/abort.ts';
import { TokenBucket } from '../../../lib/async/token-bucket.ts';
import { sha256 } from '../../../lib/canonical.ts';
import type { Clock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { Json } from '../../../lib/json.ts';
import { isFailure, type StartThread, type ThreadFailure, VettingThread } from './thread.ts';

/** Vets artifacts of agents, and builds what the judge reads of them, outside the thread that serves requests. */
export interface ArtifactVetter {
  /** Throws TEMPER_RATE_LIMITED, TEMPER_OVERLOADED, and TEMPER_CANCELLED when the signal aborts. */
  vet(agentUid: string, artifact: Json, signal: AbortSignal): Promise<ArtifactVetting>;
}

export interface VettingPoolOptions {
  clock: Clock;
  startThread: StartThread;
  threads?: number;
  /** For one artifact. */
  timeoutMs?: number;
  /** Milliseconds of threads per agent: sustained per second, and at once. */
  share?: { perSecond: number; burst: number };
}

const DEFAULT_THREADS = 2;
const DEFAULT_TIMEOUT_MS = 5_000;
/** A tenth of one thread, and one artifact that takes its whole timeout. */
const DEFAULT_SHARE = { perSecond: 100, burst: 5_000 };
const MAX_WAITING_PER_AGENT = 4;
const MAX_WAITING = 64;
const RETRY_MS = 1_000;
const CACHED_RESULTS = 500;
/** Material for a judge has up to 128,000 characters. */
const MAX_CACHED_CHARACTERS = 16 * 1_024 * 1_024;
/** Counts for a result without material: its violations. */
const RESULT_CHARACTERS = 4_096;
const CACHED_AGENTS = 20_000;

interface Job {
  agentUid: string;
  text: string;
  digest: string;
  signal: AbortSignal;
  result: PromiseWithResolvers<ArtifactVetting>;
}

/**
 * A small pool of threads. Agents take turns, one artifact at a time each, so an agent with many artifacts waits for itself. Results are
 * cached by the digest of the artifact.
 */
export class VettingPool implements ArtifactVetter, AsyncDisposable {
  readonly #options: VettingPoolOptions;
  readonly #idle: VettingThread[];
  readonly #all: readonly VettingThread[];
  readonly #results = new LRUCache<string, ArtifactVetting>({
    max: CACHED_RESULTS,
    maxSize: MAX_CACHED_CHARACTERS,
    sizeCalculation: charactersOf,
  });
  readonly #shares = new LRUCache<string, TokenBucket>({
    max: CACHED_AGENTS,
    memoMethod: () => new TokenBucket(this.#options.clock, this.#options.share ?? DEFAULT_SHARE),
  });
  /** Waiting jobs by agent, in the order of their turns. */
  readonly #waiting = new Map<string, Job[]>();
  readonly #busy = new Set<string>();
  readonly #closed = new AbortController();
  #waitingCount = 0;

  constructor(options: VettingPoolOptions) {
    this.#options = options;
    const { threads = DEFAULT_THREADS, startThread } = options;
    this.#all = Array.from({ length: threads }, () => new VettingThread(startThread));
    this.#idle = [...this.#all];
  }

  async vet(agentUid: string, artifact: Json, signal: AbortSignal): Promise<ArtifactVetting> {
    const text = JSON.stringify(artifact);
    if (text.length > MAX_SIZES.artifact) return refusal(`has more than ${MAX_SIZES.artifact} characters`);
    const digest = sha256(text);
    const known = this.#results.get(digest);
    if (known !== undefined) return known;
    this.#assertShare(agentUid);
    const job: Job = { agentUid, text, digest, signal, result: Promise.withResolvers() };
    this.#enqueue(job);
    using _cancellation = onAbort(signal, () => this.#drop(job));
    this.#assign();
    return await job.result.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
    for (const job of Array.from(this.#waiting.values()).flat()) this.#drop(job);
    await Promise.all(this.#all.map((thread) => thread.close()));
  }

  #assertShare(agentUid: string): void {
    const waitMs = this.#shares.memo(agentUid).waitMs();
    if (waitMs > 0) throw rateLimited('the reviews of this agent took more time than its share', Math.ceil(waitMs));
    if ((this.#waiting.get(agentUid)?.length ?? 0) >= MAX_WAITING_PER_AGENT) {
      throw rateLimited(`${MAX_WAITING_PER_AGENT} reviews of this agent are waiting already`, RETRY_MS);
    }
    if (this.#waitingCount >= MAX_WAITING) {
      throw overloaded('too many reviews are waiting at this gateway');
    }
  }

  #enqueue(job: Job): void {
    const jobs = this.#waiting.get(job.agentUid);
    if (jobs === undefined) this.#waiting.set(job.agentUid, [job]);
    else jobs.push(job);
    this.#waitingCount += 1;
  }

  /** Removes a job that still waits; a running one ends by its signal. */
  #drop(job: Job): void {
    const jobs = this.#waiting.get(job.agentUid) ?? [];
    const index = jobs.indexOf(job);
    if (index < 0) return;
    this.#remove(job.agentUid, jobs, index);
    job.result.reject(cancelled());
  }

  #remove(agentUid: string, jobs: Job[], index: number): Job | undefined {
    const [job] = jobs.splice(index, 1);
    this.#waitingCount -= 1;
    this.#waiting.delete(agentUid);
    // Behind the other agents.
    if (jobs.length > 0) this.#waiting.set(agentUid, jobs);
    return job;
  }

  #assign(): void {
    // A list of its own: an agent whose turn it was goes to the end.
    for (const [agentUid, jobs] of Array.from(this.#waiting)) {
      if (this.#idle.length === 0) return;
      if (this.#busy.has(agentUid)) continue;
      const job = this.#remove(agentUid, jobs, 0);
      const thread = this.#idle.pop();
      if (job !== undefined && thread !== undefined) void this.#run(job, thread);
    }
  }

  async #run(job: Job, thread: VettingThread): Promise<void> {
    this.#busy.add(job.agentUid);
    const signal = AbortSignal.any([job.signal, this.#closed.signal]);
    const unready = await thread.ready(signal);
    const result = unready ?? (await this.#vetIn(thread, job, signal));
    this.#settle(job, unready === undefined || unready === 'cancelled' ? result : 'not-started');
    this.#busy.delete(job.agentUid);
    // The caller does not wait for the end of a thread that failed; its place in the pool does.
    if (isFailure(result)) await thread.close();
    this.#idle.push(thread);
    this.#assign();
  }

  async #vetIn(thread: VettingThread, { agentUid, text }: Job, signal: AbortSignal) {
    const { clock, timeoutMs = DEFAULT_TIMEOUT_MS } = this.#options;
    const startedAt = clock.monotonic();
    const result = await thread.vet(text, timeoutMs, signal);
    this.#shares.memo(agentUid).reserve(clock.monotonic() - startedAt);
    return result;
  }

  #settle({ digest, result }: Job, vetting: ArtifactVetting | ThreadFailure | 'not-started'): void {
    if (vetting === 'cancelled') result.reject(cancelled());
    else if (vetting === 'not-started') result.reject(overloaded('no thread could be started for the review'));
    else if (vetting === 'timeout') result.resolve(refusal('takes too long to check'));
    else if (vetting === 'failed') result.resolve(refusal('takes too much memory to check'));
    else {
      this.#results.set(digest, vetting);
      result.resolve(vetting);
    }
  }
}

function charactersOf({ material }: ArtifactVetting): number {
  return RESULT_CHARACTERS + (material?.ok === true ? material.text.length : 0);
}

/** Fails closed: a tool that cannot be checked is refused. */
function refusal(problem: string): ArtifactVetting {
  const message = `the tool ${problem}; make its source, schemas and tests smaller`;
  return { shape: [{ code: 'TEMPER_FORGE_SHAPE', message }], code: { violations: [], warnings: [] }, schemas: [] };
}

function rateLimited(problem: string, retry: number): TemperError {
  return new TemperError('TEMPER_RATE_LIMITED', `${problem}; retry after the stated time`, {
    retry: Math.max(retry, RETRY_MS),
  });
}

function cancelled(): TemperError {
  return new TemperError('TEMPER_CANCELLED', 'the review was cancelled');
}

function overloaded(problem: string): TemperError {
  return new TemperError('TEMPER_OVERLOADED', problem, { retry: RETRY_MS });
}
