import type { FastifyRequest, HTTPMethods } from 'fastify';
import type { Authenticator, UserIdentity } from '../../identity/types.ts';
import { TemperError } from '../../lib/errors.ts';
import { USER_TOKEN_HEADER } from '../../gateway-api/user-api.ts';
import type { InvalidTokenLimits } from './limits/invalid-tokens.ts';
import type { RequestContext } from './request-context.ts';
import type { RouteAccess } from './routes.ts';

const BEARER = /^Bearer ([A-Za-z0-9_.=-]{1,8192})$/;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,128}$/;

/** Throws RangeError for a route without `config.access`. */
export function assertRouteAccess(
  method: HTTPMethods | HTTPMethods[],
  url: string,
  access: RouteAccess | undefined,
): void {
  if (access === undefined) throw new RangeError(`route ${String(method)} ${url} has no config.access`);
}

export interface Authentication {
  identity: Authenticator;
  invalidTokens: InvalidTokenLimits;
}

/**
 * Authenticates the caller as the route requires and stores its identity in the request context. Throws the errors of `Identity`, and
 * TEMPER_RATE_LIMITED.
 */
export async function authenticate(
  request: FastifyRequest,
  context: RequestContext,
  { identity, invalidTokens }: Authentication,
): Promise<void> {
  const { address } = context;
  const limited = <T>(token: string, kind: 'pods' | 'users', verification: () => Promise<T>): Promise<T> =>
    identity.isVerified(token) ? verification() : invalidTokens.verify(address, kind, verification);
  switch (request.routeOptions.config.access) {
    case 'pod': {
      const token = bearerToken(request);
      context.pod = await limited(token, 'pods', () => identity.pod(token, address));
      return;
    }
    case 'warm-pod': {
      const token = bearerToken(request);
      context.podToken = await limited(token, 'pods', () => identity.podOrWarm(token, address));
      return;
    }
    case 'verifier': {
      const token = bearerToken(request);
      context.verifier = await limited(token, 'pods', () => identity.verifier(token, address));
      return;
    }
    case 'egress': {
      const token = bearerToken(request);
      context.egress = await limited(token, 'pods', () => identity.egress(token));
      return;
    }
    case 'user': {
      const token = userToken(request);
      const user = await limited(token, 'users', () => identity.user(token));
      assertOwnNamespace(request, user);
      context.user = user;
      return;
    }
    case 'peer': {
      const token = peerToken(request);
      context.peer = await limited(token, 'users', () => identity.peer(token));
      return;
    }
    case 'anyone':
      return;
    default:
      throw new TemperError('TEMPER_TOKEN_INVALID', 'forbidden: the route allows no caller');
  }
}

function assertOwnNamespace(request: FastifyRequest, user: UserIdentity): void {
  const { namespace } = request.params as { namespace?: string };
  if (namespace !== user.namespace) {
    throw new TemperError('TEMPER_POLICY_DENIED', 'the token belongs to another namespace than the path');
  }
}

function userToken(request: FastifyRequest): string {
  const token = request.headers[USER_TOKEN_HEADER];
  if (typeof token !== 'string') throw missingToken(USER_TOKEN_HEADER);
  return token;
}

/** The service proxy of the API server removes `Authorization`. */
function peerToken(request: FastifyRequest): string {
  return request.headers.authorization === undefined ? userToken(request) : bearerToken(request);
}

function bearerToken(request: FastifyRequest): string {
  const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
  if (token === undefined) throw missingToken('authorization');
  return token;
}

function missingToken(header: string): TemperError {
  return new TemperError('TEMPER_TOKEN_INVALID', `the request has no valid token in the header ${header}`);
}

/** Throws TEMPER_REQUEST_INVALID when the route needs an idempotency key and the header is missing or invalid. */
export function readIdempotencyKey(request: FastifyRequest, context: RequestContext): void {
  if (request.routeOptions.config.idempotent !== true) return;
  const key = request.headers['idempotency-key'];
  if (typeof key !== 'string' || !IDEMPOTENCY_KEY.test(key)) {
    const rule = 'is required: 1 to 128 printable ASCII characters without spaces';
    throw new TemperError('TEMPER_REQUEST_INVALID', `header Idempotency-Key ${rule}`);
  }
  context.idempotencyKey = key;
}
