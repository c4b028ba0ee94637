import { UNOBSERVED } from '../../discovery/vector/embed-texts.ts';
import { HybridSearch } from '../../discovery/vector/hybrid-search.ts';
import { openVectorIndex } from '../../discovery/qdrant/open-vector-index.ts';
import type { EnginePorts } from '../../engine/ports.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Model } from '../../models/port.ts';
import type { SharedState } from '../team/shared-state.ts';

/** The search by meaning of one agent. It pays for the vectors of its queries and of its tools, as for all its model calls. */
export function localHybridSearch(
  { models, clock }: Pick<SharedState, 'models' | 'clock'>,
  embedder: Model,
  redact: (text: string) => string,
  opening: AsyncDisposableStack,
): Pick<EnginePorts, 'hybridSearch'> {
  if (models.discovery === undefined) return {};
  const closing = new AbortController();
  opening.defer(() => closing.abort());
  const embed = (texts: string[], op: CallOptions) => embedder.embed(texts, op);
  const search = new HybridSearch({
    index: openVectorIndex(models.discovery, clock),
    embedEntries: embed,
    clock,
    redact,
    observer: UNOBSERVED,
    closing: closing.signal,
  });
  return { hybridSearch: { search, embed } };
}
