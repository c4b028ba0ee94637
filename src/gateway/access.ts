import type { FastifyRequest, HTTPMethods } from 'fastify';
import type { Identity } from '../identity/types.ts';
import { TemperError } from '../lib/errors.ts';
import { TOKEN_HEADER } from '../remote/people.ts';
import type { Call } from './calls.ts';
import type { Access } from './routes.ts';

const BEARER = /^Bearer ([A-Za-z0-9_.=-]{1,8192})$/;
const KEY = /^[\x21-\x7e]{1,128}$/;

/** Throws RangeError for a route that does not say who may call it. */
export function requireAccess(method: HTTPMethods | HTTPMethods[], url: string, access: Access | undefined): void {
  if (access === undefined) throw new RangeError(`route ${String(method)} ${url} does not say who may call it`);
}

/** Finds out who calls, as far as the route asks, and writes it into the call. Throws what `Identity` throws. */
export async function authenticate(request: FastifyRequest, call: Call, identity: Identity): Promise<void> {
  switch (request.routeOptions.config.access) {
    case 'pod':
      call.pod = await identity.pod(bearerToken(request), sourceAddress(request));
      return;
    case 'warm-pod':
      call.podToken = await identity.podOrWarm(bearerToken(request), sourceAddress(request));
      return;
    case 'person':
      call.person = await person(request, identity);
      return;
    case 'anyone':
      return;
    default:
      throw new TemperError('TEMPER_TOKEN_INVALID', 'nobody may call this');
  }
}

async function person(request: FastifyRequest, identity: Identity) {
  const token = request.headers[TOKEN_HEADER];
  if (typeof token !== 'string') throw noToken(TOKEN_HEADER);
  const found = await identity.person(token);
  const { namespace } = request.params as { namespace?: string };
  if (namespace !== found.namespace) {
    throw new TemperError('TEMPER_POLICY_DENIED', 'the token is one of another namespace than the path names');
  }
  return found;
}

function bearerToken(request: FastifyRequest): string {
  const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
  if (token === undefined) throw noToken('authorization');
  return token;
}

function noToken(header: string): TemperError {
  return new TemperError('TEMPER_TOKEN_INVALID', `the request carries no token in ${header}`);
}

/** As the kernel says it; headers about other addresses are not believed. */
function sourceAddress(request: FastifyRequest): string {
  return request.socket.remoteAddress ?? '';
}

/** Throws TEMPER_REQUEST_INVALID when the route needs a key and there is none, or it is none. */
export function readIdempotencyKey(request: FastifyRequest, call: Call): void {
  if (request.routeOptions.config.idempotent !== true) return;
  const key = request.headers['idempotency-key'];
  if (typeof key !== 'string' || !KEY.test(key)) {
    const rule = 'must be given: 1 to 128 printable characters of ASCII without spaces';
    throw new TemperError('TEMPER_REQUEST_INVALID', `header Idempotency-Key ${rule}`);
  }
  call.idempotencyKey = key;
}
