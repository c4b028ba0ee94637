import { isJsonObject, type Json, member } from '../../../lib/json.ts';
import type { BytesRequest } from '../../../net/fetch.ts';
import type { SearchProvider, SearchQuestion, SearchType } from './provider.ts';

/** A result as the service names its parts. */
interface RawResult {
  title: Json | undefined;
  url: Json | undefined;
  snippet: Json | undefined;
}

interface SearchAdapter {
  /** Where the service is unless the configuration says it. */
  defaultUrl?: string;
  needsKey: boolean;
  request(provider: SearchProvider, question: SearchQuestion, key: string | undefined): BytesRequest;
  results(body: Json): RawResult[];
}

/** The query is sent as the services document it; results beyond the asked number are cut later. */
export const SEARCH_ADAPTERS: Readonly<Record<SearchType, SearchAdapter>> = {
  SearXNG: {
    needsKey: false,
    request: ({ url }, { query }, key) => ({
      url: withQuery(url, { q: query, format: 'json' }),
      headers: { accept: 'application/json', ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
    }),
    results: (body) => listAt(member(body, 'results'), 'content'),
  },
  Brave: {
    defaultUrl: 'https://api.search.brave.com/res/v1/web/search',
    needsKey: true,
    request: ({ url }, { query, count }, key = '') => ({
      url: withQuery(url, { q: query, count: String(count), text_decorations: 'false' }),
      headers: { accept: 'application/json', 'x-subscription-token': key },
    }),
    results: (body) => listAt(member(member(body, 'web') ?? null, 'results'), 'description'),
  },
  Tavily: {
    defaultUrl: 'https://api.tavily.com/search',
    needsKey: true,
    request: ({ url }, { query, count }, key = '') => ({
      url,
      method: 'POST',
      headers: { accept: 'application/json', 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify({ query, max_results: count }),
    }),
    results: (body) => listAt(member(body, 'results'), 'content'),
  },
};

function withQuery(url: string, parameters: Readonly<Record<string, string>>): string {
  const target = new URL(url);
  for (const [name, value] of Object.entries(parameters)) target.searchParams.set(name, value);
  return target.href;
}

const MAX_READ = 100;

function listAt(list: Json | undefined, snippet: string): RawResult[] {
  if (!Array.isArray(list)) return [];
  return list
    .slice(0, MAX_READ)
    .filter(isJsonObject)
    .map((item) => ({ title: item['title'], url: item['url'], snippet: item[snippet] }));
}
