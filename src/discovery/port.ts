import type { Op } from '../lib/operation.ts';
import type { CallerContext } from '../tools/contract.ts';
import type { CapabilityKind } from './entry.ts';

export interface DiscoveryQuery {
  query: string;
  /** Only this kind. */
  kind?: string;
  /** Only this category, letter case apart. */
  category?: string;
}

/** One line of an answer. */
export interface FoundCapability {
  id: string;
  name: string;
  kind: CapabilityKind;
  description: string;
  /** From 0 to 1 in two decimals. */
  relevance: number;
  available: boolean;
  /** `[not available: why]`. */
  note?: string;
}

export interface DiscoveryAnswer {
  /** Best first. */
  capabilities: FoundCapability[];
  /** How many more fit and are left out. */
  more: number;
}

/** Finds what an agent could use. Throws what keeps it from looking. */
export interface Discovery {
  search(query: DiscoveryQuery, caller: CallerContext, op: Op): Promise<DiscoveryAnswer>;
}
