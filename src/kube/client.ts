import type { KubeObject } from './store.ts';

/** A kind as the API serves it, e.g. `{group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true}`. */
export interface ResourceType {
  group: string;
  version: string;
  plural: string;
  kind: string;
  namespaced: boolean;
}

export interface ObjectRef {
  /** Absent for what has no namespace. */
  namespace?: string;
  name: string;
}

/** What goes wrong in a call of the API, told by the HTTP status and the reason alone, never by the text. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status. */
  readonly status: number;
  /** `Status.reason`: `AlreadyExists`, `Conflict`, `NotFound`, `Invalid`, `Forbidden`, `Expired`, … or ''. */
  readonly reason: string;
  readonly retryAfterSeconds: number | undefined;

  constructor(status: number, reason: string, message: string, retryAfterSeconds?: number) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export interface ApplyOptions {
  /** Field manager. */
  manager: string;
  /** Take fields over from other managers; for children that are ours alone. */
  force?: boolean;
  /** Nothing is stored: the answer is what would be. */
  dryRun?: boolean;
}

interface DeleteOptions {
  /** Only this very object. */
  uid?: string;
  resourceVersion?: string;
  gracePeriodSeconds?: number;
  propagation?: 'Background' | 'Foreground' | 'Orphan';
}

/**
 * Calls of the API server. Mutations are refused with `TEMPER_NOT_LEADER` when the process does not lead. Every call throws ApiError for
 * an answer that is no success, but for what is said below.
 */
export interface KubeClient {
  /** Undefined when there is none. */
  get<T extends KubeObject>(type: ResourceType, ref: ObjectRef, signal: AbortSignal): Promise<T | undefined>;
  list<T extends KubeObject>(
    type: ResourceType,
    options: { namespace?: string; labelSelector?: string; fieldSelector?: string },
    signal: AbortSignal,
  ): Promise<T[]>;
  /** POST. `AlreadyExists` is an ApiError like any other: who creates examines what is there. */
  create<T extends KubeObject>(
    type: ResourceType,
    object: object,
    signal: AbortSignal,
    options?: { dryRun?: boolean; manager?: string },
  ): Promise<T>;
  /** Server-side apply of the fields one owns. Not for pods. */
  apply<T extends KubeObject>(
    type: ResourceType,
    object: object,
    options: ApplyOptions,
    signal: AbortSignal,
  ): Promise<T>;
  applyStatus<T extends KubeObject>(
    type: ResourceType,
    object: object,
    options: ApplyOptions,
    signal: AbortSignal,
  ): Promise<T>;
  /** JSON merge patch; give `metadata.resourceVersion` to write only over the version one has read. */
  patch<T extends KubeObject>(
    type: ResourceType,
    ref: ObjectRef,
    patch: object,
    signal: AbortSignal,
    options?: { subresource?: 'status' },
  ): Promise<T>;
  /** What is not there is deleted. False when a precondition (uid, version) did not hold. */
  delete(type: ResourceType, ref: ObjectRef, options: DeleteOptions, signal: AbortSignal): Promise<boolean>;
  /** A token of a ServiceAccount (TokenRequest). */
  createToken(
    ref: Required<ObjectRef>,
    request: { audiences: string[]; expirationSeconds: number },
    signal: AbortSignal,
  ): Promise<{ token: string; expirationTimestamp: string }>;
  /** May the caller do this? (SelfSubjectAccessReview.) A hint: real calls prove. */
  mayI(
    attributes: { verb: string; group: string; resource: string; namespace?: string; subresource?: string },
    signal: AbortSignal,
  ): Promise<boolean>;
}
