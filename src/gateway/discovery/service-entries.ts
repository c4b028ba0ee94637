import { type DiscoveryEntry, toolEntry } from '../../discovery/entry.ts';
import { LexicalIndex } from '../../discovery/lexical/lexical-index.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { BrokeredTool } from '../brokered/port.ts';

/** What searches find of the tools of services of the platform, which have no object in the catalog. An entry is the same as long as its tool. */
export class ServiceEntries {
  readonly #entries = new WeakMap<ToolDescriptor, DiscoveryEntry>();

  index(tools: readonly BrokeredTool[]): LexicalIndex {
    return LexicalIndex.of(tools.map(({ descriptor }) => this.#entryOf(descriptor)));
  }

  #entryOf(tool: ToolDescriptor): DiscoveryEntry {
    const known = this.#entries.get(tool);
    if (known !== undefined) return known;
    const entry = toolEntry(tool);
    this.#entries.set(tool, entry);
    return entry;
  }
}
