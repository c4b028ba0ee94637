import { isTemperError, messageOf } from '../lib/errors.ts';
import type { SafeBytesFetch } from '../net/fetch.ts';
import type { TargetRules } from '../net/targets.ts';
import { gitFailure } from './failure.ts';
import type { GitTransport } from './transport.ts';

/** The request headers of the protocol, which the fetch has to permit. */
export const GIT_HEADERS: ReadonlySet<string> = new Set(['git-protocol']);
/** Of one answer, decompressed. */
export const MAX_GIT_BYTES = 16 * 1_048_576;

/**
 * Git's smart HTTP without a credential, through a fetch that checks each host and address. Throws TEMPER_FETCH_DENIED for one that the
 * rules refuse, and TEMPER_CONNECTION_FAILED.
 */
export function httpTransport(fetch: SafeBytesFetch, url: string, rules: TargetRules): GitTransport {
  const root = url.replace(/\/$/, '');
  return async ({ path, body, contentType }, op) => {
    const request = {
      url: `${root}/${path}`,
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'git-protocol': 'version=2', ...(contentType === undefined ? {} : { 'content-type': contentType }) },
      maxResponseBytes: MAX_GIT_BYTES,
      ...(body === undefined ? {} : { body }),
    };
    const { status, headers, bytes } = await fetch(request, rules, op).catch((error: unknown) => {
      if (!isTemperError(error, 'TEMPER_FETCH_FAILED')) throw error;
      throw gitFailure(messageOf(error, 300));
    });
    if (status === 200) return { contentType: headers['content-type'] ?? '', bytes };
    if (status === 401 || status === 403 || status === 404)
      throw gitFailure(`the server answered ${status}: the repository does not exist, or is not public`);
    throw gitFailure(`the server answered ${status}`);
  };
}
