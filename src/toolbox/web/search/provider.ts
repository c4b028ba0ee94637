import type { CallOptions } from '../../../lib/call-options.ts';

export const SEARCH_TYPES = ['SearXNG', 'Brave', 'Tavily'] as const;
export type SearchType = (typeof SEARCH_TYPES)[number];

/** The search service that the platform or the user configured. */
export interface SearchProvider {
  type: SearchType;
  /** Where queries are sent: https, or http on this machine. */
  url: string;
  /** The host is in a private network. */
  isPrivate: boolean;
}

export interface SearchQuestion {
  query: string;
  count: number;
}

export interface WebSearchResult {
  title: string;
  url: string;
  snippet: string;
}

/** Throws TEMPER_SEARCH_FAILED. */
export type WebSearch = (question: SearchQuestion, op: CallOptions) => Promise<WebSearchResult[]>;
