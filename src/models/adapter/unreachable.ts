import { messageOf, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

const CHECK_NAME = 'check the host name in baseUrl and the DNS of this machine';
const CHECK_CONNECTION = 'check baseUrl, the network, and that the server runs';
const CHECK_TLS = 'check the scheme of baseUrl, and name the CA of the server in NODE_EXTRA_CA_CERTS if it is private';
const CHECK_PORT = 'fetch connects to no such port; let the server listen on another port, and name it in baseUrl';
const CHECK_SERVER =
  'the server closed the connection before it answered; check the scheme and the port of baseUrl, and the log of the server';

/** Errors of Node before an answer: no connection exists, or the server closed it. */
const NEXT_STEPS: Readonly<Record<string, string>> = {
  ENOTFOUND: CHECK_NAME,
  EAI_AGAIN: CHECK_NAME,
  ECONNREFUSED: CHECK_CONNECTION,
  EHOSTUNREACH: CHECK_CONNECTION,
  ENETUNREACH: CHECK_CONNECTION,
  EADDRNOTAVAIL: CHECK_CONNECTION,
  ETIMEDOUT: CHECK_CONNECTION,
  UND_ERR_CONNECT_TIMEOUT: CHECK_CONNECTION,
  UND_ERR_SOCKET: CHECK_SERVER,
  ECONNRESET: CHECK_SERVER,
  EPIPE: CHECK_SERVER,
  EPROTO: CHECK_TLS,
  DEPTH_ZERO_SELF_SIGNED_CERT: CHECK_TLS,
  SELF_SIGNED_CERT_IN_CHAIN: CHECK_TLS,
  UNABLE_TO_GET_ISSUER_CERT: CHECK_TLS,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: CHECK_TLS,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: CHECK_TLS,
  HOSTNAME_MISMATCH: CHECK_TLS,
};
const TLS_PREFIXES = ['CERT_', 'ERR_TLS_', 'ERR_SSL_'];
/** What does not change when the request is repeated. */
const PERMANENT: readonly string[] = [CHECK_TLS, CHECK_PORT];
const MAX_CAUSES = 8;

/**
 * The error of a request that no server answered, with the host and the next step; undefined for any other error. A failed TLS handshake
 * is not retried, because the same certificate is presented again, and neither is a port that fetch forbids.
 */
export function unreachableError(provider: string, url: string, error: unknown): TemperError | undefined {
  for (const cause of causesOf(error)) {
    const nextStep = nextStepOf(cause);
    if (nextStep === undefined) continue;
    const host = hostOf(url);
    const reason = printable(messageOf(cause, 300) || String(codeOf(cause)));
    return new TemperError(
      'TEMPER_MODEL_UNREACHABLE',
      `provider "${provider}" cannot be reached at ${host}: ${reason}; ${nextStep}`,
      { retry: PERMANENT.includes(nextStep) ? 'never' : 'backoff', cause: error, details: { provider, host } },
    );
  }
  return undefined;
}

function* causesOf(error: unknown): Generator<Error> {
  let current = error;
  for (let depth = 0; depth < MAX_CAUSES && current instanceof Error; depth += 1) {
    yield current;
    current = current.cause;
  }
}

function nextStepOf(error: Error): string | undefined {
  const code = codeOf(error);
  // The error of the Fetch Standard for a blocked port has no code.
  if (code === undefined && error.message === 'bad port') return CHECK_PORT;
  if (typeof code !== 'string') return undefined;
  if (Object.hasOwn(NEXT_STEPS, code)) return NEXT_STEPS[code];
  return TLS_PREFIXES.some((prefix) => code.startsWith(prefix)) ? CHECK_TLS : undefined;
}

function codeOf(error: Error): unknown {
  return 'code' in error ? error.code : undefined;
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? 'an invalid URL';
}
