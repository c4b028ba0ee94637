import { messageOf, TemperError } from '../../../lib/errors.ts';
import { type Json, parseUntrustedJson } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { createSafeBytesFetch, type SafeFetchOptions } from '../../../net/fetch.ts';
import type { TargetRules } from '../../../net/targets.ts';
import { linkUrl } from '../html/links.ts';
import { oneLine } from '../html/visible-text.ts';
import { SEARCH_ADAPTERS } from './adapters.ts';
import type { SearchProvider, WebSearchResult, WebSearch } from './provider.ts';

export interface HttpSearchOptions
  extends Pick<SafeFetchOptions, 'clock' | 'network' | 'connect' | 'certificateAuthorities'> {
  provider: SearchProvider;
  /** The key of the service, read for each query; undefined when there is none. */
  key: () => Promise<string | undefined>;
}

const MAX_RESPONSE_BYTES = 1_048_576;
const LIMITS = { title: 200, snippet: 1_000, url: 2_000 };
const KEY_HEADERS: ReadonlySet<string> = new Set(['x-subscription-token']);

/** Searches by HTTP. The service is the one of the configuration: no query and no response changes where the key goes. */
export function httpSearch({ provider, key, ...connection }: HttpSearchOptions): WebSearch {
  const adapter = SEARCH_ADAPTERS[provider.type];
  const fetch = createSafeBytesFetch({ ...connection, maxBodyBytes: MAX_RESPONSE_BYTES, sentHeaders: KEY_HEADERS });
  const rules = rulesOf(provider);
  return async (question, op) => {
    const secret = await key();
    if (secret === undefined && adapter.needsKey) throw failed('its key is not set');
    const request = adapter.request(provider, question, secret);
    const { status, bytes, redirected } = await fetch(request, rules, op).catch((error: unknown) => {
      throw failed(hidden(messageOf(error), secret));
    });
    if (redirected) throw failed('it redirects');
    if (status !== 200) throw failed(`it answered with status ${status}`);
    const body = jsonOf(bytes);
    if (body === undefined) throw failed('its answer is not JSON');
    return adapter.results(body).flatMap(resultOf).slice(0, question.count);
  };
}

/** Only the origin of the service, also for redirects: its key is for no other host. */
function rulesOf({ url, isPrivate }: SearchProvider): TargetRules {
  const { hostname, port, protocol } = new URL(url);
  const isLocal = hostname === 'localhost';
  return {
    allowHttp: protocol === 'http:',
    ports: port === '' ? [] : [Number(port)],
    hostDenialReason: (host) => (host === hostname ? undefined : 'it is not the search service of the configuration'),
    ...(isPrivate || isLocal ? { privateHosts: new Set([hostname]) } : {}),
  };
}

/** A result with an address that an agent could fetch. */
function resultOf({
  title,
  url,
  snippet,
}: ReturnType<(typeof SEARCH_ADAPTERS)['Brave']['results']>[number]): WebSearchResult[] {
  const address = typeof url === 'string' ? linkUrl(url, new URL('https://invalid.invalid')) : undefined;
  if (address === undefined || new URL(address).hostname === 'invalid.invalid') return [];
  return [{ title: short(title, LIMITS.title), url: address, snippet: short(snippet, LIMITS.snippet) }];
}

/** Text without tags and invisible characters. */
function short(value: Json | undefined, limit: number): string {
  if (typeof value !== 'string') return '';
  const text = oneLine(value.slice(0, limit * 4).replaceAll(/<\/?[a-z][^<>]{0,200}>/gi, ''));
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}

function jsonOf(bytes: Buffer): Json | undefined {
  try {
    return parseUntrustedJson(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}

function hidden(text: string, secret: string | undefined): string {
  return secret === undefined || secret === '' ? text : text.replaceAll(secret, '[key]');
}

function failed(problem: string): TemperError {
  return new TemperError('TEMPER_SEARCH_FAILED', `the search service gave no results: ${printable(problem, 300)}`, {
    retry: 'backoff',
  });
}
