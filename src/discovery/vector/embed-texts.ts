import type { CallOptions } from '../../lib/call-options.ts';

/** One vector per text, charged to an account. Throws the errors of `Model.embed`. */
export type EmbedTexts = (texts: string[], op: CallOptions) => Promise<Float32Array[]>;

/** Texts of one request: text-embeddings-inference accepts no more by default. */
export const MAX_BATCH = 32;

/** What vectors cost and how they fail, for metrics. */
export interface VectorObserver {
  /** A request to the embedder ended. `outcome` is `ok` or an error code. */
  embedded(part: EmbeddedPart, outcome: string, seconds: number): void;
  /** Texts of a query that were in the cache, and that were not. */
  cached(hits: number, misses: number): void;
  /** The index answered. `outcome` is `ok` or an error code. */
  queried(outcome: string, seconds: number): void;
}

/** For a process without metrics. */
export const UNOBSERVED: VectorObserver = {
  embedded: () => undefined,
  cached: () => undefined,
  queried: () => undefined,
};

export type EmbeddedPart = 'query' | 'entries';
