import type { KubeObject } from '../informer/store.ts';

/** A resource of the API, e.g. `{group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true}`. */
export interface ResourceType {
  group: string;
  version: string;
  plural: string;
  kind: string;
  namespaced: boolean;
}

export interface ObjectRef {
  /** Absent for cluster-scoped resources. */
  namespace?: string;
  name: string;
}

/** An error response of the API server. Callers branch on `status` and `reason`, never on the message. */
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
  /** Take over fields of other managers; only for child objects that this controller owns alone. */
  force?: boolean;
  /** Store nothing; the response is the object that would be stored. */
  dryRun?: boolean;
}

interface DeleteOptions {
  /** Precondition: delete only the object with this uid. */
  uid?: string;
  /** Precondition: delete only this version of the object. */
  resourceVersion?: string;
  gracePeriodSeconds?: number;
  propagation?: 'Background' | 'Foreground' | 'Orphan';
}

/**
 * Calls that store nothing, so that any process may send them. Every call throws ApiError for an unsuccessful response except where a method
 * states otherwise, `TEMPER_KUBE_UNREACHABLE` or `TEMPER_TIMEOUT` when there is no usable response, and the reason of the signal when it aborts.
 */
export interface KubeReader {
  /** Undefined when the object does not exist. */
  get<T extends KubeObject>(type: ResourceType, ref: ObjectRef, signal: AbortSignal): Promise<T | undefined>;
  /** All objects of the resource that match, in every namespace unless one is given. Reads page by page, directly from the API server. */
  list<T extends KubeObject>(
    type: ResourceType,
    options: { namespace?: string; labelSelector?: string; fieldSelector?: string },
    signal: AbortSignal,
  ): Promise<T[]>;
  /** Whether RBAC allows this to the caller (SelfSubjectAccessReview). Only a hint: the real call may still be denied. */
  canI(
    attributes: { verb: string; group: string; resource: string; namespace?: string; subresource?: string },
    signal: AbortSignal,
  ): Promise<boolean>;
  /** The user that the API server takes the caller for (SelfSubjectReview). */
  whoAmI(signal: AbortSignal): Promise<UserInfo>;
}

export interface UserInfo {
  username: string;
  /** Undefined when the API server has none. */
  uid: string | undefined;
}

/** All calls to the API server. Mutations also throw `TEMPER_NOT_LEADER` when this process is not the leader; nothing was written then. */
export interface KubeClient extends KubeReader {
  /** POST. Not idempotent: throws ApiError `AlreadyExists` when the name is taken; the caller then checks the existing object. */
  create<T extends KubeObject>(
    type: ResourceType,
    object: object,
    signal: AbortSignal,
    options?: { dryRun?: boolean; manager?: string },
  ): Promise<T>;
  /** Server-side apply of the fields that the manager owns. Idempotent. Not for pods. */
  apply<T extends KubeObject>(
    type: ResourceType,
    object: object,
    options: ApplyOptions,
    signal: AbortSignal,
  ): Promise<T>;
  /** As `apply`, for the `status` subresource. */
  applyStatus<T extends KubeObject>(
    type: ResourceType,
    object: object,
    options: ApplyOptions,
    signal: AbortSignal,
  ): Promise<T>;
  /** JSON merge patch. With `metadata.resourceVersion` in the patch, throws ApiError `Conflict` when the object has another version. */
  patch<T extends KubeObject>(
    type: ResourceType,
    ref: ObjectRef,
    patch: object,
    signal: AbortSignal,
    options?: { subresource?: 'status' },
  ): Promise<T>;
  /** Resolves to true when the object is deleted or does not exist; to false when a precondition (uid, version) failed. */
  delete(type: ResourceType, ref: ObjectRef, options: DeleteOptions, signal: AbortSignal): Promise<boolean>;
  /** Issues a token of a ServiceAccount (TokenRequest). */
  createToken(
    ref: Required<ObjectRef>,
    request: { audiences: string[]; expirationSeconds: number },
    signal: AbortSignal,
  ): Promise<{ token: string; expirationTimestamp: string }>;
}
