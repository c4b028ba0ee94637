import type { IncomingHttpHeaders } from 'node:http';
import { DELIVERY_TOKEN_HEADER } from '../../gateway-api/pod-api.ts';
import { TemperError } from '../../lib/errors.ts';

/** What a caller of the proxy shows: who it is, and the message that it works on. */
export interface ProxyCredentials {
  /** The token of the pod for the audience of the egress proxy. */
  token: string;
  deliveryToken: string;
}

const BEARER = /^Bearer ([A-Za-z0-9_.=-]{1,8192})$/;
const DELIVERY_TOKEN = /^[A-Za-z0-9_.-]{1,4096}$/;

/** Throws TEMPER_TOKEN_INVALID or TEMPER_DELIVERY_TOKEN_INVALID when a header is missing or has another form. */
export function credentialsOf(headers: IncomingHttpHeaders): ProxyCredentials {
  const token = BEARER.exec(headers['proxy-authorization'] ?? '')?.[1];
  if (token === undefined) {
    throw new TemperError('TEMPER_TOKEN_INVALID', 'the request has no valid token in the header proxy-authorization');
  }
  const deliveryToken = headers[DELIVERY_TOKEN_HEADER];
  if (typeof deliveryToken !== 'string' || !DELIVERY_TOKEN.test(deliveryToken)) {
    throw new TemperError(
      'TEMPER_DELIVERY_TOKEN_INVALID',
      `the request has no delivery token; send that of the current message as header ${DELIVERY_TOKEN_HEADER}`,
    );
  }
  return { token, deliveryToken };
}
