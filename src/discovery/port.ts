import type { CallOptions } from '../lib/call-options.ts';
import type { CallerContext } from '../tools/contract.ts';
import type { CapabilityKind } from './entry.ts';

export interface DiscoveryQuery {
  query: string;
  /** Only this kind. */
  kind?: string;
  /** Only this category, case-insensitive. */
  category?: string;
}

/** One result of a search. */
export interface FoundCapability {
  id: string;
  name: string;
  /** For human readers. */
  displayName?: string;
  kind: CapabilityKind;
  description: string;
  /** From 0 to 1 in two decimals. */
  relevance: number;
  available: boolean;
  /** `[not available: REASON]`; absent for an available capability. */
  note?: string;
}

export interface DiscoveryResult {
  /** Best first. */
  capabilities: FoundCapability[];
  /** The number of further matches that are not in the list. */
  more: number;
}

/** Finds capabilities for an agent. */
export interface Discovery {
  /** Read-only and idempotent. Throws TemperError when the search is not possible, for example TEMPER_GATEWAY_UNAVAILABLE. */
  search(query: DiscoveryQuery, caller: CallerContext, op: CallOptions): Promise<DiscoveryResult>;
}
