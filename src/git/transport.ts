import type { CallOptions } from '../lib/call-options.ts';

interface GitHttpRequest {
  /** Below the URL of the repository, without a slash in front. */
  readonly path: string;
  /** With a body it is a POST. */
  readonly body?: Uint8Array;
  /** The media type of the body. */
  readonly contentType?: string;
}

interface GitHttpResponse {
  readonly contentType: string;
  readonly bytes: Buffer;
}

/**
 * One request to a repository over smart HTTP, with a bounded body. Throws TEMPER_CONNECTION_FAILED and TEMPER_CONNECTION_UNAUTHORIZED, the
 * first also for every status but 200.
 */
export type GitTransport = (request: GitHttpRequest, op: CallOptions) => Promise<GitHttpResponse>;
