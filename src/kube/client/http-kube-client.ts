import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, member, textAt } from '../../lib/json.ts';
import {
  ApiError,
  type ApplyOptions,
  type KubeClient,
  type KubeReader,
  type ObjectRef,
  type ResourceType,
} from './kube-client.ts';
import { isKubeObject, listAll } from './list.ts';
import { apiVersionOf, collectionPath, objectPath, withQuery } from './resource-path.ts';
import type { KubeObject } from '../informer/store.ts';
import type { KubeRequest, Transport } from './transport.ts';

const APPLY = 'application/apply-patch+yaml';
const MERGE = 'application/merge-patch+json';
const NOT_FOUND = 404;
const CONFLICT = 409;

const SERVICE_ACCOUNTS: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'serviceaccounts',
  kind: 'ServiceAccount',
  namespaced: true,
};
const USER_REVIEWS = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
const ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

export interface KubeClientOptions {
  /** Called immediately before every attempt of a mutation, retries included; without it every process may write. */
  readonly isLeader?: () => boolean;
  /** The connections of its calls; default `calls`. */
  readonly connection?: NonNullable<KubeRequest['connection']>;
}

export function createKubeClient(shared: Transport, options: KubeClientOptions = {}): KubeClient {
  const { connection } = options;
  const transport: Pick<Transport, 'send'> =
    connection === undefined ? shared : { send: (request, signal) => shared.send({ ...request, connection }, signal) };
  const write = writerOf(transport, options.isLeader);
  return {
    ...readers(transport),
    async create(type, object, signal, { dryRun, manager } = {}) {
      const path = collectionPath(type, refOf(type, object).namespace);
      const query = { dryRun: dryRun === true ? 'All' : undefined, fieldManager: manager };
      return objectOf(await write({ method: 'POST', path: withQuery(path, query), body: object }, signal));
    },
    async apply(type, object, applyOptions, signal) {
      return objectOf(await write(applyRequest(type, object, applyOptions), signal));
    },
    async applyStatus(type, object, applyOptions, signal) {
      return objectOf(await write(applyRequest(type, object, applyOptions, 'status'), signal));
    },
    async patch(type, ref, patch, signal, { subresource } = {}) {
      const path = objectPath(type, ref, subresource);
      return objectOf(await write({ method: 'PATCH', path, body: patch, contentType: MERGE }, signal));
    },
    async delete(type, ref, { uid, resourceVersion, gracePeriodSeconds, propagation }, signal) {
      const preconditions = { uid, resourceVersion };
      const hasPrecondition = uid !== undefined || resourceVersion !== undefined;
      const body = {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        gracePeriodSeconds,
        propagationPolicy: propagation,
        ...(hasPrecondition ? { preconditions } : {}),
      };
      try {
        await write({ method: 'DELETE', path: objectPath(type, ref), body }, signal);
      } catch (error) {
        if (isStatus(error, NOT_FOUND)) return true;
        if (isStatus(error, CONFLICT) && hasPrecondition) return false;
        throw error;
      }
      return true;
    },
    async createToken(ref, { audiences, expirationSeconds }, signal) {
      const path = objectPath(SERVICE_ACCOUNTS, ref, 'token');
      const body = {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: { audiences, expirationSeconds },
      };
      const status = member(await write({ method: 'POST', path, body }, signal), 'status');
      const token = textAt(status, ['token']);
      const expirationTimestamp = textAt(status, ['expirationTimestamp']);
      if (token === '' || expirationTimestamp === '') throw unreadable('TokenRequest');
      return { token, expirationTimestamp };
    },
  };
}

function readers(transport: Pick<Transport, 'send'>): KubeReader {
  return {
    async get(type, ref, signal) {
      try {
        return objectOf(await transport.send({ method: 'GET', path: objectPath(type, ref) }, signal));
      } catch (error) {
        if (isStatus(error, NOT_FOUND)) return undefined;
        throw error;
      }
    },
    async list<T extends KubeObject>(type: ResourceType, selection: object, signal: AbortSignal) {
      const { items } = await listAll<T>(transport, type, selection, signal);
      return [...items];
    },
    // This POST stores nothing, so a process that is not the leader may send it too.
    async canI({ verb, group, resource, namespace, subresource }, signal) {
      const body = {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: { verb, group, resource, namespace, subresource } },
      };
      const review = await transport.send({ method: 'POST', path: ACCESS_REVIEWS, body }, signal);
      return member(member(review, 'status'), 'allowed') === true;
    },
    async whoAmI(signal) {
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
      const review = await transport.send({ method: 'POST', path: USER_REVIEWS, body }, signal);
      const uid = textAt(review, ['status', 'userInfo', 'uid']);
      return { username: textAt(review, ['status', 'userInfo', 'username']), uid: uid === '' ? undefined : uid };
    },
  };
}

type Send = Transport['send'];

function writerOf(transport: Pick<Transport, 'send'>, isLeader: (() => boolean) | undefined): Send {
  if (isLeader === undefined) return (request, signal) => transport.send(request, signal);
  return async (request, signal) => {
    const before = (): void => {
      if (isLeader()) return;
      const what = `${request.method} ${request.path}`;
      throw new TemperError('TEMPER_NOT_LEADER', `${what}: this process is not the leader; nothing was sent`);
    };
    before();
    return transport.send({ ...request, beforeAttempt: before }, signal);
  };
}

function applyRequest(type: ResourceType, object: object, options: ApplyOptions, subresource?: 'status'): KubeRequest {
  const ref = refOf(type, object);
  const query = {
    fieldManager: options.manager,
    force: options.force === true ? true : undefined,
    dryRun: options.dryRun === true ? 'All' : undefined,
  };
  // Server-side apply requires apiVersion and kind in the body.
  const body = { apiVersion: apiVersionOf(type), kind: type.kind, ...object };
  return { method: 'PATCH', path: withQuery(objectPath(type, ref, subresource), query), body, contentType: APPLY };
}

/** The name is '' when the server generates it (`generateName`). */
function refOf(type: ResourceType, object: object): ObjectRef {
  const metadata = 'metadata' in object ? (object.metadata as { name?: string; namespace?: string }) : {};
  if (type.namespaced && (metadata.namespace ?? '') === '') {
    throw new RangeError(`${type.plural} ${metadata.name ?? ''}: metadata.namespace is missing`);
  }
  const { name = '', namespace } = metadata;
  return namespace === undefined ? { name } : { name, namespace };
}

/** Checks that the response is an object with a name. The caller determines its kind. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the only cast from a response to the requested kind
function objectOf<T extends KubeObject>(body: Json): T {
  if (!isJsonObject(body) || !isKubeObject(body)) throw unreadable('object');
  return body as Json & T;
}

function unreadable(what: string): TemperError {
  return new TemperError('TEMPER_KUBE_UNREACHABLE', `the ${what} in the response of the API server is malformed`);
}

function isStatus(error: unknown, status: number): boolean {
  return error instanceof ApiError && error.status === status;
}
