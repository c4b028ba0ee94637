import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json, member, textAt } from '../lib/json.ts';
import { ApiError, type ApplyOptions, type KubeClient, type ObjectRef, type ResourceType } from './client.ts';
import { isKubeObject, listAll } from './list-pages.ts';
import { apiVersionOf, collectionPath, objectPath, withQuery } from './resource-path.ts';
import type { KubeObject } from './store.ts';
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
const ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

/** `isLeader` is asked right before every mutation is sent, again each time it is; without it every process may write. */
export function createKubeClient(transport: Transport, options: { isLeader?: () => boolean } = {}): KubeClient {
  const write = writerOf(transport, options.isLeader);
  return {
    ...readers(transport),
    async create(type, object, signal, { dryRun, manager } = {}) {
      const path = collectionPath(type, refOf(type, object).namespace);
      const query = { dryRun: dryRun === true ? 'All' : undefined, fieldManager: manager };
      return objectOf(await write({ method: 'POST', path: withQuery(path, query), body: object }, signal));
    },
    async apply(type, object, how, signal) {
      return objectOf(await write(applyRequest(type, object, how), signal));
    },
    async applyStatus(type, object, how, signal) {
      return objectOf(await write(applyRequest(type, object, how, 'status'), signal));
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
        if (isRefusal(error, NOT_FOUND)) return true;
        if (isRefusal(error, CONFLICT) && hasPrecondition) return false;
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

function readers(transport: Transport): Pick<KubeClient, 'get' | 'list' | 'mayI'> {
  return {
    async get(type, ref, signal) {
      try {
        return objectOf(await transport.send({ method: 'GET', path: objectPath(type, ref) }, signal));
      } catch (error) {
        if (isRefusal(error, NOT_FOUND)) return undefined;
        throw error;
      }
    },
    async list<T extends KubeObject>(type: ResourceType, selection: object, signal: AbortSignal) {
      const { items } = await listAll<T>(transport, type, selection, signal);
      return [...items];
    },
    // A POST that stores nothing: who does not lead may ask.
    async mayI({ verb, group, resource, namespace, subresource }, signal) {
      const body = {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: { verb, group, resource, namespace, subresource } },
      };
      const answer = await transport.send({ method: 'POST', path: ACCESS_REVIEWS, body }, signal);
      return member(member(answer, 'status'), 'allowed') === true;
    },
  };
}

type Send = Transport['send'];

function writerOf(transport: Transport, isLeader: (() => boolean) | undefined): Send {
  if (isLeader === undefined) return (request, signal) => transport.send(request, signal);
  return async (request, signal) => {
    const before = (): void => {
      if (isLeader()) return;
      const what = `${request.method} ${request.path}`;
      throw new TemperError('TEMPER_NOT_LEADER', `${what}: this process does not lead; nothing was sent`);
    };
    before();
    return transport.send({ ...request, before }, signal);
  };
}

function applyRequest(type: ResourceType, object: object, how: ApplyOptions, subresource?: 'status'): KubeRequest {
  const ref = refOf(type, object);
  const query = {
    fieldManager: how.manager,
    force: how.force === true ? true : undefined,
    dryRun: how.dryRun === true ? 'All' : undefined,
  };
  // An apply names what it applies, and a kind is known from its type.
  const body = { apiVersion: apiVersionOf(type), kind: type.kind, ...object };
  return { method: 'PATCH', path: withQuery(objectPath(type, ref, subresource), query), body, contentType: APPLY };
}

/** The name may be missing where the server makes one (`generateName`). */
function refOf(type: ResourceType, object: object): ObjectRef {
  const metadata = 'metadata' in object ? (object.metadata as { name?: string; namespace?: string }) : {};
  if (type.namespaced && (metadata.namespace ?? '') === '') {
    throw new RangeError(`${type.plural} ${metadata.name ?? ''}: metadata.namespace is missing`);
  }
  const { name = '', namespace } = metadata;
  return namespace === undefined ? { name } : { name, namespace };
}

/** The caller knows what kind it asked for; that it is an object with a name is checked. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the one place where an answer becomes the kind that was asked for
function objectOf<T extends KubeObject>(answer: Json): T {
  if (!isJsonObject(answer) || !isKubeObject(answer)) throw unreadable('object');
  return answer as Json & T;
}

function unreadable(what: string): TemperError {
  return new TemperError('TEMPER_KUBE_UNREACHABLE', `the ${what} in the answer is not one an API server sends`);
}

function isRefusal(error: unknown, status: number): boolean {
  return error instanceof ApiError && error.status === status;
}
